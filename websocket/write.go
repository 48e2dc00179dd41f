package websocket

import "sync"

// batchSize is how many bytes of small frames are joined into one write.
const batchSize = 16 << 10

var batches = sync.Pool{New: func() any { return new([batchSize]byte) }}

// A piece is what is written next.
type piece struct {
	b      []byte
	frames int  // so many of the queue, the first from off; 0 for a control frame
	last   bool // the close frame
}

// nextLocked returns what goes out next: the rest of what has begun, pongs or a
// ping, then queued frames, joined in buf when they are small, and the close
// frame last, unless that one is urgent. Without b there is nothing.
func (c *Conn) nextLocked(buf []byte) piece {
	switch {
	case c.closeSent || c.end != nil && c.end.frame == nil:
		return piece{}
	case len(c.part) > 0:
		return piece{b: c.part, last: c.lastPart}
	case c.off > 0:
		return c.batchLocked(buf)
	case c.end != nil && c.end.urgent:
		return piece{b: c.end.frame, last: true}
	case len(c.pongs) > 0: // they are on their way from here: more may come meanwhile
		c.part, c.pongs, c.lastPart = c.pongs, nil, false
		return piece{b: c.part}
	case c.pingDue:
		return piece{b: pingFrame}
	case len(c.queue) > 0:
		return c.batchLocked(buf)
	case c.end != nil:
		return piece{b: c.end.frame, last: true}
	}
	return piece{}
}

var pingFrame = []byte{fin | opPing, 0}

// batchLocked returns the frames that are written together.
func (c *Conn) batchLocked(buf []byte) piece {
	first := c.queue[0][c.off:]
	if len(c.queue) == 1 || len(first)+len(c.queue[1]) > cap(buf) {
		return piece{b: first, frames: 1}
	}
	p := piece{b: append(buf[:0], first...), frames: 1}
	for _, frame := range c.queue[1:] {
		if len(p.b)+len(frame) > cap(buf) {
			break
		}
		p.b = append(p.b, frame...)
		p.frames++
	}
	return p
}

// tookLocked accounts for n bytes of a piece that were written.
func (c *Conn) tookLocked(p piece, n int) {
	if p.frames == 0 {
		switch {
		case len(c.part) > 0:
		case p.last:
		default:
			c.pingDue = false
		}
		c.part, c.lastPart = p.b[n:], p.last
		if len(c.part) > 0 {
			return
		}
		c.part = nil
		if p.last {
			c.saidGoodbyeLocked()
		}
		return
	}
	done := 0
	for n += c.off; done < p.frames && n >= len(c.queue[done]); done++ {
		size := len(c.queue[done])
		n -= size
		c.queued -= int64(size)
		c.countOutLocked(payloadLen(c.queue[done]))
	}
	c.off = n
	c.popLocked(done)
	c.signalLocked()
}

func (c *Conn) countOutLocked(size int) {
	c.passed.out(size)
	if c.o.Stats != nil {
		c.o.Stats.out(size)
	}
}

// saidGoodbyeLocked is called behind the close frame. It gives the peer a bounded
// time to answer.
func (c *Conn) saidGoodbyeLocked() {
	c.closeSent = true
	now := c.loop.now()
	c.expiry = now + int64(c.closeWait())
	c.watchLocked(now)
	if c.end.failed {
		c.line.halfClose(c)
	}
}

// stuckLocked is called when the line takes nothing: it gets WriteTimeout to
// make progress, and progress gives it as much again.
func (c *Conn) stuckLocked(progress bool) {
	if c.o.WriteTimeout == 0 || c.closeSent || c.expiry != 0 && !progress {
		return
	}
	now := c.loop.now()
	c.expiry = now + int64(c.o.WriteTimeout)
	if c.end != nil && c.end.expiry != 0 {
		c.expiry = c.end.expiry // Kill's bound is not renewed
	}
	c.watchLocked(now)
}

// freeLocked is called when the line takes something again.
func (c *Conn) freeLocked() {
	if !c.closeSent {
		c.expiry = 0
	}
}
