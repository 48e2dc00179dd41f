package phpbridge

import "time"

// A Running is a request that has a job: it waits in the ring for a worker, or one
// runs it.
type Running struct {
	ID, Site, Script string
	Class            Class
	Method, URI      string // as Request has them
	Since            time.Time
	State            string // "waiting", "running", "ending" (the answer is complete) or "killed"
	Slot             int    // of its worker; -1 while it waits
	PID              int    // of its worker; 0 while it waits or when it has just gone
}

// Running returns the requests that have a job, in no order. Those that wait in the
// backlog have none and are only counted, see Stats.
func (p *Pool) Running() []Running {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Running
	for _, j := range p.jobs {
		r, generation := j.label.running()
		state := j.state()
		if r.Script == "" || state.generation() != generation {
			continue
		}
		r.Class, r.Slot = j.class, -1
		switch state.phase() {
		case stateReady:
			r.State = "waiting"
		case stateTaken:
			r.State = "running"
		case stateDone:
			r.State = "ending"
		case stateKilled:
			r.State = "killed"
		default:
			continue
		}
		if i := state.slot(); r.State != "waiting" && i < len(p.slots) {
			r.Slot, r.PID = i, p.slots[i].pid
		}
		all = append(all, r)
	}
	return all
}

// running returns what the label knows; without a request the script is empty.
func (l *label) running() (Running, uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free {
		return Running{}, 0
	}
	return Running{ID: l.id, Site: l.site, Script: l.script, Method: l.method, URI: l.uri, Since: l.since}, l.generation
}
