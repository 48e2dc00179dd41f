package websocket

import (
	"errors"

	"golang.org/x/sys/unix"

	"ephpm/descriptor"
)

const (
	// pollBuffer is how much is read at a time. One buffer serves all
	// connections of a poller.
	pollBuffer = 16 << 10
	// readBudget is how much one connection may send before the others are
	// looked at.
	readBudget = 16 * pollBuffer
	// drainBudget is how much is thrown away of what a client sent behind its
	// close frame.
	drainBudget = 64 << 10
)

// interest is what a poller wants to know of a connection.
const interest = descriptor.In | descriptor.Out | descriptor.Hup | descriptor.Edge

// A poller is the line of connections that are parked in its epoll set as bare
// descriptors. One goroutine reads and closes them all, so that a descriptor is
// never closed while somebody reads it, and its number never means another
// connection. Writing is done by whoever has something to send,
// under Conn.mu; that never waits, and what the kernel does not take waits for
// the poller.
type poller struct {
	turns *descriptor.Turns[*Conn]

	// Owned by who gives the turns.
	buf    []byte
	hungry []*Conn // were stopped by readBudget
}

func newPoller() (p *poller, err error) {
	p = &poller{buf: make([]byte, pollBuffer)}
	p.turns, err = descriptor.NewTurns(func(c *Conn) *descriptor.Ticket { return &c.ticket }, p.turn, p.serveHungry)
	return p, err
}

func (p *poller) serveHungry() bool {
	hungry := p.hungry
	p.hungry = nil
	for _, c := range hungry {
		p.turn(c, 0, false)
	}
	return len(hungry) > 0
}

// turn does for c what can be done now.
func (p *poller) turn(c *Conn, events uint32, claimed bool) {
	c.unread = c.unread || claimed // whoever claims a turn may know more than the events say
	c.mu.Lock()
	idle := c.gone || !c.started
	c.mu.Unlock()
	if idle {
		return
	}
	if events&descriptor.Readable != 0 {
		c.unread = true
		c.hungUp = c.hungUp || events&descriptor.HangUps != 0
	}
	if events&descriptor.Writable != 0 {
		p.writable(c)
	}
	p.read(c)
	c.mu.Lock()
	over := c.overLocked() && !c.sending // or the sender claims it later
	c.mu.Unlock()
	if over {
		p.drop(c)
	}
}

// drop closes a connection that is over.
func (p *poller) drop(c *Conn) {
	c.mu.Lock()
	if c.end.frame != nil {
		p.drain(c)
		if c.tls != nil {
			_ = c.tls.CloseWrite() // the alert that nothing follows
		}
	}
	fd := int(c.fd)
	c.fd = -1
	if c.tls != nil {
		c.tls.Forget()
	}
	c.leaveLocked()
	c.mu.Unlock()
	_ = unix.Close(fd)
	p.turns.Leave(c)
	c.in, c.stash = nil, nil
	c.report()
}

// drain reads what is left: closing with unread bytes resets the connection, and
// the client might lose the close frame.
func (p *poller) drain(c *Conn) {
	for range drainBudget / len(p.buf) {
		if n, err := descriptor.Read(int(c.fd), p.buf); n <= 0 || err != nil {
			return
		}
	}
}

// read takes in what the client sent, as far as there is room for it.
func (p *poller) read(c *Conn) {
	have := copy(p.buf, c.stash)
	c.stash = nil
	for budget := readBudget; ; {
		if have > 0 && !c.deaf {
			used, verdict, err := c.feed(p.buf[:have])
			have = copy(p.buf, p.buf[used:have])
			if verdict == paused {
				break
			}
			if err != nil {
				c.fail(err)
			}
			c.deaf = err != nil || verdict == ended
		}
		if c.deaf {
			have = 0
		}
		if !c.unread {
			break
		}
		if budget <= 0 {
			p.hungry = append(p.hungry, c)
			break
		}
		n := p.receive(c, p.buf[have:])
		have += n
		budget -= n
	}
	if have > 0 {
		c.stash = append([]byte(nil), p.buf[:have]...)
	}
}

// receive reads once. It unsets c.unread when there is nothing more.
func (p *poller) receive(c *Conn, b []byte) int {
	var n int
	var err error
	if c.tls != nil {
		n, err = c.tls.Read(b)
	} else {
		n, err = descriptor.Read(int(c.fd), b)
		// Edge-triggered: a read that is short emptied the socket, and what comes
		// later is an event. The end of the stream was one already.
		c.unread = n == len(b) || c.hungUp
	}
	if n > 0 {
		c.heardNow()
		return n
	}
	c.unread = false
	if !errors.Is(err, descriptor.ErrWouldBlock) {
		c.lost()
	}
	return 0
}

// start puts c into the set. It wakes run only if something of the client may
// be here already.
func (p *poller) start(c *Conn) {
	early := c.stash != nil || c.tls != nil
	if err := p.turns.Add(c, int(c.fd), interest); err != nil { // no memory
		c.cutLocked(CauseGone)
	}
	if early || c.end != nil { // it may be over
		p.turns.Claim(c)
	}
}

func (p *poller) wakeReader(c *Conn) { p.turns.Claim(c) }
func (p *poller) hangUp(c *Conn)     { p.turns.Claim(c) }

func (p *poller) halfClose(c *Conn) {
	if c.tls != nil {
		_ = c.tls.CloseWrite() // as below
		return
	}
	_ = unix.Shutdown(int(c.fd), unix.SHUT_WR) // the reader finds out when it did not work
}

// flush writes what the kernel takes.
func (p *poller) flush(c *Conn) {
	if c.sending || c.blocked {
		return
	}
	var buf []byte
	if len(c.queue) > 1 {
		batch := batches.Get().(*[batchSize]byte)
		defer batches.Put(batch)
		buf = batch[:0]
	}
	for progress := false; ; {
		piece := c.nextLocked(buf)
		if piece.b == nil {
			break
		}
		n, full, err := c.sendLocked(piece.b)
		if err != nil {
			c.cutLocked(CauseGone)
			return
		}
		if n > 0 {
			progress = true
			c.tookLocked(piece, n)
		}
		if full {
			c.blocked = true
			c.stuckLocked(progress)
			return
		}
	}
	c.freeLocked()
	if c.closeSent && c.peerClosed {
		p.turns.Claim(c)
	}
}

// sendLocked hands b, or a part of it, to the kernel, and reports whether that
// takes no more now. TLS is given a record at a time, so that little waits below
// it.
func (c *Conn) sendLocked(b []byte) (n int, full bool, err error) {
	if c.tls == nil {
		n, err = descriptor.Write(int(c.fd), b)
		return n, n < len(b), err
	}
	n, err = c.tls.Write(b[:min(len(b), chunkSize)])
	return n, c.tls.Waiting(), err
}

// writable is called when the kernel takes more.
func (p *poller) writable(c *Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.sending:
		c.edge = true
	case c.tls != nil && c.tls.Flush():
		if c.blocked {
			c.stuckLocked(true)
		}
	case c.blocked:
		c.blocked = false
		p.flush(c)
	}
}
