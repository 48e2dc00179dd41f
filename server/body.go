package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// inMemory is how much of a request body is kept in memory; more goes to a file.
const inMemory = 64 << 10

// Errors of body.read. Anything else is a fault of ours, such as a full disk.
var (
	errTooLong  = errors.New("request body over the limit")
	errStalled  = errors.New("request body stalled")
	errMangled  = errors.New("request body malformed")
	errLeftHalf = errors.New("client left while it sent the request body")
)

// A body is a request body that was read completely before a worker is taken: a
// slow upload must not hold one. It is reused by request after request.
type body struct {
	buf    []byte // inMemory bytes, made when first needed
	memory bytes.Reader
	file   *os.File // has no name any more
	length int64    // -1 when the request had no body
}

// reader returns the body from its start, nil when it is empty.
func (b *body) reader() io.Reader {
	switch {
	case b.length <= 0:
		return nil
	case b.file != nil:
		return b.file
	}
	return &b.memory
}

// close forgets the body.
func (b *body) close() {
	if b.file != nil {
		_ = b.file.Close() // the space is given back whatever it says
		b.file = nil
	}
	b.memory.Reset(nil)
}

// read reads the body of r, at most limit bytes (0: any number). The client may
// pause for stall (0: for ever), which answer started counting, and over that time
// be no slower than rate bytes a second. After an error the deadline stays: the
// connection is to be closed.
func (b *body) read(w http.ResponseWriter, r *http.Request, limit int64, stall time.Duration, rate int64) error {
	b.length = -1
	if r.ContentLength == 0 {
		if len(r.Header["Content-Length"]) != 0 {
			b.length = 0
		}
		return nil
	}
	if limit > 0 && r.ContentLength > limit {
		return errTooLong
	}
	if b.buf == nil {
		b.buf = make([]byte, inMemory)
	}
	in := &incoming{src: r.Body, control: http.NewResponseController(w), limit: limit, stall: stall, rate: rate}
	n, err := in.fill(b.buf)
	if err == nil {
		b.length, err = b.spool(in, n)
	}
	if err == io.EOF {
		b.length = int64(n)
		if n == 0 && r.ProtoMajor == 3 && len(r.Header["Content-Length"]) == 0 {
			b.length = -1 // over HTTP/1.1 it would not have begun
		}
		b.memory.Reset(b.buf[:n])
		err = nil
	}
	if err != nil {
		return reason(r, err)
	}
	if stall > 0 {
		_ = in.control.SetReadDeadline(time.Time{}) // as setting it: see incoming.fill
	}
	return nil
}

// spool moves what is in the buffer and what follows to a file, and returns the
// length of both.
func (b *body) spool(in *incoming, n int) (int64, error) {
	f, err := os.CreateTemp("", "ephpm-body-*")
	if err != nil {
		return 0, fmt.Errorf("spool request body: %w", err)
	}
	b.file = f
	if err := os.Remove(f.Name()); err != nil {
		return 0, fmt.Errorf("spool request body: %w", err)
	}
	for done := false; !done; {
		if _, err := f.Write(b.buf[:n]); err != nil {
			return 0, fmt.Errorf("spool request body: %w", err)
		}
		n, err = in.fill(b.buf)
		done = err == io.EOF
		if err != nil && !done {
			return 0, err
		}
	}
	if _, err := f.Write(b.buf[:n]); err != nil {
		return 0, fmt.Errorf("spool request body: %w", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, fmt.Errorf("spool request body: %w", err)
	}
	return in.n, nil
}

// reason says what an error of reading means.
func reason(r *http.Request, err error) error {
	var fault *readError
	switch {
	case !errors.As(err, &fault):
		return err // ours
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errStalled
	case errors.Is(err, io.ErrUnexpectedEOF), r.Context().Err() != nil:
		return errLeftHalf
	}
	return errMangled
}

// readError is an error of the client's side, as opposed to our disk's.
type readError struct{ error }

func (e *readError) Unwrap() error { return e.error }

// incoming reads from the client, counting bytes and time.
type incoming struct {
	src     io.Reader
	control *http.ResponseController
	limit   int64
	stall   time.Duration
	rate    int64 // bytes a second
	n       int64

	since time.Time // rate is looked at from here, when n was
	had   int64
}

// fill reads until p is full or the body ends, which is io.EOF.
func (in *incoming) fill(p []byte) (int, error) {
	for n := 0; n < len(p); {
		got, err := in.src.Read(p[n:])
		n += got
		in.n += int64(got)
		switch {
		case in.limit > 0 && in.n > in.limit:
			return n, errTooLong
		case err == io.EOF:
			return n, io.EOF
		case err != nil:
			return n, &readError{err}
		}
		if in.stall > 0 {
			now := time.Now()
			if in.tooSlow(now) {
				return n, &readError{os.ErrDeadlineExceeded}
			}
			// A connection without deadlines, in a test, is read without.
			_ = in.control.SetReadDeadline(now.Add(in.stall))
		}
	}
	return len(p), nil
}

// tooSlow reports whether the client sent less than rate for as long as it may
// pause.
func (in *incoming) tooSlow(now time.Time) bool {
	d := now.Sub(in.since)
	if !in.since.IsZero() && d < in.stall {
		return false
	}
	slow := !in.since.IsZero() && float64(in.n-in.had) < float64(in.rate)*d.Seconds()
	in.since, in.had = now, in.n
	return slow
}
