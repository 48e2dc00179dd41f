package phpbridge

import (
	"syscall"
)

// kill sends a signal to the worker in a slot, whatever it does.
func (p *Pool) kill(slot int, sig syscall.Signal) {
	p.mu.Lock()
	if slot >= len(p.slots) || p.slots[slot].status == slotEmpty {
		p.mu.Unlock()
		return
	}
	z, generation := p.slots[slot].zygote, p.slots[slot].generation
	p.mu.Unlock()
	p.signal(z, slot, generation, sig)
}

// killHolder sends a signal to the worker that has a job, but not to one that
// took the place of a dead holder.
func (p *Pool) killHolder(j *job, sig syscall.Signal) {
	p.mu.Lock()
	slot := j.state().slot()
	if j.death.Load() != nil || slot >= len(p.slots) || p.slots[slot].status == slotEmpty {
		p.mu.Unlock()
		return
	}
	z, generation := p.slots[slot].zygote, p.slots[slot].generation
	p.mu.Unlock()
	p.signal(z, slot, generation, sig)
}

func (p *Pool) signal(z *zygote, slot int, generation uint32, sig syscall.Signal) {
	if err := z.kill(slot, generation, sig); err != nil {
		p.giveUp(z, err)
	}
}

// giveUp ends a zygote that does not listen. Its end is seen by its listener, and
// another takes its place.
func (p *Pool) giveUp(z *zygote, err error) {
	p.log.Error("the zygote does not listen, it is killed", "error", err)
	_ = z.cmd.Process.Kill() // it may have gone just now
}
