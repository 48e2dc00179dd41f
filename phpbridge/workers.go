package phpbridge

import (
	"sync/atomic"
	"time"
)

// A Crew is the workers of a pool at one moment.
type Crew struct {
	Min, Max int      // as Options.MinWorkers and MaxWorkers; Options.Reserve may come on top
	Workers  []Worker // by slot
}

// A Worker is one process that runs scripts.
type Worker struct {
	Slot    int
	PID     int    // 0 when it is just being forked
	State   string // "starting", "idle", "busy" or "ending": told to end when it is through
	Started time.Time
	Served  uint64   // requests so far
	Memory  int64    // bytes that it has, what it shares with others included; 0 when it has just gone
	Request *Running // nil while it has none
}

// Workers returns the workers that there are.
func (p *Pool) Workers() Crew {
	crew := Crew{Min: p.options.MinWorkers, Max: p.options.MaxWorkers}
	held := map[int]*Running{}
	for _, r := range p.Running() {
		if r.Slot >= 0 {
			held[r.Slot] = &r
		}
	}
	p.mu.Lock()
	for i := range p.slots {
		s := &p.slots[i]
		if s.status == slotEmpty {
			continue
		}
		w := Worker{Slot: i, PID: s.pid, State: "idle", Started: s.started, Served: atomic.LoadUint64(u64(&p.memory.slots[i].served))}
		if r := held[i]; r != nil && r.PID == s.pid {
			w.State, w.Request = "busy", r
		}
		switch {
		case s.status == slotStopping:
			w.State = "ending"
		case s.pid == 0:
			w.State = "starting"
		}
		crew.Workers = append(crew.Workers, w)
	}
	p.mu.Unlock()
	for i := range crew.Workers {
		if w := &crew.Workers[i]; w.PID > 0 {
			w.Memory = residentMemory(w.PID)
		}
	}
	return crew
}
