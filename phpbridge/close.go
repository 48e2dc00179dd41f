package phpbridge

import (
	"context"
	"syscall"
	"time"
)

// killWait is how long the death of a killed worker may take to be known.
const killWait = 5 * time.Second

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
	p.endLife()
	p.reloading.Lock() // until a Reload that runs has given up, and for ever
	defer p.reloading.Unlock()

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
		p.disarm(j) // and wait for a check that runs
	}
	p.memory.close()
	return err
}

// signalIdle needs mu.
func (p *Pool) signalIdle() {
	select {
	case <-p.idle:
	default:
		close(p.idle)
	}
}

// killAll ends every worker and lets those who wait for one go. From now on
// nothing is forked and nothing is submitted.
func (p *Pool) killAll() {
	p.mu.Lock()
	p.killed = true
	for i := range p.backlogs {
		b := &p.backlogs[i]
		for _, w := range b.waiters {
			w.turn <- ErrClosed
		}
		b.waiters = nil
	}
	for _, j := range p.jobs {
		j.withdraw(ErrClosed)
	}
	if p.idleLocked() {
		p.signalIdle()
	}
	n := len(p.slots)
	p.mu.Unlock()
	for i := range n {
		p.kill(i, syscall.SIGKILL)
	}
}

// failLost ends requests whose worker is dead but cannot be told from their
// jobs, because somebody has overwritten the state.
func (p *Pool) failLost() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.slots {
		if p.slots[i].status != slotEmpty {
			return // its worker may be this one, and dies yet
		}
	}
	reason := "the state of its job was lost"
	for _, j := range p.jobs {
		attributes := j.label.attributes()
		if attributes == nil || j.death.Load() != nil || j.withdrawn.Load() != nil {
			continue // free, or on its way
		}
		p.log.Error("job lost its worker", attributes...)
		if j.orphan {
			p.releaseLocked(j) // nobody waits in line any more
			continue
		}
		j.death.Store(&reason)
		j.alarm()
	}
}
