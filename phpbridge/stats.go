package phpbridge

// Stats is the state of a pool at one moment, and its totals since New.
type Stats struct {
	Workers int    // running, of all kinds
	Busy    int    // of which run a request
	Waiting [2]int // requests without a worker, by class

	Spawns   uint64           // workers forked
	Recycles uint64           // workers replaced as planned
	Reasons  [recycles]uint64 // of Recycles, by RecycleReason
	Failures uint64           // times that PHP did not start
	Crashes  uint64           // workers that ended otherwise than told, killed ones included
	Broken   uint64           // times that a worker wrote what no worker writes, and was killed
	Timeouts uint64           // requests over their time limit
	Refused  [2]uint64        // requests that found the backlog full or waited too long, by class
}

// A RecycleReason says why a worker was replaced as planned.
type RecycleReason uint8

const (
	RecycledRequests RecycleReason = iota // it has served Options.MaxRequests
	RecycledMemory                        // it holds more than Options.WorkerMaxMemory
	RecycledReload                        // PHP was started anew
	recycles
)

// RecycleReasons are all of them.
var RecycleReasons = [...]RecycleReason{RecycledRequests, RecycledMemory, RecycledReload}

// String returns the reason's name as used in metric labels.
func (r RecycleReason) String() string {
	return [...]string{"max_requests", "max_memory", "reload"}[r]
}

// Stats returns the state of the pool; after Close, its totals.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{
		Spawns:   p.counts.spawns,
		Reasons:  p.counts.recycles,
		Failures: p.counts.failures,
		Crashes:  p.counts.crashes,
		Broken:   p.counts.broken,
		Timeouts: p.counts.timeouts,
		Refused:  p.refused,
	}
	for _, n := range p.counts.recycles {
		s.Recycles += n
	}
	for i := range p.slots {
		if p.slots[i].status != slotEmpty {
			s.Workers++
		}
	}
	for _, j := range p.jobs {
		switch j.state().phase() {
		case stateReady:
			s.Waiting[j.class]++
		case stateTaken, stateDone, stateKilled:
			s.Busy++
		}
	}
	for class := range classes {
		s.Waiting[class] += len(p.backlogs[class].waiters)
	}
	return s
}
