package eventstream

import (
	"errors"

	"ephpm/descriptor"
)

const (
	// readSize is how much of what clients sent is read at a time.
	readSize = 4 << 10
	// heardMost is how much a client of TLS may send, in bytes. It has nothing to
	// say; of a plain one nothing is read.
	heardMost = 64 << 10
	// drainMost is how much is thrown away at the end: closing with unread bytes
	// resets the connection, and the client might lose the last event.
	drainMost = 64 << 10
)

// A poller writes the connections that are parked in its epoll set, notices those
// that break, and closes them all, on one goroutine. Whoever sends only queues and
// claims a turn, so nobody waits for a client, and a descriptor is never closed while
// somebody uses it.
type poller struct {
	loop  *Loop
	turns *descriptor.Turns[*Conn]

	// Owned by who gives the turns.
	buf []byte // what is written
	out [3][]byte
	in  []byte // what is read
}

func newPoller(l *Loop) (p *poller, err error) {
	p = &poller{loop: l, buf: make([]byte, chunkHead, chunkHead+batchSize+chunkTail), in: make([]byte, readSize)}
	p.turns, err = descriptor.NewTurns(func(c *Conn) *descriptor.Ticket { return &c.parked.ticket }, p.serve, nil)
	return p, err
}

// start puts a connection into the set and gives it its first turn.
func (p *poller) start(c *Conn) {
	k := c.parked
	events := uint32(descriptor.Out | descriptor.Hup | descriptor.Edge)
	if k.tls != nil { // whose goodbye is something to read
		events |= descriptor.In
	}
	if err := p.turns.Add(c, k.fd, events); err != nil { // no memory
		c.hangUp(CauseGone)
	}
	p.turns.Claim(c)
}

// serve does for c what can be done now.
func (p *poller) serve(c *Conn, events uint32, _ bool) {
	k := c.parked
	if k.fd < 0 {
		return
	}
	if events&descriptor.HangUps != 0 || events&descriptor.In != 0 && !p.hear(k) {
		c.hangUp(CauseGone)
	}
	if k.blocked && events&descriptor.Writable != 0 {
		if k.blocked = k.tls != nil && k.tls.Flush(); k.blocked {
			c.stuck(true)
		} else {
			c.free()
		}
	}
	if !c.silent() {
		p.write(c)
	}
	if told := k.last && len(k.rest) == 0 && !k.blocked; told || c.silent() {
		p.drop(c, told)
	}
}

// hear reads what a client of TLS sent, which means nothing, and reports whether it
// is there.
func (p *poller) hear(k *parked) bool {
	for k.heard < heardMost {
		n, err := k.tls.Read(p.in)
		k.heard += n
		if err != nil {
			return errors.Is(err, descriptor.ErrWouldBlock)
		}
	}
	return false
}

// write writes until the kernel takes no more or nothing is left.
func (p *poller) write(c *Conn) {
	k := c.parked
	rest, fresh, progress := k.rest, 0, false
	for !k.blocked {
		if len(rest) == 0 {
			if rest = p.next(c); len(rest) == 0 {
				break
			}
			fresh = len(rest)
		}
		n, full, err := k.send(rest[0])
		if err != nil {
			c.hangUp(CauseGone)
			return
		}
		progress = progress || n > 0
		if rest[0] = rest[0][n:]; len(rest[0]) == 0 {
			rest = rest[1:]
		}
		k.blocked = full
	}
	if k.keep(rest, fresh); k.blocked {
		c.stuck(progress)
	}
}

// next returns what is written next, in the poller's own memory.
func (p *poller) next(c *Conn) [][]byte {
	k := c.parked
	if k.last {
		return nil
	}
	n := c.next(p.buf)
	if !n.some {
		return nil
	}
	k.last = n.last
	return k.frame(n.b, n.large, n.last, p.out[:0])
}

// drop closes a connection that is over. One that was not told has nothing to wait
// for.
func (p *poller) drop(c *Conn, told bool) {
	k := c.parked
	fd := k.fd
	p.turns.Leave(c)
	k.fd, k.rest = -1, nil
	switch {
	case !told:
		descriptor.Reset(fd)
	case k.tls != nil:
		_ = k.tls.CloseWrite() // the client may have gone
		fallthrough
	default:
		p.drain(fd)
	}
	if k.tls != nil {
		k.tls.Forget()
	}
	descriptor.Close(fd)
	c.mu.Lock()
	c.leaveLocked()
	c.mu.Unlock()
	c.report()
	p.loop.left()
}

func (p *poller) drain(fd int) {
	for range drainMost / readSize {
		if _, err := descriptor.Read(fd, p.in); err != nil {
			return
		}
	}
}
