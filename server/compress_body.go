package server

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// A compression is how a site encodes answers as they go out.
type compression struct {
	encoders *encoders
	minSize  int64 // smaller bodies are left as they are; in bytes
}

// encodedBuffers are for bodies that are encoded in one piece.
var encodedBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// An encodedBody stands between a handler and the connection. The header waits for
// the first that the encoder gives out: until then there can be another answer.
type encodedBody struct {
	to      *response
	coding  coding
	encoder encoder // nil when it was given back: the body is complete
	supply  *encoders
	started bool   // the header is out
	pending []byte // what is not; at most heldBack
}

// heldBack is how much of an encoded body waits for more, in bytes: an encoder's first
// few are no reason to give up the choice of another answer.
const heldBack = 512

// begin decides whether the answer that w has begun is encoded. It takes the header
// as the handler made it.
func (c *compression) begin(w *response, r *http.Request, status int) {
	if w.announced >= 0 && w.announced < c.minSize && !refusesIdentity(r) {
		return
	}
	h := w.Header()
	if status == http.StatusNotModified {
		addVary(h, "Accept-Encoding") // RFC 9110 §15.4.5: as the 200 would have
		return
	}
	if status == http.StatusNoContent || status == http.StatusResetContent || status == http.StatusPartialContent ||
		len(h["Content-Encoding"]) != 0 || len(h["Content-Range"]) != 0 ||
		len(h["Content-Type"]) == 0 || !isCompressible(h["Content-Type"][0]) ||
		hasDirective(h["Cache-Control"], "no-transform") {
		return
	}
	addVary(h, "Accept-Encoding")
	if hasDirective(r.Header["Cache-Control"], "no-transform") {
		return
	}
	// While a script runs, the fastest is best.
	chosen, _ := parseAccept(r.Header["Accept-Encoding"]).best(zstdCoding, brotliCoding, gzipCoding)
	if chosen == identity {
		return
	}
	if r.Method == http.MethodHead {
		encodedHeader(h, chosen)
		return
	}
	e := &encodedBody{to: w, coding: chosen, supply: c.encoders}
	if e.encoder = c.encoders.get(chosen, e); e.encoder == nil {
		return
	}
	encodedHeader(h, chosen)
	w.encoded = e
}

// encodedHeader fits a header to an encoded body. Its length is not known, and what
// a script tagged was another form of it.
func encodedHeader(h http.Header, c coding) {
	h["Content-Encoding"] = codingHeaders[c]
	delete(h, "Content-Length")
	delete(h, "Accept-Ranges")
	if tag := h.Get("Etag"); strings.HasPrefix(tag, `"`) {
		h["Etag"] = []string{"W/" + tag}
	}
}

// refusesIdentity reports whether a client takes no body that is not encoded.
func refusesIdentity(r *http.Request) bool {
	lines := r.Header["Accept-Encoding"]
	return len(lines) != 0 && (strings.Contains(lines[0], "identity") || strings.Contains(lines[0], "*")) && parseAccept(lines)[identity] == 0
}

// write takes a piece of the body.
func (e *encodedBody) write(p []byte) (int, error) {
	w := e.to
	if e.encoder == nil {
		return 0, http.ErrContentLength // it was complete
	}
	if !e.started && w.taken == 0 && w.announced == int64(len(p)) {
		return e.whole(p)
	}
	n, err := e.encoder.Write(p)
	if err == nil && w.announced >= 0 && w.taken+int64(n) == w.announced {
		err = e.close()
	}
	return n, err
}

// whole encodes a body that came in one piece, whose length is known then.
func (e *encodedBody) whole(p []byte) (int, error) {
	buffer := encodedBuffers.Get().(*bytes.Buffer)
	defer func() {
		if buffer.Cap() <= 128<<10 {
			buffer.Reset()
			encodedBuffers.Put(buffer)
		}
	}()
	e.encoder.Reset(buffer)
	_, _ = e.encoder.Write(p) // a buffer takes everything
	_ = e.encoder.Close()
	e.release()
	e.to.Header()["Content-Length"] = []string{strconv.Itoa(buffer.Len())}
	if err := e.start(); err != nil {
		return 0, err
	}
	if _, err := e.to.pass(buffer.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// start sends the header and what waits for it.
func (e *encodedBody) start() error {
	if e.started {
		return nil
	}
	e.started = true
	e.to.ResponseWriter.WriteHeader(e.to.status)
	if len(e.pending) == 0 {
		return nil
	}
	_, err := e.to.pass(e.pending)
	e.pending = nil
	return err
}

// Write passes on what the encoder made.
func (e *encodedBody) Write(p []byte) (int, error) {
	if !e.started && len(e.pending)+len(p) <= heldBack {
		e.pending = append(e.pending, p...)
		return len(p), nil
	}
	if err := e.start(); err != nil {
		return 0, err
	}
	return e.to.pass(p)
}

// flush sends what was written so far, in a form that can be decoded by then.
func (e *encodedBody) flush() error {
	if e.encoder != nil {
		if err := e.encoder.Flush(); err != nil {
			return err
		}
	}
	return e.start()
}

// close completes the body.
func (e *encodedBody) close() error {
	err := e.encoder.Close()
	e.release()
	if err != nil {
		return err
	}
	return e.start()
}

// drop gives up an answer of which the client has seen nothing.
func (e *encodedBody) drop() {
	if e.encoder != nil {
		e.release()
	}
	w := e.to
	w.encoded, w.status, w.taken = nil, 0, 0
}

func (e *encodedBody) release() {
	e.supply.put(e.coding, e.encoder)
	e.encoder = nil
}

// finish ends what the handler left open. A body that is shorter than it was
// announced must not look complete.
func (e *encodedBody) finish() {
	w := e.to
	switch {
	case e.encoder == nil:
		return
	case w.cut || w.lost:
	case w.announced >= 0:
		w.cut = w.taken < w.announced || w.cut
	case !e.started && w.taken == 0: // there was no body
		delete(w.Header(), "Content-Encoding")
		_ = e.start() // there is nothing that could fail
	default:
		_ = e.close() // a client that is gone misses it
		return
	}
	e.release()
}
