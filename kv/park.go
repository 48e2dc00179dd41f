package kv

import (
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"ephpm/descriptor"
)

// A socket is a client's connection: conn while a goroutine serves the client,
// a bare descriptor while the client is parked in a loop. Who serves the client
// owns it; anybody may cut it.
type socket struct {
	conn net.Conn // nil while it is parked

	mu  sync.Mutex // guards the following, and changes of conn
	fd  int        // -1 unless it is parked
	cut bool
}

// cut ends the connection: whoever serves the client finds out. Any goroutine may
// call it.
func (c *client) cut() {
	s := &c.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = true
	if s.conn != nil {
		_ = s.conn.Close() // ends what reads and writes
	} else if s.fd >= 0 {
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR) // it may be over already
	}
}

// close frees the connection. Only who serves the client may call it.
func (c *client) close() {
	s := &c.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = true
	if s.conn != nil {
		_ = s.conn.Close() // all was written, or cannot be
	} else if s.fd >= 0 {
		c.loop.remove(s.fd)
		_ = unix.Close(s.fd)
		s.fd = -1
	}
}

func (c *client) parked() bool { return c.socket.fd >= 0 }

// park gives the client to its loop, if it has one that can serve it. Then the
// caller must not touch it any more.
func (c *client) park() bool {
	if c.loop == nil || c.store == nil || c.store.codec != nil || c.subscriber.runs {
		return false // to compress takes long, and the others have to wait
	}
	s := &c.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut || c.evicted.Load() {
		return false
	}
	fd, ok := descriptor.Duplicate(s.conn)
	if !ok {
		return false
	}
	conn := s.conn
	if len(c.in) == 0 {
		c.in = nil
	}
	c.reply.b = nil
	s.conn, s.fd = nil, fd
	if !c.loop.add(c, fd) {
		s.conn, s.fd = conn, -1
		_ = unix.Close(fd)
		return false
	}
	_ = conn.Close() // fd is another descriptor of the same socket
	return true
}

// unpark takes the client from its loop. It fails if the connection was cut, or
// the process has no descriptor left.
func (c *client) unpark() bool {
	s := &c.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut {
		return false
	}
	c.loop.remove(s.fd)
	file := os.NewFile(uintptr(s.fd), "")
	defer file.Close() //nolint:errcheck // conn is another descriptor of the same socket
	s.fd = -1
	conn, err := net.FileConn(file)
	s.conn = conn
	return err == nil
}
