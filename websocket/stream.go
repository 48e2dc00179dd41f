package websocket

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// A Stream is what a connection can travel on when it has no descriptor that
// could be parked: a stream of HTTP/2 or HTTP/3, or a connection of the tests.
// Close ends Read and Write that wait. A method CloseWrite, if there is one,
// tells the client that nothing follows. A method Multiplexed marks one of several
// streams of a connection: closing it loses nothing that was written, whatever was
// not read.
type Stream interface {
	io.ReadWriteCloser
	SetWriteDeadline(time.Time) error
}

const (
	// streamBuffer holds headers and small messages.
	streamBuffer = 4 << 10
	// chunkSize is what a client must take within WriteTimeout to stay.
	chunkSize = 16 << 10
)

// A streamLine is the line of a connection with a goroutine that reads and,
// while there is something to write, one that writes.
type streamLine struct {
	stream Stream
	early  []byte     // read before
	room   *sync.Cond // on Conn.mu: Conn.stopped was unset
	said   *sync.Cond // on Conn.mu: the close frame is sent or never will be
	writer sync.WaitGroup
}

func newStreamLine(c *Conn, s Stream, early []byte) *streamLine {
	return &streamLine{stream: s, early: early, room: sync.NewCond(&c.mu), said: sync.NewCond(&c.mu)}
}

func (l *streamLine) start(c *Conn) { c.loop.crew.run(func() { l.run(c) }) }

// run is the life of the connection.
func (l *streamLine) run(c *Conn) {
	if err := l.read(c); err != nil {
		c.fail(err)
		if _, ok := l.stream.(interface{ Multiplexed() }); !ok {
			// Closing with unread bytes would reset the connection, and the client
			// might lose the close frame. The wheel ends it.
			_, _ = io.Copy(io.Discard, l.stream)
			c.lost()
		}
	}
	c.mu.Lock()
	for c.end == nil || c.end.frame != nil && !c.closeSent {
		l.said.Wait()
	}
	c.mu.Unlock()
	_ = l.stream.Close()
	l.writer.Wait()
	c.mu.Lock()
	c.leaveLocked()
	c.mu.Unlock()
	c.report()
}

// read reads until the connection ends, or until the client breaks a rule.
func (l *streamLine) read(c *Conn) *failure {
	buf := make([]byte, max(streamBuffer, len(l.early)+maxControl))
	have := copy(buf, l.early)
	l.early = nil
	for {
		used, verdict, err := c.feed(buf[:have])
		have = copy(buf, buf[used:have])
		switch {
		case err != nil:
			return err
		case verdict == ended:
			return nil
		case verdict == paused:
			l.waitForRoom(c)
			continue
		}
		n, failed := l.stream.Read(buf[have:])
		if n > 0 {
			have += n
			c.heardNow()
		} else if failed != nil {
			c.lost()
			return nil
		}
	}
}

func (l *streamLine) waitForRoom(c *Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.stopped {
		l.room.Wait()
	}
}

func (l *streamLine) wakeReader(*Conn) { l.room.Broadcast() }

func (l *streamLine) hangUp(*Conn) {
	l.said.Signal()
	_ = l.stream.Close() // nobody is left to tell
}

func (l *streamLine) halfClose(*Conn) {
	if half, ok := l.stream.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the reader finds out when it did not work
	}
}

// flush starts the writer if there is something to write and none runs.
func (l *streamLine) flush(c *Conn) {
	if !c.sending && c.nextLocked(nil).b != nil {
		c.sending = true
		l.writer.Go(func() { l.write(c) })
	}
}

// write writes until nothing is left, and is then gone.
func (l *streamLine) write(c *Conn) {
	buf := batches.Get().(*[batchSize]byte)
	defer batches.Put(buf)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		p := c.nextLocked(buf[:0])
		if p.b == nil {
			c.sending = false
			return
		}
		c.writing = p.frames
		c.mu.Unlock()
		err := l.put(p.b, c.o.WriteTimeout)
		c.mu.Lock()
		c.writing = 0
		if err != nil {
			c.sending = false
			cause := CauseGone
			if errors.Is(err, os.ErrDeadlineExceeded) {
				cause = CauseSlow
			}
			c.cutLocked(cause)
			return
		}
		c.tookLocked(p, len(p.b))
		if c.closeSent {
			l.said.Signal()
		}
	}
}

// put writes b. The deadline is renewed as long as the client takes something.
func (l *streamLine) put(b []byte, timeout time.Duration) error {
	for len(b) > 0 {
		if timeout > 0 {
			if err := l.stream.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
				return err
			}
		}
		n, err := l.stream.Write(b[:min(len(b), chunkSize)])
		b = b[n:]
		if err != nil && (n == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return err
		}
	}
	return nil
}
