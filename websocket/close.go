package websocket

import "time"

// Close codes of RFC 6455 §7.4.1 that this package sends or reports.
const (
	CodeNormal      = 1000
	CodeGoingAway   = 1001
	CodeProtocol    = 1002
	CodeNone        = 1005 // reported only: the peer's close frame had no code
	CodeAbnormal    = 1006 // reported only: no close frame came
	CodeInvalidData = 1007
	CodePolicy      = 1008
	CodeTooBig      = 1009
	CodeInternal    = 1011
	CodeTryAgain    = 1013
)

// closeWait is how long the peer has to answer our close frame, when
// Options.WriteTimeout is not shorter.
const closeWait = 5 * time.Second

// A Cause says who or what ended a connection.
type Cause string

// The causes.
const (
	CauseClient   Cause = "client"   // the client sent a close frame
	CauseServer   Cause = "server"   // the application asked for it
	CauseIdle     Cause = "idle"     // nothing came for IdleTimeout
	CauseSlow     Cause = "slow"     // the client did not read fast enough
	CauseTimeout  Cause = "timeout"  // a handler ran too long
	CauseLimit    Cause = "limit"    // a message or frame was too big, or messages too many
	CauseProtocol Cause = "protocol" // the client broke RFC 6455
	CauseShutdown Cause = "shutdown" // the server stops
	CauseGone     Cause = "gone"     // the connection broke
)

// Causes returns every cause, for metrics.
func Causes() []Cause {
	return []Cause{CauseClient, CauseServer, CauseIdle, CauseSlow, CauseTimeout,
		CauseLimit, CauseProtocol, CauseShutdown, CauseGone}
}

// Closed tells how a connection ended.
type Closed struct {
	Code     int // of the first close frame either side sent, or 1005 or 1006
	Reason   string
	Cause    Cause
	Duration time.Duration // since Accept

	// Data messages and the bytes of their payloads.
	FramesIn, FramesOut, BytesIn, BytesOut int64
}

// SendableCode reports whether an endpoint may send code in a close frame
// (RFC 6455 §7.4 and the IANA registry).
func SendableCode(code int) bool {
	return code >= 1000 && code <= 1003 || code >= 1007 && code <= 1014 || code >= 3000 && code <= 4999
}

// An ending is the first decision to close; it stays.
type ending struct {
	code   int
	reason string
	cause  Cause
	frame  []byte // to be sent; nil when the connection is broken
	urgent bool   // the queue was dropped
	failed bool   // the client broke a rule: half-close behind the frame
	expiry int64  // when the frame must be written, 0 for no limit
}

// Close sends what is queued, then a close frame, and ends the connection when
// the client has answered. The first call decides, later ones do nothing. Sends
// are refused from here on, and messages that were not handled yet are dropped.
func (c *Conn) Close(code int, reason string, cause Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endLocked(ending{code: code, reason: reason, cause: cause, frame: closeFrame(code, reason)}) {
		c.dropInboxLocked()
	}
}

// Kill is Close for a client that does not read: it drops the queue, and the
// close frame follows the frame that is being written. It reports whether this
// call was the first to close.
func (c *Conn) Kill(code int, reason string, cause Cause) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		return false
	}
	e := ending{code: code, reason: reason, cause: cause, frame: closeFrame(code, reason), urgent: true}
	if c.o.WriteTimeout > 0 {
		e.expiry = c.loop.now() + int64(c.o.WriteTimeout)
	}
	c.dropInboxLocked()
	c.dropQueueLocked()
	c.endLocked(e)
	if e.expiry != 0 && !c.closeSent {
		c.expiry = e.expiry
		c.watchLocked(c.loop.now())
	}
	return true
}

// Closing reports whether the connection closes or has gone, so that every send
// is refused.
func (c *Conn) Closing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end != nil
}

// Abandon refuses all further sends of a Conn that will not be accepted and
// drops what is queued.
func (c *Conn) Abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(ending{code: CodeAbnormal, cause: CauseGone})
	c.dropQueueLocked()
	c.giveContextsLocked()
}

// Cut ends the connection without a word. An ending that was decided before
// stays the one reported.
func (c *Conn) Cut(cause Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cutLocked(cause)
}

// endLocked makes e the ending if there is none yet.
func (c *Conn) endLocked(e ending) bool {
	if c.end != nil {
		return false
	}
	c.end = &e
	if c.handler != nil {
		c.handler.Closing()
	}
	c.signalLocked()
	c.wakeReaderLocked()
	c.flushLocked()
	return true
}

// endInOrderLocked ends what the client has ended, or what it broke. The messages
// that came before are handled before, and their answers sent, but a handler
// cannot hold up the end for long.
func (c *Conn) endInOrderLocked(e ending) {
	if !c.handling || c.end != nil {
		c.endLocked(e)
		return
	}
	now := c.loop.now()
	c.later, c.laterBy = &e, now+int64(c.closeWait())
	c.watchLocked(now)
}

func (c *Conn) endLaterLocked() {
	if e := c.later; e != nil {
		c.later = nil
		c.endLocked(*e)
	}
}

// fail closes because the client broke a rule.
func (c *Conn) fail(f *failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endInOrderLocked(ending{code: f.code, reason: f.reason, cause: f.cause, frame: closeFrame(f.code, f.reason), failed: true})
}

func (c *Conn) cutLocked(cause Cause) {
	c.endLocked(ending{code: CodeAbnormal, cause: cause})
	c.end.frame = nil
	c.dropQueueLocked()
	c.wakeReaderLocked()
	if c.line != nil && !c.gone {
		c.line.hangUp(c)
	}
}

func (c *Conn) closeWait() time.Duration {
	if c.o.WriteTimeout > 0 && c.o.WriteTimeout < closeWait {
		return c.o.WriteTimeout
	}
	return closeWait
}
