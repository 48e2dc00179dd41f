package websocket

import "time"

// ageNow is the time since Accept.
func (c *Conn) ageNow() time.Duration { return time.Since(c.opened) }

func (c *Conn) startTimerLocked() {
	if c.o.PingInterval == 0 && c.o.IdleTimeout == 0 {
		return
	}
	c.nextPing = c.o.PingInterval
	first := c.o.PingInterval
	if first == 0 || c.o.IdleTimeout > 0 && c.o.IdleTimeout < first {
		first = c.o.IdleTimeout
	}
	c.timer = time.AfterFunc(first, c.tick)
}

func (c *Conn) stopTimerLocked() {
	if c.timer != nil {
		c.timer.Stop()
	}
}

// tick sends the ping that is due, closes the connection that is idle, and
// sleeps until one of them is due next.
func (c *Conn) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		return
	}
	now := c.ageNow()
	var sleep time.Duration
	if c.o.IdleTimeout > 0 {
		if sleep = c.idleSinceLocked(now) + c.o.IdleTimeout - now; sleep <= 0 {
			c.endLocked(ending{code: CodeGoingAway, cause: CauseIdle, frame: closeFrame(CodeGoingAway, "")})
			return
		}
	}
	if c.o.PingInterval > 0 {
		if now >= c.nextPing {
			c.nextPing = now + c.o.PingInterval
			c.pingDue = true
			c.startWriterLocked()
		}
		if wait := c.nextPing - now; sleep == 0 || wait < sleep {
			sleep = wait
		}
	}
	c.timer.Reset(sleep)
}

// idleSinceLocked is when the client was last heard. While a message is handled
// the reader may be stopped, so frames could be waiting unread.
func (c *Conn) idleSinceLocked(now time.Duration) time.Duration {
	if c.handling {
		return now
	}
	return max(time.Duration(c.heard.Load()), c.handled)
}
