package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"ephpm/http2connect"
)

// net/http has taken down by now that it announces extended CONNECT.
var _ = http2connect.Restore()

// An http2Upgrade lets a WebSocket that a client opens by extended CONNECT (RFC
// 8441) pass as an upgrade of HTTP/1.1, like that of HTTP/3.
type http2Upgrade struct {
	http3Upgrade
	r      *http.Request
	socket *http2Socket // nil until the stream is a socket
}

// isHTTP2Socket reports whether a request opens a WebSocket on HTTP/2: net/http
// puts the pseudo-header among the others.
func isHTTP2Socket(r *http.Request) bool {
	protocol := r.Header[":protocol"]
	return r.ProtoMajor == 2 && r.Method == http.MethodConnect && len(protocol) == 1 && protocol[0] == "websocket"
}

// refusesProtocol returns the status of an answer to a request of HTTP/2 whose
// :protocol is not for what the server has, 0 for all others.
func refusesProtocol(r *http.Request) int {
	switch {
	case r.ProtoMajor != 2 || len(r.Header[":protocol"]) == 0:
		return 0
	case r.Method == http.MethodConnect:
		return http.StatusNotImplemented // as RFC 9220 §3 has it for HTTP/3
	}
	return http.StatusBadRequest // RFC 8441 §4: with any other method it is malformed
}

// serveHTTP2Socket answers such a request. It returns when the socket has ended,
// and that ends the stream.
func (s *Server) serveHTTP2Socket(w http.ResponseWriter, r *http.Request) {
	up := &http2Upgrade{http3Upgrade: http3Upgrade{ResponseWriter: w}, r: r}
	get := up.request(r)
	get.Proto = "HTTP/2.0"
	delete(get.Header, ":protocol")
	s.ServeHTTP(up, get)
	if up.socket != nil {
		<-up.socket.done
	}
}

// Hijack implements http.Hijacker: it answers 200 and takes the stream over.
func (u *http2Upgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	u.ResponseWriter.WriteHeader(http.StatusOK)
	control := http.NewResponseController(u.ResponseWriter)
	if err := control.Flush(); err != nil {
		return nil, nil, err
	}
	c := &http2Socket{w: u.ResponseWriter, body: u.r.Body, control: control, peer: peerOf(u.r), done: make(chan struct{})}
	u.socket = c
	return c, bufio.NewReadWriter(bufio.NewReaderSize(c, 16), bufio.NewWriterSize(c, 16)), nil
}

// An http2Socket is the stream of a WebSocket as a net.Conn. Close may be called
// while Read and Write wait, and ends them.
type http2Socket struct {
	w       http.ResponseWriter
	body    io.ReadCloser
	control *http.ResponseController
	peer    *peer
	done    chan struct{} // closed when nobody uses w any more

	mu       sync.Mutex // guards the following
	deadline time.Time  // of writes
	writing  bool
	closed   bool
}

// Read implements net.Conn.
func (s *http2Socket) Read(p []byte) (int, error) { return s.body.Read(p) }

// Write implements net.Conn. What is written leaves at once.
func (s *http2Socket) Write(p []byte) (int, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return 0, net.ErrClosed
	}
	s.writing = true
	if !s.deadline.IsZero() {
		_ = s.control.SetWriteDeadline(s.deadline) // of net/http's streams it does not fail
	}
	s.mu.Unlock()
	n, err := s.w.Write(p)
	if err == nil {
		err = s.control.Flush()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = false
	if s.closed {
		close(s.done)
	} else if !s.deadline.IsZero() {
		// It would reset the stream when it has passed, though nobody writes.
		_ = s.control.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// Close implements net.Conn. The stream ends behind what was written, and the client
// is told by NO_ERROR that what it may still send is not read; if somebody waits in
// Write it is reset.
func (s *http2Socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.writing {
		_ = s.control.SetWriteDeadline(time.Now()) // resets the stream
	} else {
		close(s.done)
	}
	return s.body.Close()
}

// Multiplexed is for websocket.Stream: the answer of a stream is whole when it ends
// before the request (RFC 9113 §8.1).
func (s *http2Socket) Multiplexed() {}

// LocalAddr implements net.Conn.
func (s *http2Socket) LocalAddr() net.Addr { return peerAddr(s.peer.local) }

// RemoteAddr implements net.Conn.
func (s *http2Socket) RemoteAddr() net.Addr { return peerAddr(s.peer.addr) }

// SetDeadline implements net.Conn.
func (s *http2Socket) SetDeadline(t time.Time) error {
	if err := s.SetReadDeadline(t); err != nil {
		return err
	}
	return s.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (s *http2Socket) SetReadDeadline(t time.Time) error { return s.control.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn. A deadline that passes within Write resets the
// stream.
func (s *http2Socket) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed // the handler may have returned
	}
	s.deadline = t
	if s.writing {
		return s.control.SetWriteDeadline(t)
	}
	return nil
}

// peerAddr is an address without a port, as net.Addr.
type peerAddr string

func (peerAddr) Network() string  { return "tcp" }
func (a peerAddr) String() string { return string(a) }
