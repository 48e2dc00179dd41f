package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// A response is the ResponseWriter of one request. It knows what was sent, and
// passes on what the connection can do: Flush, sendfile, hijacking by Unwrap.
type response struct {
	http.ResponseWriter
	status    int           // 0 until the response has begun
	bytes     int64         // of the body that were sent
	taken     int64         // of the body from the handler; more than bytes when it is encoded
	announced int64         // the Content-Length, -1 for none; known once the response has begun
	lost      bool          // a write failed: the client is gone
	cut       bool          // the connection must be closed without ending the response
	stall     time.Duration // how long a client of a script may take nothing; 0: for ever
	timed     bool          // a write deadline is set
	old       bool          // the client speaks HTTP/1.0
	shared    bool          // the connection has other streams
	last      bool          // nothing more is read from the connection
	hijacked  bool          // the connection is not net/http's any more
	http3     *http3Server  // that counts what is left out; nil for other versions
	altSvc    []string      // tells of HTTP/3; nil for nothing
	preview   bool          // the answer is marked as that of a preview
	trail     trail

	// Set by the site for its requests.
	request *http.Request
	out     *outgoing    // what happens to every answer; may be nil
	encoded *encodedBody // the body is encoded on its way; nil: it is not
	final   bool         // the site chose the body's encoding
	page    *errorPager  // what fail answers with; may be nil
}

var responses = sync.Pool{New: func() any { return new(response) }}

// isOver reports whether nobody may use the response any more when the handler has
// returned.
func (w *response) isOver() bool { return w.hijacked || w.status == http.StatusSwitchingProtocols }

// begun reports whether a status was sent: it is too late for another.
func (w *response) begun() bool { return w.status != 0 && (w.encoded == nil || w.encoded.started) }

// WriteHeader sends the status. An informational one may be followed by others; a
// client of HTTP/1.0 would take it for the answer (RFC 9110 §15.2).
func (w *response) WriteHeader(status int) {
	if w.old && status < 200 {
		return
	}
	if w.shared && status != http.StatusSwitchingProtocols { // those of an upgrade are ours
		w.dropConnectionFields()
	}
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.begin(status)
		if w.encoded != nil {
			return // the first of the body takes it along
		}
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
	if w.preview {
		w.Header()["X-Ephpm-Preview"] = previewHeader
	}
	if w.last && status >= 200 {
		w.Header()["Connection"] = closeHeader
	}
	if length := w.Header()["Content-Length"]; len(length) != 0 {
		if n, err := strconv.ParseUint(length[0], 10, 63); err != nil || len(length) > 1 {
			delete(w.Header(), "Content-Length")
		} else {
			w.announced = int64(n)
		}
	}
	if w.out != nil && status >= 200 {
		w.out.begin(w, status)
	}
}

// Write sends no more than was announced and says so by http.ErrContentLength.
// net/http would take nothing of a piece that goes over, and the client would
// miss what was promised: a script whose file ends in an empty line does that.
func (w *response) Write(p []byte) (int, error) {
	w.implyOK()
	var over error
	if w.announced >= 0 && int64(len(p)) > w.announced-w.taken {
		p, over = p[:max(0, w.announced-w.taken)], http.ErrContentLength
	}
	var n int
	var err error
	if w.encoded == nil {
		n, err = w.pass(p)
	} else {
		n, err = w.encoded.write(p)
	}
	w.taken += int64(n)
	if err == nil {
		err = over
	}
	return n, err
}

// pass writes to the connection.
func (w *response) pass(p []byte) (int, error) {
	w.limitWrite(len(p))
	n, err := w.ResponseWriter.Write(p)
	w.wrote(int64(n), err)
	w.pauseWrite(err)
	return n, err
}

// bufferedWrite is what net/http keeps back for a while, in bytes. Writing less
// does not wait for the client.
const bufferedWrite = 2048

// limitWrite gives the client a while to take the next part: one that stops reading
// must not hold a script's worker, or a file, for ever.
func (w *response) limitWrite(n int) {
	if w.stall > 0 && n+int(w.bytes) >= bufferedWrite {
		w.timed = true
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.stall)) // without it, it may take as long as it likes
	}
}

// pauseWrite lifts the limit until the next write. Over HTTP/2 it would end the stream
// of a script that has nothing to say for a while, or an event stream; over HTTP/3 the
// next small write, which sets none.
func (w *response) pauseWrite(err error) {
	if err == nil && w.shared {
		w.unlimitWrite()
	}
}

// unlimitWrite leaves the connection as it was, for the next request.
func (w *response) unlimitWrite() {
	if w.timed {
		w.timed = false
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Time{}) // as above
	}
}

// ReadFrom lets net/http send a file by sendfile, which runs as long as the client
// takes some of it in each while.
func (w *response) ReadFrom(r io.Reader) (int64, error) {
	w.implyOK()
	if w.encoded != nil || w.shared || w.request == nil || w.request.TLS != nil {
		return w.copyFrom(r)
	}
	var sum int64
	for {
		w.limitWrite(bufferedWrite)
		n, err := io.Copy(w.ResponseWriter, r)
		sum += n
		w.taken += n
		if n > 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			w.wrote(n, nil)
			continue
		}
		w.wrote(n, err)
		return sum, err
	}
}

// Flush sends what was written so far.
func (w *response) Flush() { _ = w.FlushError() } // a client that left is noticed by the next write

// FlushError is Flush for http.ResponseController.
func (w *response) FlushError() error {
	w.implyOK()
	if w.encoded != nil {
		if err := w.encoded.flush(); err != nil {
			return err
		}
	}
	w.limitWrite(bufferedWrite)
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.pauseWrite(err)
	return err
}

// finish ends what the handler left open. The connection is as it was before.
func (w *response) finish() {
	if w.encoded != nil {
		w.encoded.finish()
	}
	w.unlimitWrite()
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
	if w.encoded != nil && !w.encoded.started {
		w.encoded.drop()
	}
	if w.page != nil && w.page.answer(w, status) {
		return
	}
	w.dropHeader()
	h := w.Header()
	body := strconv.Itoa(status) + " " + text + "\n"
	h["Content-Type"] = textPlain
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // a client that is gone misses it
}

// dropHeader drops the headers that were meant for another answer.
func (w *response) dropHeader() {
	h := w.Header()
	for name := range h {
		switch name {
		case "Retry-After", "Allow", "Connection", "Location", "Sec-Websocket-Version", "Vary", "X-Request-Id", "Www-Authenticate":
		default:
			delete(h, name)
		}
	}
}

// Header values that are shared by all responses and never changed.
var (
	closeHeader = []string{"close"}
	textPlain   = []string{"text/plain; charset=utf-8"}
	typeJSON    = []string{"application/json"}
)
