package websocket

import (
	"errors"
	"sync"

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
	// pollEvents is how many connections are looked at between two looks for
	// more.
	pollEvents = 256
)

// interest is what a poller wants to know of a connection.
const interest = descriptor.In | descriptor.Out | descriptor.Hup | descriptor.Edge

// noSlot is that of a connection in no set.
const noSlot = 0

// A poller is the line of connections that are parked in its epoll set as bare
// descriptors. One goroutine reads and closes them all, so that a descriptor is
// never closed while somebody reads it, and its number never means another
// connection. Writing is done by whoever has something to send,
// under Conn.mu; that never waits, and what the kernel does not take waits for
// the poller.
type poller struct {
	loop *Loop
	set  *descriptor.Set
	done chan struct{}

	mu     sync.Mutex // guards the following; taken with Conn.mu held, not before it
	claims []*Conn    // want a turn
	conns  []*Conn    // by slot; noSlot's is nil
	free   []int32    // slots
	rung   bool
	closed bool

	// Owned by run.
	buf    []byte
	hungry []*Conn // were stopped by readBudget
}

func newPoller(l *Loop) (*poller, error) {
	set, err := descriptor.NewSet()
	if err != nil {
		return nil, err
	}
	p := &poller{loop: l, set: set, done: make(chan struct{}), conns: make([]*Conn, 1), buf: make([]byte, pollBuffer)}
	go p.run() // close waits for it
	return p, nil
}

// close ends run. No connection is left.
func (p *poller) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.set.Ring()
	<-p.done
	p.set.Close()
}

// claim gives c a turn.
func (p *poller) claim(c *Conn) {
	p.mu.Lock()
	if c.claimed {
		p.mu.Unlock()
		return
	}
	c.claimed = true
	p.claims = append(p.claims, c)
	ring := !p.rung
	p.rung = true
	p.mu.Unlock()
	if ring {
		p.set.Ring()
	}
}

// run serves all connections until close.
func (p *poller) run() {
	defer close(p.done)
	events, conns := make([]descriptor.Event, pollEvents), make([]*Conn, pollEvents)
	p.set.Serve(func() bool {
		for {
			claimed, closed := p.serveClaims()
			if closed {
				return true
			}
			n := p.set.Take(events)
			p.find(events[:n], conns)
			for i, c := range conns[:n] {
				if c != nil {
					p.turn(c, events[i].Events)
				}
			}
			clear(conns[:n]) // keep no connection alive
			if n == 0 && !claimed && !p.serveHungry() {
				return false // Go's poller wakes us
			}
		}
	})
}

// find sets the connections of events. What is dropped meanwhile stays known as
// gone, whoever gets its slot.
func (p *poller) find(events []descriptor.Event, conns []*Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, e := range events {
		if e.Fd != descriptor.Bell {
			conns[i] = p.conns[e.Fd]
		}
	}
}

func (p *poller) serveClaims() (some, closed bool) {
	p.mu.Lock()
	claims := p.claims
	p.claims, p.rung = nil, false
	for _, c := range claims {
		c.claimed = false
	}
	closed = p.closed
	p.mu.Unlock()
	for _, c := range claims {
		c.unread = true // whoever claims a turn may know more than the events say
		p.turn(c, 0)
	}
	return len(claims) > 0, closed
}

func (p *poller) serveHungry() bool {
	hungry := p.hungry
	p.hungry = nil
	for _, c := range hungry {
		p.turn(c, 0)
	}
	return len(hungry) > 0
}

// turn does for c what can be done now.
func (p *poller) turn(c *Conn, events uint32) {
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
	p.mu.Lock()
	if c.slot != noSlot {
		p.conns[c.slot] = nil
		p.free = append(p.free, c.slot)
	}
	p.mu.Unlock()
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
	p.mu.Lock()
	slot := int32(len(p.conns))
	if n := len(p.free); n > 0 {
		slot, p.free = p.free[n-1], p.free[:n-1]
	} else {
		p.conns = append(p.conns, nil)
	}
	p.conns[slot], c.slot = c, slot
	p.mu.Unlock()
	if err := p.set.Add(int(c.fd), interest, slot); err != nil { // no memory
		c.cutLocked(CauseGone)
	}
	if early || c.end != nil { // it may be over
		p.claim(c)
	}
}

func (p *poller) wakeReader(c *Conn) { p.claim(c) }
func (p *poller) hangUp(c *Conn)     { p.claim(c) }

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
		p.claim(c)
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
