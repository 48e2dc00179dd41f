package server

import (
	"bytes"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// A plea is what a client asks of net/http before ServeHTTP hears of it. It stays
// when net/http answers by itself, as it does what is malformed or too long, or
// gives up. The zero value is a connection on which nothing was said.
type plea struct {
	opaque atomic.Bool  // TLS or HTTP/2: the bytes say nothing here
	heard  atomic.Bool  // ServeHTTP was called, and the connection is not idle since
	made   atomic.Bool  // something came while it was not
	answer atomic.Int32 // the status that net/http wrote then
}

// heard is called by ServeHTTP.
func (c *conn) heard() {
	if c != nil && !c.plea.heard.Load() {
		c.plea.heard.Store(true)
		c.plea.made.Store(false)
	}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.receive(p)
	if !c.plea.opaque.Load() {
		c.length.read(p[:n])
	}
	if n > 0 && c.all.unheard != nil && !c.plea.heard.Load() && !c.plea.opaque.Load() {
		c.plea.made.Store(true)
		if bytes.HasPrefix(p[:n], []byte("PRI ")) { // RFC 9113 §3.4
			c.plea.opaque.Store(true)
			c.plea.made.Store(false)
		}
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if c.all.unheard != nil && !c.plea.heard.Load() {
		if c.plea.opaque.Load() {
			c.answerWithinTLS(p)
		} else if status := statusIn(p); status != 0 {
			c.plea.answer.CompareAndSwap(0, status)
		}
	}
	return c.TCPConn.Write(p)
}

// answerWithinTLS takes a record of TLS for an answer of net/http's when it has one
// to give; which, nobody can see: it counts as 400, which it mostly is. An alert is
// no answer; it takes 24 bytes, and an answer more than 64.
func (c *conn) answerWithinTLS(record []byte) {
	if c.plea.made.Load() && bytes.HasPrefix(record, []byte("\x17\x03\x03")) && len(record) > 64 {
		c.plea.answer.CompareAndSwap(0, http.StatusBadRequest)
	}
}

// statusIn returns the status of an answer.
func statusIn(p []byte) int32 {
	const start = "HTTP/1.1 "
	if len(p) < len(start)+3 || !bytes.HasPrefix(p, []byte(start)) {
		return 0
	}
	n, err := strconv.ParseUint(string(p[len(start):len(start)+3]), 10, 16)
	if err != nil {
		return 0
	}
	return int32(n)
}

// left reports a plea that ServeHTTP did not hear, when the connection is closed.
func (p *plea) left() (status int, ok bool) {
	made, answer := p.made.Swap(false), p.answer.Swap(0)
	return int(answer), made || answer != 0
}

// trackPleas is http.Server.ConnState, like track.
func (a *connections) trackPleas(nc net.Conn, state http.ConnState) {
	a.track(nc, state)
	c := underneath(nc)
	switch {
	case c == nil:
	case state == http.StateActive && c.plea.opaque.Load():
		c.plea.made.Store(true) // net/http has seen some of a request
	case state == http.StateIdle:
		c.plea.heard.Store(false) // the answer is complete, or HTTP/2 has begun
		c.plea.made.Store(false)
	}
}

// unheard counts and logs a request that net/http did not pass on. Without an
// answer, which is status 0, its client has left or was too slow.
func (s *Server) unheard(c *conn, status int) {
	now := time.Now()
	if status == 0 {
		status = clientClosed
	}
	s.metrics.answered(&response{status: status}, "", handlerError, now)
	if s.access.main == nil {
		return
	}
	p := newPeer(c.RemoteAddr().String(), "")
	s.access.main.add(&entry{at: now, addr: p.addr, port: p.port, by: handlerError, status: status})
}
