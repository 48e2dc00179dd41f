package phpbridge

import (
	"bytes"
	"errors"
	"maps"
	"net/http"
	"net/textproto"
	"strconv"
	"sync"
)

// errClientGone is returned by Serve when the answer could not be written.
var errClientGone = errors.New("phpbridge: client has gone")

// responseBuffer is how much of an answer is gathered before it is sent: an
// answer that fits leaves with its Content-Length and in one piece.
const responseBuffer = 64 << 10

var buffers = sync.Pool{New: func() any { return bytes.NewBuffer(make([]byte, 0, 4<<10)) }}

// A response turns the records of a script into an HTTP answer.
type response struct {
	w       http.ResponseWriter
	status  int
	lines   []headerLine  // go out with the status
	buffer  *bytes.Buffer // not yet written
	begun   bool          // status and headers are out
	flushed bool          // the answer goes out in parts
	failed  bool          // the client does not take it any more
	muted   bool          // what comes now is not sent
}

type headerLine struct{ key, value string }

// newResponse reuses lines, of another response.
func newResponse(w http.ResponseWriter, lines []headerLine) response {
	return response{w: w, status: http.StatusOK, lines: lines[:0], buffer: buffers.Get().(*bytes.Buffer)}
}

// keptLines bounds the header lines that are kept for another response.
const keptLines = 64

func (o *response) free() {
	if cap(o.lines) > keptLines {
		o.lines = nil
	}
	clear(o.lines[:cap(o.lines)]) // their texts are not kept
	if o.buffer.Cap() <= 2*responseBuffer {
		o.buffer.Reset()
		buffers.Put(o.buffer)
	}
	o.buffer = nil
}

// header takes one line "Name: value".
func (o *response) header(line []byte) {
	if !o.begun {
		o.lines = appendHeader(o.lines, line)
	}
}

// appendHeader parses a line. PHP refuses line breaks in it, net/http replaces
// them; what is no header is dropped, as is an empty value, and the transfer
// encoding, which is ours to choose.
func appendHeader(lines []headerLine, line []byte) []headerLine {
	name, value, ok := bytes.Cut(line, []byte(":"))
	value = bytes.Trim(value, " \t")
	if !ok || len(value) == 0 || !validName(name) {
		return lines
	}
	switch key := canonical(name); key {
	case "Transfer-Encoding":
		return lines
	case "Content-Type":
		return append(lines, headerLine{key, contentType(value)})
	default:
		return append(lines, headerLine{key, string(value)})
	}
}

// inform sends a status 1xx with its own headers, before the answer.
func (o *response) inform(status int, lines []headerLine) {
	if o.begun || o.failed {
		return
	}
	h := o.w.Header()
	kept := h.Clone()
	addLines(h, lines)
	o.w.WriteHeader(status)
	clear(h)
	maps.Copy(h, kept)
}

// canonical returns the name as net/http wants it. The compiler keeps the
// conversion in the comparisons from allocating.
func canonical(name []byte) string {
	switch string(name) {
	case "Content-type", "Content-Type":
		return "Content-Type"
	case "X-Powered-By":
		return "X-Powered-By"
	case "Set-Cookie":
		return "Set-Cookie"
	}
	return textproto.CanonicalMIMEHeaderKey(string(name))
}

func contentType(value []byte) string {
	const usual = "text/html; charset=UTF-8"
	if string(value) == usual {
		return usual
	}
	return string(value)
}

// validName reports whether name is a token (RFC 9110 §5.6.2).
func validName(name []byte) bool {
	for _, c := range name {
		if c <= ' ' || c >= 0x7f || bytes.IndexByte([]byte(`"(),/:;<=>?@[\]{}`), c) >= 0 {
			return false
		}
	}
	return len(name) > 0
}

func (o *response) output(p []byte) {
	if o.failed || o.muted {
		return
	}
	if o.buffer.Len()+len(p) > responseBuffer {
		o.write()
		if len(p) >= responseBuffer {
			o.writeBytes(p)
			return
		}
	}
	o.buffer.Write(p)
}

// flush brings to the client what the script has printed so far.
func (o *response) flush() {
	if o.failed || o.muted {
		return
	}
	o.flushed = true
	o.write()
	if o.failed {
		return
	}
	if err := http.NewResponseController(o.w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		o.failed = true
	}
}

// end sends what is left. A whole answer in the buffer has a known length.
func (o *response) end() {
	if o.failed {
		return
	}
	if !o.begun && !o.flushed && bodyAllowed(o.status) {
		o.announce(o.buffer.Len())
	}
	o.write()
}

// announce sets the Content-Length, unless the script has set one.
func (o *response) announce(n int) {
	for _, l := range o.lines {
		if l.key == "Content-Length" {
			return
		}
	}
	o.lines = append(o.lines, headerLine{"Content-Length", strconv.Itoa(n)})
}

func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// write sends the headers, if they are not out yet, and the buffer.
func (o *response) write() {
	o.begin()
	if o.buffer.Len() > 0 {
		o.writeBytes(o.buffer.Bytes())
		o.buffer.Reset()
	}
}

func (o *response) begin() {
	if o.begun {
		return
	}
	o.begun = true
	addLines(o.w.Header(), o.lines)
	o.w.WriteHeader(o.status)
}

// addLines adds to a header. The first values of all names share an array: one
// allocation for all.
func addLines(h http.Header, lines []headerLine) {
	values := make([]string, len(lines))
	for i, l := range lines {
		if have, ok := h[l.key]; ok {
			h[l.key] = append(have, l.value)
			continue
		}
		values[i] = l.value
		h[l.key] = values[i : i+1 : i+1]
	}
}

// writeBytes writes body bytes. That a script prints more than it announced, or
// where no body may be, is its own affair and no failure.
func (o *response) writeBytes(p []byte) {
	o.begin()
	_, err := o.w.Write(p)
	if err != nil && !errors.Is(err, http.ErrBodyNotAllowed) && !errors.Is(err, http.ErrContentLength) {
		o.failed = true
	}
}

// mute throws away what has not begun, and what comes, if it has not.
func (o *response) mute() {
	if !o.begun {
		o.muted = true
		o.buffer.Reset()
	}
}

// discard throws away everything from here on.
func (o *response) discard() {
	o.failed = true
	o.buffer.Reset()
}
