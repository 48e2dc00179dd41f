package websocket

import (
	"errors"
	"io"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
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

	interest = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET
	hangUps  = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	readable = unix.EPOLLIN | hangUps
	writable = unix.EPOLLOUT | unix.EPOLLHUP | unix.EPOLLERR
)

// errWouldBlock means that there is nothing to read now. crypto/tls goes on
// after an error that is temporary.
var errWouldBlock error = wouldBlock{}

type wouldBlock struct{}

func (wouldBlock) Error() string   { return "nothing to read now" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

// A poller is the line of connections that are parked in its epoll set as bare
// descriptors. One goroutine reads and closes them all, so that a descriptor is
// never closed while somebody reads it, and its number never means another
// connection. Writing is done by whoever has something to send,
// under Conn.mu; that never waits, and what the kernel does not take waits for
// the poller.
type poller struct {
	loop *Loop
	set  int      // the epoll set
	file *os.File // the same, as Go's own poller waits for it
	bell int      // an eventfd in the set
	done chan struct{}

	mu     sync.Mutex // guards the following; taken with Conn.mu held, not before it
	claims []*Conn    // want a turn
	conns  []*Conn    // by slot; the bell's is nil
	free   []int32    // slots
	rung   bool
	closed bool

	// Owned by run.
	buf    []byte
	hungry []*Conn // were stopped by readBudget
}

// bellSlot is the bell's in the set; no connection has it.
const bellSlot = 0

func newPoller(l *Loop) (*poller, error) {
	set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(set)
		return nil, err
	}
	err = errors.Join(
		unix.SetNonblock(set, true), // or Go's poller would not wait for it
		unix.EpollCtl(set, unix.EPOLL_CTL_ADD, bell, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: bellSlot}),
	)
	if err != nil {
		_, _ = unix.Close(set), unix.Close(bell)
		return nil, err
	}
	p := &poller{
		loop: l, set: set, file: os.NewFile(uintptr(set), "epoll"), bell: bell, done: make(chan struct{}),
		conns: make([]*Conn, 1), buf: make([]byte, pollBuffer),
	}
	go p.run() // close waits for it
	return p, nil
}

// close ends run. No connection is left.
func (p *poller) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.ring()
	<-p.done
	_, _ = p.file.Close(), unix.Close(p.bell)
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
		p.ring()
	}
}

// ring makes the set readable. Each write is an event by itself, so nobody has
// to read.
func (p *poller) ring() {
	one := [8]byte{1}
	_, _ = unix.Write(p.bell, one[:]) // fails only after 2^64 rings
}

// run serves all connections until close.
func (p *poller) run() {
	defer close(p.done)
	raw, err := p.file.SyscallConn()
	if err != nil {
		return // never: the file is open
	}
	events, conns := make([]unix.EpollEvent, pollEvents), make([]*Conn, pollEvents)
	_ = raw.Read(func(uintptr) bool { // ends by close alone
		for {
			claimed, closed := p.serveClaims()
			if closed {
				return true
			}
			n, _ := unix.EpollWait(p.set, events, 0)
			n = max(0, n)
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
func (p *poller) find(events []unix.EpollEvent, conns []*Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, e := range events {
		conns[i] = p.conns[e.Fd]
	}
}

func (p *poller) serveClaims() (any, closed bool) {
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
	if events&readable != 0 {
		c.unread = true
		c.hungUp = c.hungUp || events&hangUps != 0
	}
	if events&writable != 0 {
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
			_ = c.tls.conn.CloseWrite() // the alert that nothing follows
		}
	}
	fd := int(c.fd)
	c.fd = -1
	if c.tls != nil {
		c.tls.lower.forget()
	}
	c.leaveLocked()
	c.mu.Unlock()
	_ = unix.Close(fd)
	p.mu.Lock()
	if c.slot != bellSlot {
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
		if n, err := receive(int(c.fd), p.buf); n <= 0 || err != nil {
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
		n, err = c.tls.conn.Read(b)
	} else {
		n, err = receive(int(c.fd), b)
		// Edge-triggered: a read that is short emptied the socket, and what comes
		// later is an event. The end of the stream was one already.
		c.unread = n == len(b) || c.hungUp
	}
	if n > 0 {
		c.heardNow()
		return n
	}
	c.unread = false
	if !errors.Is(err, errWouldBlock) {
		c.lost()
	}
	return 0
}

// receive reads without waiting.
func receive(fd int, b []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch {
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			return 0, errWouldBlock
		case errno != 0:
			return 0, errno
		case n == 0:
			return 0, io.EOF
		default:
			return int(n), nil
		}
	}
}

// transmit writes without waiting.
func transmit(fd int, b []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, nil
		default:
			return 0, errno
		}
	}
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
	err := unix.EpollCtl(p.set, unix.EPOLL_CTL_ADD, int(c.fd), &unix.EpollEvent{Events: interest, Fd: slot})
	if err != nil { // no memory
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
		_ = c.tls.conn.CloseWrite() // as below
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
		n, err = transmit(int(c.fd), b)
		return n, n < len(b), err
	}
	n, err = c.tls.conn.Write(b[:min(len(b), chunkSize)])
	return n, c.tls.lower.waiting(), err
}

// writable is called when the kernel takes more.
func (p *poller) writable(c *Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.sending:
		c.edge = true
	case c.tls != nil && c.tls.lower.flush():
		if c.blocked {
			c.stuckLocked(true)
		}
	case c.blocked:
		c.blocked = false
		p.flush(c)
	}
}
