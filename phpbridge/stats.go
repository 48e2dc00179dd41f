package phpbridge

// Stats is the state of a pool at one moment, and its totals since New.
type Stats struct {
	Workers int    // running, of all kinds
	Busy    int    // of which run a request
	Waiting [2]int // requests without a worker, by class

	Spawns   uint64    // workers forked
	Recycles uint64    // workers replaced as planned: requests served, memory, Reload
	Crashes  uint64    // workers that ended otherwise than told, killed ones included
	Timeouts uint64    // requests over their time limit
	Refused  [2]uint64 // requests that found the backlog full or waited too long, by class
}

// Stats returns the state of the pool; after Close, its totals.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{
		Spawns:   p.counts.spawns,
		Recycles: p.counts.recycles,
		Crashes:  p.counts.crashes,
		Timeouts: p.counts.timeouts,
		Refused:  p.refused,
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
