package phpbridge

import (
	"context"
	"syscall"
	"time"
)

// Close refuses new requests and waits for those that run or wait. When ctx
// ends it kills what is left. It returns when PHP has ended, and ctx.Err() if
// it had to kill.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	if p.closing {
		p.mu.Unlock()
		return ErrClosed
	}
	p.closing = true
	if p.idleLocked() {
		p.signalIdle()
	}
	p.mu.Unlock()

	var err error
	select {
	case <-p.idle:
	case <-ctx.Done():
		err = ctx.Err()
		p.killAll()
		select {
		case <-p.idle:
		case <-time.After(killWait):
			p.failLost()
			<-p.idle
		}
	}
	p.tails.Wait()
	close(p.stop)
	<-p.managed
	p.stderr.close()
	p.completer.close()
	p.mu.Lock()
	jobs := p.jobs
	p.jobs, p.slots = nil, nil // Stats may still be asked
	p.mu.Unlock()
	for _, j := range jobs {
		j.timer.Stop()
	}
	p.memory.close()
	return err
}

// killWait is how long the death of a killed worker may take to be known.
const killWait = 5 * time.Second

// failLost ends requests whose worker is dead but cannot be told from their
// jobs, because somebody has overwritten the state.
func (p *Pool) failLost() {
	p.mu.Lock()
	defer p.mu.Unlock()
	reason := "the state of its job was lost"
	for _, j := range p.jobs {
		switch {
		case j.orphan:
			p.releaseLocked(j)
		case j.label.attributes() != nil:
			p.log.Error("job lost its worker", j.label.attributes()...)
			j.death.Store(&reason)
			j.notify()
		}
	}
}

// signalIdle needs mu.
func (p *Pool) signalIdle() {
	select {
	case <-p.idle:
	default:
		close(p.idle)
	}
}

// killAll ends every worker and lets those who wait for one go.
func (p *Pool) killAll() {
	p.mu.Lock()
	for i := range p.backlogs {
		b := &p.backlogs[i]
		for _, w := range b.waiters {
			close(w.job)
		}
		b.waiters = nil
	}
	for _, j := range p.jobs {
		j.withdraw(ErrClosed)
	}
	if p.idleLocked() {
		p.signalIdle()
	}
	p.mu.Unlock()
	for i := range p.slots {
		p.kill(i, syscall.SIGKILL)
	}
}
