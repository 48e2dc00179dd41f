package phpbridge

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// grow adds workers for requests that have waited too long, and reports whether
// it should look again soon.
func (p *Pool) grow() (again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for class := range classes {
		waiting, late := p.waitingLocked(class)
		again = again || waiting > 0
		if !late {
			continue
		}
		slots := p.ranges[general]
		if n := p.want[general]; n < slots.to-slots.from {
			p.want[general] = min(slots.to-slots.from, n+max(1, min(n, waiting)))
			continue
		}
		r := 1 + int(class)
		if reserve := p.ranges[r]; p.want[r] < reserve.to-reserve.from && p.starvedLocked(class) {
			p.want[r]++
		}
	}
	p.fillLocked()
	return again && p.growableLocked()
}

// stopWatching leaves it to submit to tell of pressure. True if something came
// in between that nobody would tell of.
func (p *Pool) stopWatching() bool {
	p.watching.Store(false)
	if !p.growable.Load() {
		return false
	}
	for class := range classes {
		if !p.memory.queueEmpty(class) {
			return p.watching.CompareAndSwap(false, true)
		}
	}
	return false
}

// waitingLocked counts the jobs of a class that no worker has taken. late is
// true if one has waited for longer than SpawnAfter.
func (p *Pool) waitingLocked(class Class) (n int, late bool) {
	now := time.Now()
	for _, j := range p.jobs {
		if j.class == class && j.state().phase() == stateReady {
			n++
			late = late || now.Sub(j.submitted) >= p.options.SpawnAfter
		}
	}
	return n, late
}

// starvedLocked reports whether all general workers are busy with other classes.
func (p *Pool) starvedLocked(class Class) bool {
	slots, others := p.ranges[general], 0
	for _, j := range p.jobs {
		s := j.state()
		if s.phase() == stateTaken && s.slot() >= slots.from && s.slot() < slots.to {
			if j.class == class {
				return false
			}
			others++
		}
	}
	return others >= slots.to-slots.from
}

// shrink ends workers that are above the minimum and have had nothing to do.
func (p *Pool) shrink() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for r, slots := range p.ranges {
		least := 0
		if r == general {
			least = p.options.MinWorkers
		}
		for i := slots.to - 1; i >= slots.from; i-- {
			if p.idleForLocked(i, now) >= p.options.WorkerIdle && p.want[r] > least {
				p.want[r]--
				p.stopLocked(i)
			}
		}
	}
	p.growable.Store(p.growableLocked())
}

// replaceLarge replaces workers that hold too much memory, after what they run.
func (p *Pool) replaceLarge() {
	most := p.options.WorkerMaxMemory
	if most == 0 {
		return
	}
	type worker struct {
		slot, pid  int
		generation uint32
	}
	var all []worker
	p.mu.Lock()
	for i, s := range p.slots {
		if s.status == slotRunning && s.pid != 0 {
			all = append(all, worker{i, s.pid, s.generation})
		}
	}
	p.mu.Unlock()
	for _, w := range all {
		size := residentMemory(w.pid)
		if size <= most {
			continue
		}
		p.log.Info("worker is replaced for its memory", "slot", w.slot, "bytes", size)
		p.mu.Lock()
		if s := &p.slots[w.slot]; s.generation == w.generation && s.status == slotRunning {
			s.replaced, s.reason = true, RecycledMemory
			p.stopLocked(w.slot)
		}
		p.mu.Unlock()
	}
}

// residentMemory returns the bytes of memory that a process has, 0 if it has
// gone. What it shares with others counts too.
func residentMemory(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var total, resident int64
	if _, err := fmt.Sscan(string(text), &total, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}

// idleForLocked returns for how long the worker has slept without serving.
func (p *Pool) idleForLocked(i int, now time.Time) time.Duration {
	s := &p.slots[i]
	if s.status != slotRunning {
		return -1
	}
	served := atomic.LoadUint64(u64(&p.memory.slots[i].served))
	asleep := atomic.LoadUint64(u64(&p.memory.pool.sleepers[i/64]))&(1<<(i%64)) != 0
	if served != s.served || !asleep || s.idleSince.IsZero() {
		s.served, s.idleSince = served, now
	}
	return now.Sub(s.idleSince)
}
