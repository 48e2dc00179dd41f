package eventstream

// maxWaiting is how many messages may wait while one is handled.
const maxWaiting = 8

// Handle runs f, which handles a message of size bytes, when those that came before
// it have been handled. It fails with ErrFull when too many wait and with ErrClosed
// when the connection has ended meanwhile, unless that is only the client's doing:
// what it sent before is handled.
func (c *Conn) Handle(size int, f func()) error {
	c.mu.Lock()
	switch {
	case c.end != nil || !c.open:
		c.mu.Unlock()
		return ErrClosed
	case len(c.waiting) >= maxWaiting:
		c.mu.Unlock()
		return ErrFull
	}
	if c.handling {
		turn := make(chan struct{})
		c.waiting = append(c.waiting, turn)
		c.mu.Unlock()
		<-turn
		c.mu.Lock()
	}
	c.handling = true
	defer c.handled()
	if c.end != nil && c.end.drops {
		c.mu.Unlock()
		return ErrClosed
	}
	c.countInLocked(size)
	c.mu.Unlock()
	f()
	return nil
}

// handled gives the turn to the next message.
func (c *Conn) handled() {
	c.mu.Lock()
	if len(c.waiting) > 0 {
		close(c.waiting[0])
		c.waiting = c.waiting[1:]
		c.mu.Unlock()
		return
	}
	c.waiting, c.handling = nil, false
	c.mu.Unlock()
	c.report()
}
