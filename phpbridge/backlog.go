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

// A waiter stands in line for a job. turn gets nil when its exchange has one and
// is submitted, else why not.
type waiter struct {
	exchange *exchange
	turn     chan error // has room for one
}

// A handover is a job on its way to the next in line.
type handover struct {
	job *job
	to  *waiter
}

// enter gets a job for the exchange and submits it, waiting in line for one
// until busyAt at most.
func (p *Pool) enter(ctx context.Context, x *exchange) error {
	b := &p.backlogs[x.request.Class]
	p.mu.Lock()
	if p.closing {
		p.mu.Unlock()
		return ErrClosed
	}
	if b.held+len(b.waiters) >= b.limit {
		p.mu.Unlock()
		return ErrBusy
	}
	if n := len(b.free); n > 0 && len(b.waiters) == 0 {
		j := b.free[n-1]
		b.free = b.free[:n-1]
		b.held++
		p.mu.Unlock()
		err := p.place(x, j, x.start)
		if err != nil {
			p.release(j)
		}
		return err
	}
	w := &waiter{x, make(chan error, 1)}
	b.waiters = append(b.waiters, w)
	p.mu.Unlock()
	return p.await(ctx, b, w)
}

func (p *Pool) await(ctx context.Context, b *backlog, w *waiter) error {
	timer := time.NewTimer(time.Until(w.exchange.busyAt))
	defer timer.Stop()
	var late error
	select {
	case err := <-w.turn:
		return err
	case <-ctx.Done():
		late = ctx.Err()
	case <-timer.C:
		late = ErrBusy
	}
	p.mu.Lock()
	for i, other := range b.waiters {
		if other == w {
			b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
			p.mu.Unlock()
			return late
		}
	}
	p.mu.Unlock()
	return <-w.turn // it came in the same moment: use it
}

// place writes the exchange's request into a job and submits it, now.
func (p *Pool) place(x *exchange, j *job, now time.Time) error {
	x.job = j
	if err := x.begin(); err != nil {
		return err
	}
	p.submit(x, now)
	return nil
}

// release takes a job back that no worker has, and hands it on.
func (p *Pool) release(j *job) {
	p.mu.Lock()
	p.releaseLocked(j)
	some := len(p.handovers) > 0
	p.mu.Unlock()
	if some {
		p.handOver()
	}
}

// releaseLocked is release for those who hold mu; they call handOver without it.
func (p *Pool) releaseLocked(j *job) {
	b := &p.backlogs[j.class]
	j.setState(newJobState(j.generation, 0, stateFree))
	j.label.end()
	j.death.Store(nil)
	j.withdrawn.Store(nil)
	j.orphan, j.lost = false, false
	select {
	case <-j.ready: // a token that nobody needs any more
	default:
	}
	if len(b.waiters) > 0 {
		p.handovers = append(p.handovers, handover{j, b.waiters[0]})
		b.waiters[0] = nil
		b.waiters = b.waiters[1:]
		return
	}
	b.free = append(b.free, j)
	b.held--
	if p.closing && p.idleLocked() {
		p.signalIdle()
	}
}

// handOver submits the requests of those whose turn it is, one after the other:
// whoever gives a job back does it, because it would take the next in line a
// while to wake up, and their order would be the scheduler's.
func (p *Pool) handOver() {
	p.placing.Lock()
	defer p.placing.Unlock()
	for {
		p.mu.Lock()
		if len(p.handovers) == 0 {
			p.mu.Unlock()
			return
		}
		h := p.handovers[0]
		p.handovers = p.handovers[1:]
		p.mu.Unlock()
		err := p.place(h.to.exchange, h.job, time.Now())
		if err != nil {
			p.mu.Lock()
			p.releaseLocked(h.job)
			p.mu.Unlock()
		}
		h.to.turn <- err
	}
}

// abandon leaves a job to its worker, which is about to die.
func (p *Pool) abandon(j *job) {
	p.mu.Lock()
	if j.death.Load() != nil {
		p.releaseLocked(j)
	} else {
		j.orphan = true
	}
	p.mu.Unlock()
	p.handOver()
}

func (p *Pool) idleLocked() bool {
	for i := range p.backlogs {
		if p.backlogs[i].held > 0 || len(p.backlogs[i].waiters) > 0 {
			return false
		}
	}
	return true
}
