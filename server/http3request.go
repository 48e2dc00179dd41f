package server

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"
)

// ServeHTTP answers one request. http3.Server has read its header: cookies are
// joined, :authority is its Host, and what RFC 9114 §4.3 forbids was refused.
func (s *http3Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	c := r.Context().Value(http3ConnKey{}).(*http3Conn) // admit has set it
	p := c.begin(r.RemoteAddr)
	var socket *http3Upgrade // nil for a page
	defer func() {           // also when the response is cut, which is a panic
		s.metrics.answered(start)
		if socket == nil || !socket.taken {
			c.end()
		}
	}()
	if !r.TLS.HandshakeComplete && !c.ripe(r) {
		return // the client is gone
	}
	if isSocket(r) {
		socket = &http3Upgrade{ResponseWriter: w, conn: c}
		w, r = socket, socket.request(r)
	} else {
		s.settleBody(w, r)
	}
	if p != nil {
		r = r.WithContext(context.WithValue(r.Context(), peerKey{}, p))
	}
	s.next.ServeHTTP(w, r)
}

// settleBody looks whether a GET or HEAD without a length has a body: the end of the
// stream tells, and comes with the header. Over HTTP/1.1 such a request has none, and
// scripts, files and upgrades go by that.
func (s *http3Server) settleBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength >= 0 || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return
	}
	control := http.NewResponseController(w)
	if s.idle > 0 {
		_ = control.SetReadDeadline(time.Now().Add(s.idle)) // a stream has deadlines
		defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	}
	var first [1]byte
	n, err := r.Body.Read(first[:])
	if n == 0 && err == io.EOF {
		r.Body, r.ContentLength = http.NoBody, 0
		return
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first[:n]), r.Body), r.Body} // which has its error again
}

// refuses returns the status of an answer to a request that no site may see, 0 for
// all others. s may be nil.
func (s *http3Server) refuses(r *http.Request) int {
	switch {
	case s == nil || r.ProtoMajor != 3:
	case r.Method == http.MethodConnect && r.Proto != "HTTP/3.0":
		return http.StatusNotImplemented // RFC 9220 §3
	case s.config.EarlyData && !isSafe(r.Method) && r.Header.Get("Early-Data") == "1":
		return http.StatusTooEarly // a proxy took it early, and cannot be made to wait (RFC 8470 §5.2)
	}
	return 0
}

// ripe waits until a request of early data may be run. A safe one is run at once;
// the script sees that it came early and may answer 425 itself. Any other waits
// for the end of the handshake, which proves that the request is not an old one
// that somebody sent again. It reports false when that never came.
func (c *http3Conn) ripe(r *http.Request) bool {
	select {
	case <-c.quic.HandshakeComplete():
	default:
		if isSafe(r.Method) {
			r.Header["Early-Data"] = []string{"1"}
			return true
		}
	}
	select {
	case <-c.quic.HandshakeComplete():
	case <-r.Context().Done():
		return false
	}
	state := c.quic.ConnectionState().TLS
	r.TLS = &state
	return true
}

// isSafe reports whether a method changes nothing (RFC 9110 §9.2.1).
func isSafe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}
