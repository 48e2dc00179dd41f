package server

import (
	"io"
	"net/http"
	"sync"
)

// What a response over HTTP/2 and HTTP/3, whose requests are streams of one
// connection, needs done differently.

// connectionFields say something of a connection of HTTP/1.1. Other versions
// forbid them (RFC 9113 §8.2.2, RFC 9114 §4.2), and clients refuse the response.
var connectionFields = [...]string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"}

// dropConnectionFields leaves out what a script says of the connection.
func (w *response) dropConnectionFields() {
	h, n := w.Header(), 0
	for _, name := range connectionFields {
		if _, ok := h[name]; ok && (w.http3 != nil || name != "Connection") { // net/http drops that one itself
			delete(h, name)
			n++
		}
	}
	if n > 0 && w.http3 != nil {
		w.http3.metrics.stripped.Add(float64(n))
	}
}

// copyBuffers are as large as a piece of a file that is sent at a time: each
// becomes a frame with a header of its own.
var copyBuffers = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// copyFrom is ReadFrom: there is no sendfile, but a limit for each piece.
func (w *response) copyFrom(r io.Reader) (int64, error) {
	buf := copyBuffers.Get().(*[128 << 10]byte)
	defer copyBuffers.Put(buf)
	// Without their other methods, or io.CopyBuffer would find ReadFrom again.
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, buf[:])
}

// hasConnection reports whether the request has a connection of its own, which
// "Connection: close" ends.
func hasConnection(r *http.Request) bool { return r.ProtoMajor < 2 }
