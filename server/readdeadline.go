package server

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// longAgo is the deadline by which net/http breaks off a read.
var longAgo = time.Unix(1, 0)

// A readDeadline is when the reads of a connection fail. net/http sets it half a
// dozen times a request, mostly to about what it was. The descriptor hears only of
// one that is earlier than what it has, and of the one that counts when that has
// come. The zero value is none. The methods may be called from any goroutine.
type readDeadline struct {
	mu    sync.Mutex // guards the following
	wants time.Time  // zero: none
	has   time.Time  // the descriptor
}

// set has reads of c fail from t on.
func (d *readDeadline) set(c *net.TCPConn, t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wants = t
	switch {
	case d.has.Equal(longAgo): // it would end every read
	case t.IsZero(), !d.has.IsZero() && !t.Before(d.has):
		return nil
	}
	return d.giveLocked(c)
}

func (d *readDeadline) giveLocked(c *net.TCPConn) error {
	d.has = d.wants
	return c.SetReadDeadline(d.wants)
}

// early reports whether a read of c that failed is to be tried again, because it is
// not the time yet.
func (d *readDeadline) early(c *net.TCPConn, err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.wants.IsZero() && !time.Now().Before(d.wants) {
		return false
	}
	return d.giveLocked(c) == nil
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.length.deadline()
	if !t.Equal(longAgo) {
		c.quiet.begin()
	} else if !c.quiet.end() {
		return nil
	}
	return c.deadline.set(c.TCPConn, t)
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if had := c.writesEnd.Swap(!t.IsZero()); !had && t.IsZero() {
		return nil // as after every request
	}
	return c.TCPConn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// receive reads what there is, or waits for it until the deadline.
func (c *conn) receive(p []byte) (int, error) {
	// net/http alone reads single bytes, behind a request. For another one it
	// would be a moment late.
	if len(p) == 1 && !c.quiet.wait(c.all.waves) {
		return 0, os.ErrDeadlineExceeded
	}
	defer c.quiet.leave()
	if !c.quiet.enter() {
		return 0, os.ErrDeadlineExceeded
	}
	for {
		n, err := c.TCPConn.Read(p)
		if err == nil || !c.deadline.early(c.TCPConn, err) {
			return n, err
		}
	}
}
