package phpbridge

// #include "wire.h"
import "C"

import (
	"syscall"
	"time"
)

// The times by which the pool grows and shrinks.
const (
	shrinkEvery = time.Second
	retryAfter  = 100 * time.Millisecond // between workers that die as they are born
	stopWait    = 2 * time.Second        // for idle workers, at the end
)

// manage owns the workers: it forks, replaces, adds and ends them. It ends when
// stop is closed, and leaves no worker behind.
func (p *Pool) manage() {
	defer close(p.managed)
	go p.receive(p.zygote, p.messages) // ends with the zygote
	grow := time.NewTimer(time.Hour)
	grow.Stop()
	shrink := time.NewTicker(shrinkEvery)
	defer shrink.Stop()
	p.fill()
	for {
		select {
		case m, ok := <-p.messages:
			if !ok {
				p.restart()
			} else {
				p.handle(m)
			}
		case <-p.pressured:
			grow.Reset(p.options.SpawnAfter)
		case <-grow.C:
			if p.grow() || p.stopWatching() {
				grow.Reset(p.options.SpawnAfter)
			}
		case <-shrink.C:
			p.shrink()
			p.fill()
		case <-p.stop:
			p.endWorkers()
			return
		}
	}
}

// newMessages has room for all that a zygote can have to say about its slots, so
// that it never waits for manage while manage waits for it.
func newMessages() chan message { return make(chan message, 4*maxSlots) }

// receive passes the zygote's messages on and closes the channel at their end.
func (p *Pool) receive(z *zygote, to chan<- message) {
	for {
		m, err := z.receive()
		if err != nil {
			close(to)
			return
		}
		to <- m
	}
}

func (p *Pool) handle(m message) {
	if m.slot >= len(p.slots) {
		return
	}
	switch m.kind {
	case C.EPHPM_MSG_FORKED:
		if m.value < 0 {
			p.died(m.slot, m.generation, "the system refused to fork")
		}
	case C.EPHPM_MSG_DIED:
		status := syscall.WaitStatus(m.value)
		p.died(m.slot, m.generation, describe(status))
	}
}

// restart replaces a zygote that has ended, with all workers: what they ran is
// lost, what waits is not.
func (p *Pool) restart() {
	p.log.Error("the zygote has ended, starting PHP anew")
	p.mu.Lock()
	old := p.zygote
	p.zygote = nil
	p.mu.Unlock()
	old.close() // after it nobody runs: the workers are killed when it ends
	p.mu.Lock()
	for i := range p.slots {
		if p.slots[i].status != slotEmpty {
			p.forgetLocked(i, "the zygote ended")
			p.slots[i].status = slotEmpty
			p.counts.crashes++
		}
	}
	p.mu.Unlock()
	for {
		z, err := p.newZygote()
		if err == nil {
			p.adopt(z)
			return
		}
		p.log.Error("PHP does not start", "error", err)
		select {
		case <-time.After(shrinkEvery):
		case <-p.stop:
			return
		}
	}
}

func (p *Pool) adopt(z *zygote) {
	p.messages = newMessages()
	p.mu.Lock()
	p.zygote = z
	p.mu.Unlock()
	go p.receive(z, p.messages) // ends with the zygote
	p.fill()
	p.completer.ring()
}

// endWorkers lets the idle workers end, and then the zygote.
func (p *Pool) endWorkers() {
	p.mu.Lock()
	z := p.zygote
	p.want = [classes + 1]int{}
	for i := range p.slots {
		if p.slots[i].status == slotRunning {
			p.stopLocked(i)
		}
	}
	p.mu.Unlock()
	if z == nil {
		return
	}
	late := time.After(stopWait)
	for p.alive() {
		select {
		case m, ok := <-p.messages:
			if !ok {
				z.close()
				return
			}
			p.handle(m)
		case <-late:
			p.log.Warn("workers did not end in time")
			p.dropMessages(z)
			return
		}
	}
	p.dropMessages(z)
}

// dropMessages closes the zygote while receive may still have a message.
func (p *Pool) dropMessages(z *zygote) {
	z.close()
	for range p.messages {
	}
}

func (p *Pool) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.slots {
		if p.slots[i].status != slotEmpty {
			return true
		}
	}
	return false
}
