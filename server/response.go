package server

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A response is the ResponseWriter of one request. It knows what was sent, and
// passes on what the connection can do: Flush, sendfile, hijacking by Unwrap.
type response struct {
	http.ResponseWriter
	status    int           // 0 until the response has begun
	bytes     int64         // of the body
	announced int64         // the Content-Length, -1 for none; known once the response has begun
	lost      bool          // a write failed: the client is gone
	cut       bool          // the connection must be closed without ending the response
	stall     time.Duration // how long a client of a script may take nothing; 0: for ever
	timed     bool          // a write deadline is set
	old       bool          // the client speaks HTTP/1.0
	shared    bool          // the connection has other streams
	http3     *http3Server  // that counts what is left out; nil for other versions
	altSvc    []string      // tells of HTTP/3; nil for nothing
}

var responses = sync.Pool{New: func() any { return new(response) }}

// begun reports whether a status was sent: it is too late for another.
func (w *response) begun() bool { return w.status != 0 }

// WriteHeader sends the status. An informational one may be followed by others; a
// client of HTTP/1.0 would take it for the answer (RFC 9110 §15.2).
func (w *response) WriteHeader(status int) {
	if w.old && status < 200 {
		return
	}
	if w.shared {
		w.dropConnectionFields()
	}
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// begin takes down what the client is told. A script's Content-Length that is none
// (RFC 9110 §8.6), such as "+7", or that is there twice is left out: net/http would
// send it, and clients would not agree on where the response ends.
func (w *response) begin(status int) {
	w.status, w.announced = status, -1
	if w.altSvc != nil && len(w.Header()["Alt-Svc"]) == 0 {
		w.Header()["Alt-Svc"] = w.altSvc
	}
	length := w.Header()["Content-Length"]
	if len(length) == 0 {
		return
	}
	n, err := strconv.ParseUint(length[0], 10, 63)
	if err != nil || len(length) > 1 {
		delete(w.Header(), "Content-Length")
		return
	}
	w.announced = int64(n)
}

// Write sends no more than was announced and says so by http.ErrContentLength.
// net/http would take nothing of a piece that goes over, and the client would
// miss what was promised: a script whose file ends in an empty line does that.
func (w *response) Write(p []byte) (int, error) {
	w.implyOK()
	var over error
	if w.announced >= 0 && int64(len(p)) > w.announced-w.bytes {
		p, over = p[:max(0, w.announced-w.bytes)], http.ErrContentLength
	}
	w.limitWrite(len(p))
	n, err := w.ResponseWriter.Write(p)
	if err == nil {
		err = over
	}
	w.wrote(int64(n), err)
	return n, err
}

// bufferedWrite is what net/http keeps back for a while, in bytes. Writing less
// does not wait for the client.
const bufferedWrite = 2048

// limitWrite gives the client a while to take the next part of what a script
// prints: one that stops reading must not hold the script's worker for ever.
func (w *response) limitWrite(n int) {
	if w.stall > 0 && n+int(w.bytes) >= bufferedWrite {
		w.timed = true
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.stall)) // without it, it may take as long as it likes
	}
}

// unlimitWrite leaves the connection as it was, for the next request.
func (w *response) unlimitWrite() {
	if w.timed {
		w.timed = false
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Time{}) // as above
	}
}

// WriteString is Write without a copy.
func (w *response) WriteString(s string) (int, error) {
	w.implyOK()
	n, err := io.WriteString(w.ResponseWriter, s)
	w.wrote(int64(n), err)
	return n, err
}

// ReadFrom lets net/http send a file by sendfile.
func (w *response) ReadFrom(r io.Reader) (int64, error) {
	if w.shared {
		return w.copyFrom(r)
	}
	w.implyOK()
	n, err := io.Copy(w.ResponseWriter, r)
	w.wrote(n, err)
	return n, err
}

// Flush sends what was written so far.
func (w *response) Flush() { _ = w.FlushError() } // a client that left is noticed by the next write

// FlushError is Flush for http.ResponseController.
func (w *response) FlushError() error {
	w.implyOK()
	w.limitWrite(bufferedWrite)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) wrote(n int64, err error) {
	w.bytes += n
	if err != nil && !errors.Is(err, http.ErrBodyNotAllowed) && !errors.Is(err, http.ErrContentLength) {
		w.lost = true
	}
}

func (w *response) implyOK() {
	if w.status == 0 {
		if w.shared {
			w.dropConnectionFields()
		}
		w.begin(http.StatusOK)
	}
}

// fail answers with a status and its name as plain text, and drops the headers
// that were meant for another answer.
func (w *response) fail(status int) { w.failAs(status, http.StatusText(status)) }

// failAs is fail with other words than the status's name.
func (w *response) failAs(status int, text string) {
	h := w.Header()
	for name := range h {
		switch name {
		case "Retry-After", "Allow", "Connection", "Location", "Sec-Websocket-Version":
		default:
			delete(h, name)
		}
	}
	h["Content-Type"] = textPlain
	w.WriteHeader(status)
	// A client that is gone misses it.
	_, _ = io.WriteString(w, strconv.Itoa(status)+" "+text+"\n")
}

// Header values that are shared by all responses and never changed.
var (
	textPlain = []string{"text/plain; charset=utf-8"}
	typeJSON  = []string{"application/json"}
)
