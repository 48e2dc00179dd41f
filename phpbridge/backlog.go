package phpbridge

import (
	"context"
	"time"
)

// A backlog hands out the jobs of one class. Those who find none wait in the
// order they came, bounded in number and time. It is guarded by Pool.mu.
type backlog struct {
	free    []*job // a stack: the job used last is the warmest
	held    int    // jobs in the hands of Serve, or orphaned
	waiters []*waiter
	limit   int // held and waiting together
}

// A waiter gets a job, or learns by a closed channel that there will be none.
type waiter struct{ job chan *job }

// acquire takes a job of the class, waiting at most until the deadline.
func (p *Pool) acquire(ctx context.Context, class Class, deadline time.Time) (*job, error) {
	b := &p.backlogs[class]
	p.mu.Lock()
	if p.closing {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	if b.held+len(b.waiters) >= b.limit {
		p.refused[class]++
		p.mu.Unlock()
		return nil, ErrBusy
	}
	if n := len(b.free); n > 0 && len(b.waiters) == 0 {
		j := b.free[n-1]
		b.free = b.free[:n-1]
		b.held++
		p.mu.Unlock()
		return j, nil
	}
	w := &waiter{job: make(chan *job, 1)}
	b.waiters = append(b.waiters, w)
	p.mu.Unlock()
	return p.await(ctx, b, w, class, deadline)
}

func (p *Pool) await(ctx context.Context, b *backlog, w *waiter, class Class, deadline time.Time) (*job, error) {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	var err error
	select {
	case j, ok := <-w.job:
		if !ok {
			return nil, ErrClosed
		}
		return j, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = ErrBusy
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range b.waiters {
		if other == w {
			b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
			if err == ErrBusy {
				p.refused[class]++
			}
			return nil, err
		}
	}
	j, ok := <-w.job // it came in the same moment: use it
	if !ok {
		return nil, ErrClosed
	}
	return j, nil
}

// release takes a job back that no worker has, and hands it on.
func (p *Pool) release(j *job) {
	p.mu.Lock()
	p.releaseLocked(j)
	p.mu.Unlock()
}

func (p *Pool) releaseLocked(j *job) {
	b := &p.backlogs[j.class]
	j.setState(newJobState(j.generation, 0, stateFree))
	j.label.set("", "", "")
	j.death.Store(nil)
	j.withdrawn.Store(nil)
	j.orphan = false
	select {
	case <-j.ready: // a token that nobody needs any more
	default:
	}
	if len(b.waiters) > 0 {
		w := b.waiters[0]
		b.waiters[0] = nil
		b.waiters = b.waiters[1:]
		w.job <- j
		return
	}
	b.free = append(b.free, j)
	b.held--
	if p.closing && p.idleLocked() {
		p.signalIdle()
	}
}

// abandon leaves a job to its worker, which is about to die.
func (p *Pool) abandon(j *job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.death.Load() != nil {
		p.releaseLocked(j)
		return
	}
	j.orphan = true
}

func (p *Pool) idleLocked() bool {
	for i := range p.backlogs {
		if p.backlogs[i].held > 0 || len(p.backlogs[i].waiters) > 0 {
			return false
		}
	}
	return true
}
