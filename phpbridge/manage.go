package phpbridge

// #include "wire.h"
import "C"

import (
	"syscall"
	"time"
)

// The times by which the pool is looked after.
const (
	lookEvery  = time.Second
	retryAfter = 100 * time.Millisecond // between workers that die as they are born
	stopWait   = 2 * time.Second        // for idle workers, at the end
)

// manage owns the workers: it forks, replaces, adds and ends them. It ends when
// stop is closed, and leaves no worker behind.
func (p *Pool) manage() {
	defer close(p.managed)
	p.listen(p.zygote)
	grow := time.NewTimer(time.Hour)
	grow.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	p.fill()
	for {
		select {
		case m := <-p.messages:
			p.handle(m)
		case z := <-p.reloaded:
			p.adopt(z)
		case <-p.pressured:
			grow.Reset(p.options.SpawnAfter)
		case <-grow.C:
			if p.grow() || p.stopWatching() {
				grow.Reset(p.options.SpawnAfter)
			}
		case <-look.C:
			p.wakeAnother()
			p.wakeZygotes()
			p.endStuck()
			p.shrink()
			p.replaceLarge()
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

// listen passes a zygote's messages on, the last of which is that it has gone.
func (p *Pool) listen(z *zygote) {
	p.listeners.Go(func() { // ends with the zygote
		for {
			m, err := z.receive()
			if err != nil {
				p.messages <- message{from: z, gone: true}
				return
			}
			p.messages <- m
		}
	})
}

func (p *Pool) handle(m message) {
	if m.gone {
		p.zygoteGone(m.from)
		return
	}
	if m.slot >= len(p.slots) {
		return
	}
	switch m.kind {
	case C.EPHPM_MSG_FORKED:
		p.forked(m)
	case C.EPHPM_MSG_DIED:
		p.died(m, describe(syscall.WaitStatus(m.value)))
	case C.EPHPM_MSG_TRACED:
		p.traced(m)
	case C.EPHPM_MSG_OPCACHED:
		p.opcached(m)
	case C.EPHPM_MSG_EMPTIED:
		p.log.Debug("OPcache was emptied")
	case C.EPHPM_MSG_STUCK:
		p.mu.Lock()
		current := m.from == p.zygote
		p.mu.Unlock()
		if current { // or its workers end as soon as they can
			p.reloadStuck()
		}
	}
}

// reloadStuck gives scripts a cache again, for which those that use the old one
// need not end. manage goes on meanwhile.
func (p *Pool) reloadStuck() {
	p.log.Warn("scripts keep OPcache from being emptied, starting PHP anew")
	p.listeners.Go(func() { // ends when life does
		if err := p.Reload(p.life); err != nil && p.life.Err() == nil {
			p.log.Error("PHP does not start anew", "error", err)
		}
	})
}

func (p *Pool) forked(m message) {
	if m.value < 0 {
		p.died(m, "the system refused to fork")
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := &p.slots[m.slot]; s.zygote == m.from && s.generation == m.generation {
		s.pid = int(m.value)
	}
}

// zygoteGone takes note of the end of a zygote, and of all its workers: what
// they ran is lost, what waits is not. One that ended unasked is replaced.
func (p *Pool) zygoteGone(z *zygote) {
	z.close() // after it nobody runs: the workers are killed when it ends
	p.mu.Lock()
	current := z == p.zygote
	for i := range p.slots {
		if s := &p.slots[i]; s.zygote == z && s.status != slotEmpty {
			p.forgetLocked(i, "the zygote ended")
			s.status = slotEmpty
			p.counts.crashes++
		}
	}
	if current {
		p.zygote = nil
	}
	p.stirLocked()
	p.mu.Unlock()
	p.handOver()
	if current {
		p.log.Error("the zygote has ended, starting PHP anew")
		p.startAnew()
	}
}

// startAnew tries until PHP starts, or the pool closes. manage goes on meanwhile.
func (p *Pool) startAnew() {
	p.listeners.Go(func() { // ends when life does
		for {
			z, err := p.newZygote(p.life)
			if err == nil {
				p.offer(z)
				return
			}
			if p.life.Err() != nil {
				return
			}
			p.failed()
			p.log.Error("PHP does not start", "error", err)
			select {
			case <-time.After(lookEvery):
			case <-p.life.Done():
				return
			}
		}
	})
}

// failed counts that PHP did not start.
func (p *Pool) failed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.failures++
}

// offer gives a new zygote to manage. False if the pool closes.
func (p *Pool) offer(z *zygote) bool {
	select {
	case p.reloaded <- z:
		return true
	case <-p.life.Done():
		z.close()
		return false
	}
}

// endWorkers lets the idle workers end, and then the zygotes.
func (p *Pool) endWorkers() {
	p.mu.Lock()
	p.want = [classes + 1]int{}
	zygotes := map[*zygote]bool{}
	if p.zygote != nil {
		zygotes[p.zygote] = true
	}
	for i := range p.slots {
		s := &p.slots[i]
		if s.status == slotRunning {
			p.stopLocked(i)
		}
		if s.status != slotEmpty {
			zygotes[s.zygote] = true
		}
	}
	p.zygote = nil // it forks no more, and its end is no accident
	p.mu.Unlock()

	late := time.After(stopWait)
	for waiting := true; waiting && p.alive(); {
		select {
		case m := <-p.messages:
			p.handle(m)
		case <-late:
			p.log.Warn("workers did not end in time")
			waiting = false
		}
	}
	for z := range zygotes {
		z.close()
	}
	p.dismissListeners()
}

// dismissListeners waits for them. What they still say is dropped: what is ours has
// room in the channel, but a zygote that a script has taken over may say more.
func (p *Pool) dismissListeners() {
	done := make(chan struct{})
	go func() { // ends with the listeners, whose zygotes have ended
		p.listeners.Wait()
		close(done)
	}()
	for {
		select {
		case <-p.messages:
		case <-done:
			return
		}
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
