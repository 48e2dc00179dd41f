package phpbridge

// #include "wire.h"
import "C"

import (
	"sync/atomic"
	"syscall"
	"time"
)

// The signal that asks a worker to end its script. glibc keeps the first of the
// real-time signals for itself, so these are counted from the last.
const signalStop = syscall.Signal(64 - C.EPHPM_SIGNAL_STOP)

// doneMax is how long a worker may take between the end of its script and the
// record that says so.
const doneMax = 5 * time.Second

// arm starts the clock of a job that was submitted now. A timer that was set for
// an earlier request and comes first is left as it is: check looks again.
func (p *Pool) arm(j *job, now, busyAt time.Time, run time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.limit = limits{active: true, generation: j.generation, busyAt: busyAt, run: run}
	d := p.whileWaiting(j, now)
	if j.fires.IsZero() || now.Add(d).Before(j.fires) {
		j.lookIn(d, now)
	}
}

// lookIn sets the timer. It needs j.mu.
func (j *job) lookIn(d time.Duration, now time.Time) {
	j.fires = now.Add(d)
	j.timer.Reset(d)
}

// whileWaiting returns when to look at a job that waits: it may be taken now.
func (p *Pool) whileWaiting(j *job, now time.Time) time.Duration {
	next := j.limit.busyAt.Sub(now)
	for _, d := range []time.Duration{j.limit.run, p.options.SlowRequest} {
		if d > 0 {
			next = min(next, d)
		}
	}
	return next
}

// disarm stops the clock. The timer may fire in vain, or serve the next request.
func (p *Pool) disarm(j *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.limit.active = false
}

// outcome returns what the clock has decided so far.
func (j *job) outcome() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.limit.outcome
}

// check runs when the job's timer fires. It may be late, so it looks at the
// job itself and starts the timer again when it came too early. Nothing but what
// the front itself has written can keep it from deciding.
func (p *Pool) check(j *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fires = time.Time{}
	l := &j.limit
	if !l.active {
		return
	}
	state, now := j.state(), time.Now()
	switch {
	case j.withdrawn.Load() != nil:
	case state.generation() != l.generation, state.slot() >= p.slotCount:
		p.lose(j)
	case state.phase() == stateReady && now.Before(l.busyAt):
		j.lookIn(p.whileWaiting(j, now), now)
	case state.phase() == stateReady:
		if !j.withdraw(ErrBusy) {
			j.lookIn(time.Millisecond, now) // it was taken just now
		}
	case state.phase() == stateTaken:
		if l.takenAt.IsZero() {
			l.takenAt = p.takenAt(j, now)
		}
		if next := p.checkRunning(j, state, now); next > 0 {
			j.lookIn(next, now)
		}
	case state.phase() == stateDone && (l.doneAt.IsZero() || now.Sub(l.doneAt) < doneMax):
		if l.doneAt.IsZero() {
			l.doneAt = now
		}
		j.lookIn(doneMax, now)
	default:
		p.lose(j)
	}
}

// checkRunning does what is due for a script that runs, and returns when to look
// again, 0 for never. It needs j.mu.
func (p *Pool) checkRunning(j *job, state jobState, now time.Time) (next time.Duration) {
	l := &j.limit
	if slow := p.options.SlowRequest; slow > 0 && !l.traced {
		if left := l.takenAt.Add(slow).Sub(now); left > 0 {
			next = left
		} else {
			l.traced = true
			p.trace(j, state.slot(), now.Sub(l.takenAt))
		}
	}
	if l.run == 0 {
		return next
	}
	left := l.takenAt.Add(l.run).Sub(now)
	if j.told.Load() {
		left = l.toldAt.Add(p.options.Grace).Sub(now)
	}
	switch {
	case left > 0:
		if next == 0 || left < next {
			next = left
		}
		return next
	case !j.told.Load() && p.options.Grace > 0 && j.class != Event:
		l.toldAt = now
		j.told.Store(true)
		atomic.StoreUint32(u32(&j.c.stop), 1)
		j.interruptCall()
		p.killHolder(j, signalStop)
		return p.options.Grace
	case j.swapState(state, newJobState(l.generation, state.slot(), stateKilled)):
		l.outcome, l.active = ErrTimeout, false
		p.killHolder(j, syscall.SIGKILL)
		j.alarm()
		return 0
	}
	return time.Millisecond // it is through just now
}

// lose gives up a job whose state some worker has overwritten: which one cannot
// be known, nor who runs it, so all end. It needs j.mu.
func (p *Pool) lose(j *job) {
	j.limit.outcome = &CrashError{Slot: -1, Reason: "protocol: the state of the job was overwritten"}
	j.limit.active = false
	p.log.Error("a worker has overwritten the state of a job, all are replaced", j.label.attributes()...)
	p.mu.Lock()
	j.lost = true
	p.counts.broken++
	p.mu.Unlock()
	for i := range p.slotCount {
		p.kill(i, syscall.SIGKILL)
	}
	j.alarm()
}

// takenAt returns when the worker took the job. The worker's word is believed
// as far as it can be true.
func (p *Pool) takenAt(j *job, now time.Time) time.Time {
	at := p.clock.Add(time.Duration(int64(atomic.LoadUint64(u64(&j.c.taken_at))) - p.clockNS))
	if at.Before(j.submitted) || at.After(now) {
		return now
	}
	return at
}
