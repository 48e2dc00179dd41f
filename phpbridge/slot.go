package phpbridge

// #include "wire.h"
import "C"

import (
	"sync/atomic"
	"syscall"
	"time"
)

// general is the range of the workers that take any class; 1+class is that of
// a class's reserve.
const general = 0

// A slotRange is the slots from..to-1.
type slotRange struct{ from, to int }

type slotStatus uint8

const (
	slotEmpty slotStatus = iota
	slotRunning
	slotStopping // told to end when idle
)

// A slot is a place for a worker. It is guarded by Pool.mu.
type slot struct {
	status     slotStatus
	generation uint32  // of the worker in it, so that late news of another is known
	zygote     *zygote // that forked it
	pid        int     // 0 until the zygote has told it
	started    time.Time
	served     uint64        // at the last look
	idleSince  time.Time     // not served and asleep since
	traced     []any         // what the log will say with the backtrace that was asked for
	replaced   bool          // it ends to be replaced by another
	reason     RecycleReason // why
	stuckAt    uint64        // served at the last look of endStuck
	stuckSince time.Time     // it leaves work lying since; zero: it does not
}

// fill forks what is missing of the wanted workers.
func (p *Pool) fill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fillLocked()
}

func (p *Pool) fillLocked() {
	if p.zygote == nil || p.killed {
		return
	}
	for r, slots := range p.ranges {
		missing := p.want[r]
		for i := slots.from; i < slots.to; i++ {
			if p.slots[i].status != slotEmpty {
				missing--
			}
		}
		for i := slots.from; i < slots.to && missing > 0; i++ {
			if p.slots[i].status == slotEmpty {
				p.forkLocked(i, r)
				missing--
			}
		}
	}
	p.growable.Store(p.growableLocked())
}

func (p *Pool) growableLocked() bool {
	for r, slots := range p.ranges {
		if p.want[r] < slots.to-slots.from {
			return true
		}
	}
	return false
}

func (p *Pool) forkLocked(i, r int) {
	stderr, err := p.stderr.open(p.stderrLine(i))
	if err != nil {
		p.log.Error("cannot fork a worker", "slot", i, "error", err)
		return // the next look tries again
	}
	s := &p.slots[i]
	s.generation++
	*s = slot{status: slotRunning, generation: s.generation, zygote: p.zygote, started: time.Now()}
	shared := &p.memory.slots[i]
	mask := uint32(1<<classes - 1)
	if r != general {
		mask = 1 << (r - 1)
	}
	atomic.StoreUint32(u32(&shared.classes), mask)
	atomic.StoreUint32(u32(&shared.stop), 0)
	atomic.StoreUint32(u32(&shared.job), 0)
	atomic.StoreUint64(u64(&shared.served), 0)
	err = p.zygote.fork(i, s.generation, stderr)
	_ = stderr.Close() // the message has its own copy
	if err != nil {
		s.status = slotEmpty
		p.giveUp(p.zygote, err)
		return
	}
	p.counts.spawns++
}

// died takes note of the end of a worker: its job is told, and another worker
// takes its place.
func (p *Pool) died(m message, how string) {
	defer p.handOver()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.slots[m.slot]
	if s.zygote != m.from || s.generation != m.generation || s.status == slotEmpty {
		return
	}
	p.forgetLocked(m.slot, how)
	p.listeners.Go(func() { m.from.uploads.remove(m.slot, m.generation) }) // ends by itself
	asked := how == exitStopped || how == exitRecycled
	switch {
	case s.replaced && asked:
		p.counts.recycles[s.reason]++
	case how == exitRecycled:
		p.counts.recycles[RecycledRequests]++
	case !asked:
		p.counts.crashes++
	}
	served := atomic.LoadUint64(u64(&p.memory.slots[m.slot].served))
	s.status = slotEmpty
	// One that died as it was born is replaced at the next look: more often
	// would help nobody.
	if asked || served > 0 || time.Since(s.started) >= retryAfter {
		p.fillLocked()
	}
	if m.from != p.zygote {
		p.listeners.Go(func() { p.closeRetired(m.from) }) // needs mu; ends at once
	}
	p.stirLocked()
}

// stirLocked does what a dead worker was woken for, or meant to do.
func (p *Pool) stirLocked() {
	p.completer.ring()
	for class := range classes {
		if !p.memory.queueEmpty(class) && !p.memory.wake(&p.masks[class]) {
			p.press()
		}
	}
}

// How a worker ends that has served Options.MaxRequests, and one that was told to
// end.
var (
	exitRecycled = describe(syscall.WaitStatus(C.EPHPM_EXIT_RECYCLED << 8))
	exitStopped  = describe(syscall.WaitStatus(C.EPHPM_EXIT_STOPPED << 8))
)

// forgetLocked removes a dead worker's traces from shared memory, and its hold
// on a job.
func (p *Pool) forgetLocked(i int, how string) {
	atomic.AndUint64(u64(&p.memory.pool.sleepers[i/64]), ^(uint64(1) << (i % 64)))
	atomic.AndUint64(u64(&p.memory.pool.lookers[i/64]), ^(uint64(1) << (i % 64)))
	for _, j := range p.jobs {
		if !j.heldBy(i) && !j.lost {
			continue
		}
		p.logDeathLocked(i, j, how)
		if j.orphan {
			p.releaseLocked(j)
			continue
		}
		j.death.Store(&how)
		j.alarm()
	}
}

func (p *Pool) logDeathLocked(i int, j *job, how string) {
	if j.state().phase() != stateTaken {
		return // it was through, or who had it killed says why
	}
	s := &p.slots[i]
	p.log.Error("worker died within a request", append(j.label.attributes(), "how", how, "slot", i,
		"age", time.Since(s.started).Round(time.Millisecond),
		"served", atomic.LoadUint64(u64(&p.memory.slots[i].served)))...)
}

func (p *Pool) stopLocked(i int) {
	p.slots[i].status = slotStopping
	// It is no sleeper any more: who submits must not count on it.
	atomic.AndUint64(u64(&p.memory.pool.sleepers[i/64]), ^(uint64(1) << (i % 64)))
	atomic.StoreUint32(u32(&p.memory.slots[i].stop), 1)
	p.memory.ring(i)
}
