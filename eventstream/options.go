package eventstream

import (
	"sync/atomic"
	"time"
)

// Options bounds a Conn.
type Options struct {
	// QueueFrames is how many frames wait for the client; one more is refused. At
	// least 1. Polls fetch frames only once in a while, so theirs are pollDepth times
	// as many.
	QueueFrames int
	// QueueBytes is how many bytes those frames may have. A frame that is larger by
	// itself is taken when nothing else waits. Zero means no limit.
	QueueBytes int64
	// PingInterval is how often a comment is sent. Zero means never.
	PingInterval time.Duration
	// WriteTimeout is how long a write may take nothing, as whoever made the Writer
	// has set it: a write that fails after so long means a slow client. Zero means
	// for ever.
	WriteTimeout time.Duration
	// AckTimeout ends a parked connection whose client has acknowledged nothing of what
	// it was sent for so long, as its machine has vanished. Zero leaves it to TCP, which
	// takes a quarter of an hour.
	AckTimeout time.Duration
	// PollIdle is how long after a poll the next must come. It must be more than 0.
	PollIdle time.Duration
	// Era tells the sequence numbers of this process from those of another.
	Era uint32
	// Stats, which many connections may share, is counted up. Nil means none.
	Stats *Stats
}

// pollDepth is how many times more frames wait for a poll than for a stream.
const pollDepth = 16

// Stats counts data frames and the bytes of their payloads as they pass.
type Stats struct {
	FramesIn, FramesOut, BytesIn, BytesOut atomic.Int64
}

// counts is Stats of one connection.
type counts struct{ framesIn, framesOut, bytesIn, bytesOut int64 }

func (c *Conn) countInLocked(n int) {
	c.passed.framesIn++
	c.passed.bytesIn += int64(n)
	if s := c.o.Stats; s != nil {
		s.FramesIn.Add(1)
		s.BytesIn.Add(int64(n))
	}
}

func (c *Conn) countOutLocked(n int) {
	c.passed.framesOut++
	c.passed.bytesOut += int64(n)
	if s := c.o.Stats; s != nil {
		s.FramesOut.Add(1)
		s.BytesOut.Add(int64(n))
	}
}
