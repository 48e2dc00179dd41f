package phpbridge

import (
	"sync/atomic"
	"syscall"
	"time"
)

// arm starts the clock of a submitted job.
func (p *Pool) arm(j *job, busyAt time.Time, run time.Duration) {
	j.mu.Lock()
	j.limit = limits{active: true, generation: j.generation, busyAt: busyAt, run: run}
	j.mu.Unlock()
	first := time.Until(busyAt)
	if run > 0 && run < first {
		first = run
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
			return
		}
		if !j.withdraw(ErrBusy) {
			j.timer.Reset(time.Millisecond) // it was taken just now
		}
		return
	case stateTaken:
		if l.run == 0 {
			return
		}
		if l.takenAt.IsZero() {
			l.takenAt = p.takenAt(j, now)
		}
		if end := l.takenAt.Add(l.run); now.Before(end) {
			j.timer.Reset(end.Sub(now))
			return
		}
		if !j.swapState(state, newJobState(l.generation, state.slot(), stateKilled)) {
			return // it is through
		}
		l.outcome, l.active = ErrTimeout, false
		p.kill(state.slot(), syscall.SIGKILL)
		j.notify()
	}
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
