package phpbridge

import (
	"cmp"
	"context"
)

// Reload starts PHP anew, with php.ini, extensions and scripts as they are now,
// and replaces each worker when it has done what it runs. No request is lost and
// none waits for another's end. When PHP does not start, everything stays as it
// is and the error says why. ctx ends the wait for it.
func (p *Pool) Reload(ctx context.Context) error {
	p.reloading.Lock() // one at a time
	defer p.reloading.Unlock()
	if p.life.Err() != nil {
		return ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	z, err := p.newZygote(ctx)
	switch {
	case p.life.Err() != nil:
		if err == nil {
			z.close()
		}
		return ErrClosed
	case err != nil:
		p.failed()
		return cmp.Or(ctx.Err(), err)
	case !p.offer(z):
		return ErrClosed
	}
	return nil
}

// adopt makes z the zygote that forks. The workers of its predecessor end when
// they are idle, and it with the last of them.
func (p *Pool) adopt(z *zygote) {
	p.listen(z)
	p.mu.Lock()
	old := p.zygote
	p.zygote = z
	for i := range p.slots {
		if s := &p.slots[i]; s.status == slotRunning {
			s.replaced, s.reason = true, RecycledReload
			p.stopLocked(i)
		}
	}
	p.fillLocked()
	p.mu.Unlock()
	p.completer.ring()
	if old != nil {
		p.log.Info("PHP started anew", "version", z.php, "opcache", z.opcache)
		p.listeners.Go(func() { p.closeRetired(old) }) // ends at once, or when old has ended
	}
}

// closeRetired ends a zygote that forks no more and has no workers left.
func (p *Pool) closeRetired(z *zygote) {
	p.mu.Lock()
	busy := z == p.zygote
	for i := range p.slots {
		busy = busy || p.slots[i].zygote == z && p.slots[i].status != slotEmpty
	}
	p.mu.Unlock()
	if !busy {
		z.close()
	}
}
