package websocket

// tick is called by the wheel: it cuts a connection that took or answered
// nothing in time, closes one that is idle, sends the ping that is due, and asks
// for the next call.
func (c *Conn) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.loop.now()
	switch {
	case c.gone:
		return
	case c.expiry != 0 && now >= c.expiry:
		c.cutLocked(c.expiryCauseLocked())
	case c.end == nil && c.later != nil:
		if now >= c.laterBy {
			c.endLaterLocked()
		}
	case c.end == nil && c.idleEndLocked(now) <= now:
		c.endLocked(ending{code: CodeGoingAway, cause: CauseIdle, frame: closeFrame(CodeGoingAway, "")})
	case c.end == nil && c.o.PingInterval > 0 && now >= c.nextPing:
		c.nextPing = now + int64(c.o.PingInterval)
		c.pingDue = true
		c.flushLocked()
		if !c.gone {
			c.line.wakeReader(c) // costs nothing, and no lost event of the kernel lasts
		}
	}
	c.watchLocked(now)
}

// expiryCauseLocked is why a connection is cut at c.expiry: it took no data, or
// it never answered the close frame, and then the ending is decided already.
func (c *Conn) expiryCauseLocked() Cause {
	if c.closeSent {
		return CauseGone
	}
	return CauseSlow
}

// watchLocked has tick called when something is due next.
func (c *Conn) watchLocked(now int64) {
	due := int64(never)
	if c.expiry != 0 {
		due = c.expiry
	}
	switch {
	case c.end != nil:
	case c.later != nil:
		due = min(due, c.laterBy)
	default:
		due = min(due, c.idleEndLocked(now))
		if c.o.PingInterval > 0 {
			due = min(due, c.nextPing)
		}
	}
	if due != never && !c.gone {
		c.loop.wheel.Set(c, due)
	}
}

const never = 1<<63 - 1

// idleEndLocked is when the connection will have been idle for too long. While a
// message is handled the reader may be stopped, so frames could be waiting
// unread.
func (c *Conn) idleEndLocked(now int64) int64 {
	if c.o.IdleTimeout == 0 {
		return never
	}
	since := max(c.heard.Load(), c.handled)
	if c.handling {
		since = now
	}
	return since + int64(c.o.IdleTimeout)
}
