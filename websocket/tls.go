package websocket

import (
	"crypto/tls"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Parkable returns a listener for TLS: what crypto/tls holds of an idle
// connection can be parked like a plain one if tls.Server got its connection
// from here.
//
//	hs.ServeTLS(websocket.Parkable(l), "", "")
func Parkable(l net.Listener) net.Listener { return parkable{l} }

type parkable struct{ net.Listener }

func (l parkable) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &lower{conn: conn, fd: -1}, nil
}

// A tlsLine is the TLS of a connection that a poller serves.
type tlsLine struct {
	conn  *tls.Conn
	lower *lower
}

// A lower is the connection below TLS. At first it is one of package net; park
// turns it into a bare descriptor on which nothing waits: Read returns
// errWouldBlock, and Write keeps what the kernel does not take.
type lower struct {
	conn net.Conn // nil once parked

	mu      sync.Mutex // guards the following; nothing is locked behind it
	fd      int32
	pending []byte
}

// park takes the descriptor over. Nobody reads or writes meanwhile.
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

// flush hands the kernel what waits and reports whether something still does. An
// error is found by the next Read or Write.
func (l *lower) flush() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 || l.fd < 0 {
		return false
	}
	n, err := transmit(int(l.fd), l.pending)
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
	return receive(int(fd), p)
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
		if n, err = transmit(int(l.fd), p); err != nil {
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

// limitUnsent is an optimization, so errors do not matter.
func limitUnsent(fd int) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentLimit)
}
