package websocket

import (
	"sync/atomic"
	"time"
)

// Options bounds a Conn.
type Options struct {
	// MaxMessageSize is the largest message that a client may send, in bytes,
	// all fragments together. Zero means no limit.
	MaxMessageSize int64
	// MaxFrameSize is the largest single data frame that a client may send, in
	// bytes. Zero means no limit.
	MaxFrameSize int64
	// QueueFrames is how many frames wait for the kernel to take them; one more
	// is refused. At least 1.
	QueueFrames int
	// QueueBytes is how many bytes those frames may have. A frame that is
	// larger by itself is taken when nothing else waits. Zero means no limit.
	QueueBytes int64
	// PingInterval is how often a ping is sent. Zero means never.
	PingInterval time.Duration
	// IdleTimeout closes a connection that sent nothing, not even a pong, for
	// this long. Time in which a message is handled does not count. Zero means
	// never.
	IdleTimeout time.Duration
	// WriteTimeout cuts a connection that took nothing of a pending write for
	// this long. It also bounds how long a killed connection may take for its
	// current frame. Zero means never.
	WriteTimeout time.Duration
	// Compression is one of CompressionOff, CompressionNoContext and
	// CompressionContext: whether permessage-deflate is agreed on with clients that
	// offer it.
	Compression int
	// CompressionThreshold is the smallest payload in bytes that is compressed.
	CompressionThreshold int
	// Contexts bounds what CompressionContext keeps for all connections that share
	// it; those that find no room compress each message by itself.
	Contexts *Contexts
	// Stats, which many connections may share, is counted up. Nil means none.
	Stats *Stats
}

// DefaultOptions returns the options of a server that was not configured.
func DefaultOptions() Options {
	return Options{
		MaxMessageSize: 1 << 20,
		MaxFrameSize:   1 << 20,
		QueueFrames:    64,
		QueueBytes:     8 << 20,
		PingInterval:   30 * time.Second,
		IdleTimeout:    120 * time.Second,
		WriteTimeout:   10 * time.Second,
	}
}

// Stats counts data frames and the bytes of their payloads as they pass. A
// message that arrives in fragments counts once.
type Stats struct {
	FramesIn, FramesOut, BytesIn, BytesOut atomic.Int64

	// Payloads that were compressed, before and after.
	DeflatedFrom, DeflatedTo atomic.Int64
	// Messages that came compressed, before and after they were decompressed.
	InflatedFrom, InflatedTo atomic.Int64
	// Messages that came whole, but whose connection was closed before they were
	// handled, by Close, Kill or a handler's error.
	Dropped atomic.Int64
}

func (s *Stats) in(n int)  { s.FramesIn.Add(1); s.BytesIn.Add(int64(n)) }
func (s *Stats) out(n int) { s.FramesOut.Add(1); s.BytesOut.Add(int64(n)) }
