package eventstream

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"
)

// A Writer is a response that has begun. FlushError sends what was written.
type Writer interface {
	io.Writer
	FlushError() error
}

const (
	// batchSize is how many bytes of small events are joined into one write.
	batchSize = 16 << 10
	// chunkSize is what a client must take within WriteTimeout to stay.
	chunkSize = 16 << 10
)

var batches = sync.Pool{New: func() any { return new([batchSize]byte) }}

// ping is a comment.
var ping = []byte(":\n\n")

// A Hello is the first event of a stream, and comes with the answer to the first poll.
type Hello struct {
	Connection string `json:"connection"` // its ID
	Key        string `json:"key"`        // for what the client sends
	Resumed    bool   `json:"resumed"`    // nothing is missing since the Last-Event-ID
}

func (h *Hello) append(b []byte) []byte {
	text, _ := json.Marshal(h) // a struct of strings
	b = append(appendRetry(b), "event: connection\ndata: "...)
	return append(append(b, text...), '\n', '\n')
}

// appendRetry says when a client that has lost its connection comes back: within 1 to
// 5 seconds, each at another moment.
func appendRetry(b []byte) []byte {
	b = append(b, "retry: "...)
	return append(strconv.AppendInt(b, 1000+rand.Int64N(4000), 10), '\n')
}

// Serve sends hello, what is queued and what will be, until the connection has ended.
// ctx is the client's. Nothing uses w any more when Serve returns.
func (c *Conn) Serve(ctx context.Context, w Writer, hello Hello) {
	cause := c.serve(ctx, w, hello)
	if cause != "" {
		c.lost(cause)
		return
	}
	c.mu.Lock()
	c.leaveLocked()
	c.mu.Unlock()
	c.report()
}

// serve returns why the client is gone, or nothing when it was told of the end.
func (c *Conn) serve(ctx context.Context, w Writer, hello Hello) (cause string) {
	if cause := c.write(w, hello.append(nil)); cause != "" {
		return cause
	}
	var pings <-chan time.Time
	if c.o.PingInterval > 0 {
		ticker := time.NewTicker(c.o.PingInterval)
		defer ticker.Stop()
		pings = ticker.C
	}
	for {
		last, cause := c.writeQueued(w)
		if last || cause != "" {
			return cause
		}
		select {
		case <-c.wake:
		case <-pings:
			if cause := c.write(w, ping); cause != "" {
				return cause
			}
		case <-ctx.Done():
			return CauseGone
		}
	}
}

// writeQueued writes until nothing is left. It reports whether that was the last.
func (c *Conn) writeQueued(w Writer) (last bool, cause string) {
	buf := batches.Get().(*[batchSize]byte)
	defer batches.Put(buf)
	for {
		b, last, silent := c.next(buf[:0])
		if silent {
			return true, ""
		}
		if len(b) == 0 {
			return false, ""
		}
		if cause := c.write(w, b); cause != "" || last {
			return last, cause
		}
	}
}

// next appends the events that are written next, as many as fit into b but at least
// one. silent means that there is nothing to be said any more.
func (c *Conn) next(b []byte) (_ []byte, last, silent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil && c.end.silent {
		return nil, true, true
	}
	n := 0
	for _, e := range c.queue {
		var event []byte
		if e.frame != nil {
			event = e.frame.event()
		}
		if n > 0 && len(b)+len(event) > batchSize-64 { // an ID has less
			break
		}
		b = c.appendEvent(b, e, event)
		n++
	}
	if n > 0 {
		c.popLocked(n)
		return b, false, false
	}
	if c.end != nil {
		return appendClose(b, &c.end.Ending), true, false
	}
	return nil, false, false
}

// appendEvent appends an event. One without data is not seen by the page, which
// remembers its ID nevertheless.
func (c *Conn) appendEvent(b []byte, e entry, event []byte) []byte {
	if e.id != 0 {
		b = append(append(b, "id: "...), Mark{Era: c.o.Era, Seq: e.id}.String()...)
		b = append(b, '\n')
	}
	if e.frame == nil {
		return append(b, '\n')
	}
	c.countOutLocked(len(e.frame.payload))
	return append(b, event...)
}

// write writes and flushes b, in pieces, so that a client that takes some of it in each
// WriteTimeout stays. It returns why the client is gone.
func (c *Conn) write(w Writer, b []byte) (cause string) {
	for len(b) > 0 {
		began := time.Now()
		n := min(len(b), chunkSize)
		_, err := w.Write(b[:n])
		if err == nil {
			err = w.FlushError()
		}
		b = b[n:]
		if err == nil {
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) || c.o.WriteTimeout > 0 && time.Since(began) >= c.o.WriteTimeout {
			return CauseSlow // HTTP/2 tells of its deadline only that the stream is closed
		}
		return CauseGone
	}
	return ""
}
