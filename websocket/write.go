package websocket

import (
	"errors"
	"os"
	"sync"
	"time"
)

const (
	// batchSize is how many bytes of small frames are joined into one write.
	batchSize = 16 << 10
	// chunkSize is what a client must take within WriteTimeout to stay.
	chunkSize = 16 << 10
)

var batches = sync.Pool{New: func() any { return new([batchSize]byte) }}

// startWriterLocked starts the writer if there is something to write and none
// runs. Serve waits for it.
func (c *Conn) startWriterLocked() {
	if c.net == nil || c.writerRuns || !c.pendingLocked() {
		return
	}
	c.writerRuns = true
	c.writer.Go(c.write)
}

func (c *Conn) pendingLocked() bool {
	if c.closeSent || c.end != nil && c.end.frame == nil {
		return false
	}
	return len(c.queue) > 0 || c.pong != nil || c.pingDue || c.end != nil && c.end.frame != nil
}

// write writes until nothing is left, and is then gone.
func (c *Conn) write() {
	buf := batches.Get().(*[batchSize]byte)
	defer batches.Put(buf)
	for {
		c.mu.Lock()
		b, last := c.nextLocked(buf[:0])
		if b == nil {
			c.writerRuns = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()

		err := c.put(b)
		c.wrote(err, last)
		if err != nil {
			return
		}
	}
}

// nextLocked takes what goes out next: a pong or ping, then queued frames,
// joined in buf when they are small, and the close frame last, unless that one
// is urgent. It returns nil, and the writer ends, when there is nothing.
func (c *Conn) nextLocked(buf []byte) (b []byte, last bool) {
	switch {
	case c.closeSent || c.end != nil && c.end.frame == nil:
		return nil, false
	case c.end != nil && c.end.urgent:
		return c.end.frame, true
	case c.pong != nil:
		b, c.pong = c.pong, nil
		return b, false
	case c.pingDue:
		c.pingDue = false
		return []byte{fin | opPing, 0}, false
	case len(c.queue) > 0:
		return c.batchLocked(buf), false
	case c.end != nil:
		return c.end.frame, true
	}
	return nil, false
}

// batchLocked marks the frames that are written together and returns them.
func (c *Conn) batchLocked(buf []byte) []byte {
	c.writing = 1
	if len(c.queue) == 1 || len(c.queue[0])+len(c.queue[1]) > cap(buf) {
		return c.queue[0]
	}
	c.writing = 0
	for _, frame := range c.queue {
		if len(buf)+len(frame) > cap(buf) {
			break
		}
		buf = append(buf, frame...)
		c.writing++
	}
	return buf
}

// put writes b. The deadline is renewed as long as the client takes something.
func (c *Conn) put(b []byte) error {
	for len(b) > 0 {
		expiry := c.writeExpiry()
		if err := c.net.SetWriteDeadline(expiry); err != nil {
			return err
		}
		n, err := c.net.Write(b[:min(len(b), chunkSize)])
		b = b[n:]
		if err != nil && (n == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return err
		}
	}
	return nil
}

// writeExpiry is when the next write must have made progress; no time means
// never.
func (c *Conn) writeExpiry() time.Time {
	if c.o.WriteTimeout == 0 {
		return time.Time{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil && !c.end.expiry.IsZero() {
		return c.end.expiry // Kill's bound is not renewed
	}
	return time.Now().Add(c.o.WriteTimeout)
}

// wrote accounts for a write and, behind the close frame, gives the peer a
// bounded time to answer.
func (c *Conn) wrote(err error, last bool) {
	if err != nil {
		cause := CauseGone
		if errors.Is(err, os.ErrDeadlineExceeded) {
			cause = CauseSlow
		}
		c.cut(cause)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.queue, c.queued, c.writing = nil, 0, 0
		c.writerRuns = false
		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	for _, frame := range c.queue[:c.writing] {
		n := payloadLen(frame)
		c.passed.out(n)
		if c.o.Stats != nil {
			c.o.Stats.out(n)
		}
	}
	c.popLocked()
	c.signalLocked()
	if !last {
		return
	}
	c.closeSent = true
	if half, ok := c.net.(interface{ CloseWrite() error }); ok && c.end.failed {
		_ = half.CloseWrite() // the reader finds out when it did not work
	}
	_ = c.net.SetReadDeadline(time.Now().Add(c.closeWait()))
}

func (c *Conn) closeWait() time.Duration {
	if c.o.WriteTimeout > 0 && c.o.WriteTimeout < closeWait {
		return c.o.WriteTimeout
	}
	return closeWait
}
