package descriptor

import (
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// Parkable returns a listener for TLS: what crypto/tls holds of an idle
// connection can be parked like a plain one if tls.Server got its connection
// from here.
//
//	hs.ServeTLS(descriptor.Parkable(l), "", "")
func Parkable(l net.Listener) net.Listener { return parkable{l} }

type parkable struct{ net.Listener }

func (l parkable) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &lower{conn: conn, fd: -1}, nil
}

// A TLS is that of a parked connection. Read is called by who serves the connection;
// the other methods may be called meanwhile, by one goroutine at a time.
type TLS struct {
	conn  *tls.Conn
	lower *lower
}

// Read reads what the client sent, without waiting: see the function Read.
func (t *TLS) Read(b []byte) (int, error) { return t.conn.Read(b) }

// Write takes all of b. What the kernel does not take stays here, so give it little
// at a time, a record's 16 KiB at most, and none while it is Waiting.
func (t *TLS) Write(b []byte) (int, error) { return t.conn.Write(b) }

// Waiting reports whether something waits for the kernel.
func (t *TLS) Waiting() bool { return t.lower.waiting() }

// Flush hands the kernel what waits and reports whether something still does. An
// error is found by the next Read or Write.
func (t *TLS) Flush() bool { return t.lower.flush() }

// CloseWrite sends the alert that nothing follows (RFC 8446 §6.1).
func (t *TLS) CloseWrite() error { return t.conn.CloseWrite() }

// Forget is called before the descriptor is closed: nothing uses it any more.
func (t *TLS) Forget() { t.lower.forget() }

// A lower is the connection below TLS. At first it is one of package net; park
// turns it into a bare descriptor on which nothing waits: Read returns
// ErrWouldBlock, and Write keeps what the kernel does not take.
type lower struct {
	conn net.Conn // nil once parked

	mu      sync.Mutex // guards the following; nothing is locked behind it
	fd      int32
	pending []byte
}

// park takes the descriptor over.
func (l *lower) park(fd int32) {
	_ = l.conn.Close() // fd is another descriptor of the same socket
	l.conn, l.fd = nil, fd
}

// forget is called before the descriptor is closed.
func (l *lower) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fd, l.pending = -1, nil
}

// waiting reports whether something waits for the kernel.
func (l *lower) waiting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending) > 0
}

// flush is TLS.Flush.
func (l *lower) flush() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 || l.fd < 0 {
		return false
	}
	n, err := Write(int(l.fd), l.pending)
	l.pending = l.pending[n:]
	if err != nil || len(l.pending) == 0 {
		l.pending = nil
	}
	return len(l.pending) > 0
}

// Read is called by one goroutine, the one that closes the descriptor.
func (l *lower) Read(p []byte) (int, error) {
	if l.conn != nil {
		return l.conn.Read(p)
	}
	l.mu.Lock()
	fd := l.fd
	l.mu.Unlock()
	if fd < 0 {
		return 0, net.ErrClosed
	}
	return Read(int(fd), p)
}

// Write takes all of p. TLS is given no more while something waits, so what
// waits is bounded by a record or two.
func (l *lower) Write(p []byte) (int, error) {
	if l.conn != nil {
		return l.conn.Write(p)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fd < 0 {
		return 0, net.ErrClosed
	}
	n := 0
	if len(l.pending) == 0 {
		var err error
		if n, err = Write(int(l.fd), p); err != nil {
			return n, err
		}
	}
	l.pending = append(l.pending, p[n:]...)
	return len(p), nil
}

// Close of a parked connection is the poller's.
func (l *lower) Close() error {
	if l.conn != nil {
		return l.conn.Close()
	}
	return nil
}

// NetConn returns the connection of package net, or nil.
func (l *lower) NetConn() net.Conn { return l.conn }

func (l *lower) LocalAddr() net.Addr {
	if l.conn != nil {
		return l.conn.LocalAddr()
	}
	return &net.TCPAddr{}
}

func (l *lower) RemoteAddr() net.Addr {
	if l.conn != nil {
		return l.conn.RemoteAddr()
	}
	return &net.TCPAddr{}
}

// What is parked never waits, so it needs no deadlines.

func (l *lower) SetDeadline(t time.Time) error {
	if l.conn != nil {
		return l.conn.SetDeadline(t)
	}
	return nil
}

func (l *lower) SetReadDeadline(t time.Time) error {
	if l.conn != nil {
		return l.conn.SetReadDeadline(t)
	}
	return nil
}

func (l *lower) SetWriteDeadline(t time.Time) error {
	if l.conn != nil {
		return l.conn.SetWriteDeadline(t)
	}
	return nil
}
