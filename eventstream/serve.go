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
	c.mu.Lock()
	c.wake = make(chan struct{}, 1)
	c.mu.Unlock()
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
	for {
		last, cause := c.writeQueued(w)
		if last || cause != "" {
			return cause
		}
		select {
		case <-c.wake:
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
		p := c.next(buf[:0])
		if p.silent || !p.some {
			return p.silent, ""
		}
		if cause = c.write(w, p.b); cause == "" {
			cause = c.write(w, p.large)
		}
		if cause != "" || p.last {
			return p.last, cause
		}
	}
}

// A piece is what is written next.
type piece struct {
	b      []byte // small events, joined
	large  []byte // one behind them that is too large for that; others share it
	some   bool   // there is something
	last   bool   // nothing follows
	silent bool   // there is nothing to be said any more
}

// maxField is what stands in front of the data of an event, in bytes.
const maxField = len("id: \n") + maxMark

// next takes what is written next from the queue: as many events as fit into
// batchSize, appended to b, but at least one.
func (c *Conn) next(b []byte) piece {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil && c.end.silent {
		return piece{silent: true}
	}
	p := piece{b: b}
	most, n := len(b)+batchSize, 0
	for _, e := range c.queue {
		var event []byte
		if e.frame != nil {
			event = e.frame.event()
		}
		if n > 0 && len(p.b)+maxField+len(event) > most {
			break
		}
		n++
		p.b = c.appendID(p.b, e)
		if e.frame != nil {
			c.countOutLocked(len(e.frame.payload))
		}
		if len(event) > batchSize-maxField {
			p.large = event
			break
		}
		p.b = append(p.b, event...)
	}
	switch {
	case n > 0:
		c.popLocked(n)
	case c.end != nil:
		p.b, p.last = appendClose(p.b, &c.end.Ending), true
	case c.pingDue:
		p.b = append(p.b, ping...)
	default:
		return p
	}
	c.pingDue = false // it was to show that the connection is there
	p.some = true
	return p
}

// appendID appends the ID that stands before an event. One without data is not seen by
// the page, which remembers its ID nevertheless.
func (c *Conn) appendID(b []byte, e entry) []byte {
	if e.at.Seq != 0 {
		b = Mark{Era: c.o.Era, Position: e.at}.append(append(b, "id: "...))
		b = append(b, '\n')
	}
	if e.frame == nil {
		b = append(b, '\n')
	}
	return b
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
