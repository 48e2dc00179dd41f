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

// arm starts the clock of a submitted job.
func (p *Pool) arm(j *job, busyAt time.Time, run time.Duration) {
	j.mu.Lock()
	j.limit = limits{active: true, generation: j.generation, busyAt: busyAt, run: run}
	j.mu.Unlock()
	first := time.Until(busyAt)
	for _, d := range []time.Duration{run, p.options.SlowRequest} {
		if d > 0 && d < first {
			first = d
		}
	}
	j.timer.Reset(first)
}

// disarm stops the clock.
func (p *Pool) disarm(j *job) {
	j.timer.Stop()
	j.mu.Lock()
	j.limit.active = false
	j.mu.Unlock()
}

// outcome returns what the clock has decided so far.
func (j *job) outcome() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.limit.outcome
}

// stopped reports whether the script was told to end because of its time.
func (j *job) stopped() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.limit.stoppedAt.IsZero()
}

// check runs when the job's timer fires. It may be late, so it looks at the
// job itself and starts the timer again when it came too early.
func (p *Pool) check(j *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := &j.limit
	state := j.state()
	if !l.active || state.generation() != l.generation {
		return
	}
	now := time.Now()
	switch state.phase() {
	case stateReady:
		if now.Before(l.busyAt) {
			j.timer.Reset(l.busyAt.Sub(now))
		} else if !j.withdraw(ErrBusy) {
			j.timer.Reset(time.Millisecond) // it was taken just now
		}
	case stateTaken:
		if l.takenAt.IsZero() {
			l.takenAt = p.takenAt(j, now)
		}
		if next := p.checkRunning(j, state, now); next > 0 {
			j.timer.Reset(next)
		}
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
	if !l.stoppedAt.IsZero() {
		left = l.stoppedAt.Add(p.options.Grace).Sub(now)
	}
	switch {
	case left > 0:
		if next == 0 || left < next {
			next = left
		}
	case l.stoppedAt.IsZero() && p.options.Grace > 0:
		l.stoppedAt = now
		atomic.StoreUint32(u32(&j.c.stop), 1)
		p.kill(state.slot(), signalStop)
		return p.options.Grace
	case j.swapState(state, newJobState(l.generation, state.slot(), stateKilled)):
		l.outcome, l.active = ErrTimeout, false
		p.kill(state.slot(), syscall.SIGKILL)
		j.notify()
		return 0
	}
	return next
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
