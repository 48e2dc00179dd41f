package server

import (
	"bufio"
	"crypto/rand"
	"encoding/base64"
	"maps"
	"net"
	"net/http"
	"sync"

	quicgo "github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// An http3Upgrade lets a WebSocket that a client opens by extended CONNECT (RFC
// 9220) pass as an upgrade of HTTP/1.1: it is the ResponseWriter of such a request.
type http3Upgrade struct {
	http.ResponseWriter
	conn    *http3Conn
	taken   bool // the stream is a socket now
	refused bool // nobody took it; what is written goes nowhere
}

// isSocket reports whether a request opens a WebSocket: http3.Server puts
// :protocol there.
func isSocket(r *http.Request) bool { return r.Method == http.MethodConnect && r.Proto == "websocket" }

// request returns the request as HTTP/1.1 would have it. What proves there that
// both sides mean a WebSocket is made up: :protocol proves it here.
func (u *http3Upgrade) request(r *http.Request) *http.Request {
	var key [16]byte
	rand.Read(key[:]) // never fails
	get := r.WithContext(r.Context())
	get.Method, get.Proto = http.MethodGet, "HTTP/3.0"
	get.Body, get.ContentLength = http.NoBody, 0 // what follows are frames
	get.Header = maps.Clone(r.Header)
	get.Header["Connection"] = []string{"Upgrade"}
	get.Header["Upgrade"] = []string{"websocket"}
	get.Header["Sec-Websocket-Key"] = []string{base64.StdEncoding.EncodeToString(key[:])}
	if len(get.Header["Sec-Websocket-Version"]) == 0 {
		get.Header["Sec-Websocket-Version"] = []string{"13"}
	}
	return get
}

// WriteHeader sends the status. 101 becomes the 200 that Hijack sends. To the
// client any other 2xx would mean that it has its socket, so a page that knows
// nothing of upgrades is refused.
func (u *http3Upgrade) WriteHeader(status int) {
	h := u.Header()
	switch {
	case status == http.StatusSwitchingProtocols:
		for _, name := range []string{"Connection", "Upgrade", "Sec-Websocket-Accept"} {
			delete(h, name)
		}
		return
	case 200 <= status && status < 300:
		u.refused = true
		for _, name := range []string{"Content-Length", "Content-Type", "Content-Encoding", "Etag", "Last-Modified"} {
			delete(h, name)
		}
		status = http.StatusNotImplemented
	}
	u.ResponseWriter.WriteHeader(status)
}

// Write sends a part of a refusal.
func (u *http3Upgrade) Write(p []byte) (int, error) {
	if u.refused {
		return len(p), nil
	}
	return u.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (u *http3Upgrade) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// Hijack implements http.Hijacker: it answers 200 and takes the stream over.
func (u *http3Upgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	u.ResponseWriter.WriteHeader(http.StatusOK)
	stream, err := u.ResponseWriter.(http3.HTTPStreamer).HTTPStream()
	if err != nil {
		return nil, nil, err
	}
	u.taken = true
	c := &http3Socket{Stream: stream, conn: u.conn}
	return c, bufio.NewReadWriter(bufio.NewReaderSize(c, 16), bufio.NewWriterSize(c, 16)), nil
}

// An http3Socket is the stream of a WebSocket as a net.Conn. Close may be called
// while Read and Write wait, and ends them.
type http3Socket struct {
	*http3.Stream
	conn *http3Conn

	mu      sync.Mutex // guards the following
	writing bool
	closed  bool
}

// Write implements net.Conn.
func (s *http3Socket) Write(p []byte) (int, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return 0, net.ErrClosed
	}
	s.writing = true
	s.mu.Unlock()
	n, err := s.Stream.Write(p)
	s.mu.Lock()
	s.writing = false
	s.mu.Unlock()
	return n, err
}

// Close implements net.Conn. The stream ends with what was written so far, or is reset
// if somebody waits in Write. What the client may still send is not read (RFC 9114
// §4.1).
func (s *http3Socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	defer s.conn.end()
	s.CancelRead(quicgo.StreamErrorCode(http3.ErrCodeNoError))
	if s.writing {
		s.CancelWrite(quicgo.StreamErrorCode(http3.ErrCodeRequestCanceled))
		return nil
	}
	return s.Stream.Close()
}

// Multiplexed is for websocket.Stream.
func (s *http3Socket) Multiplexed() {}

// LocalAddr implements net.Conn.
func (s *http3Socket) LocalAddr() net.Addr { return s.conn.quic.LocalAddr() }

// RemoteAddr implements net.Conn.
func (s *http3Socket) RemoteAddr() net.Addr { return s.conn.quic.RemoteAddr() }
