package eventstream

import (
	"encoding/json"
	"time"
)

// Causes that this package gives to an ending; others are its user's.
const (
	CauseGone = "gone" // the client left, or did not come back
	CauseSlow = "slow" // it did not read
)

// codeAbnormal is RFC 6455's code for an end without a word.
const codeAbnormal = 1006

// An Ending says how a connection ends, in the words of RFC 6455 §7.4.
type Ending struct {
	Code   int
	Reason string
	Cause  string
}

// Closed tells how a connection ended.
type Closed struct {
	Ending
	Duration time.Duration // since Open

	// Messages and the bytes of their payloads.
	FramesIn, FramesOut, BytesIn, BytesOut int64
}

// An ending is the first decision to close; it stays.
type ending struct {
	Ending
	silent bool // the client is not told
	drops  bool // messages that wait are not handled
	urgent bool // the client is not waited for any longer than once
}

// retryCodes are those after which a client should come back: the server went away,
// restarts, has no room at the moment, or something failed.
var retryCodes = map[int]bool{1001: true, 1011: true, 1012: true, 1013: true, 1014: true}

// goodbye is what a client is told at the end.
type goodbye struct {
	Code   int    `json:"code"`
	Reason string `json:"reason"`
	Retry  bool   `json:"retry"` // it should come back
}

func (e *Ending) goodbye() *goodbye { return &goodbye{e.Code, e.Reason, retryCodes[e.Code]} }

// appendClose appends the last event of a stream. A client that comes back by itself
// does so later, or learns by the ID that it must not.
func appendClose(b []byte, e *Ending) []byte {
	g := e.goodbye()
	text, _ := json.Marshal(g) // a struct of strings and numbers
	if g.Retry {
		b = appendRetry(b)
	} else {
		b = append(b, "id: "+Over+"\n"...)
	}
	b = append(b, "event: close\ndata: "...)
	return append(append(b, text...), '\n', '\n')
}

// Close ends the connection when the client has got what is queued, and tells it code
// and reason. The first call decides, later ones do nothing. Sends are refused from
// here on, and messages that were not handled yet are dropped.
func (c *Conn) Close(code int, reason, cause string) {
	c.finish(&ending{Ending: Ending{code, reason, cause}, drops: true})
}

// Leave ends the connection for the client, which asks for it: messages that it sent
// before are handled.
func (c *Conn) Leave(code int, reason, cause string) {
	c.mu.Lock()
	c.endLocked(&ending{Ending: Ending{Code: code, Reason: reason, Cause: cause}})
	if c.polls != nil && c.polls.current == nil {
		c.leaveLocked()
	}
	c.mu.Unlock()
	c.report()
}

// Kill is Close for a client that does not read: it drops the queue. It reports
// whether this call was the first to close.
func (c *Conn) Kill(code int, reason, cause string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.endLocked(&ending{Ending: Ending{code, reason, cause}, drops: true, urgent: true}) {
		return false
	}
	c.queue, c.queued = nil, 0
	return true
}

// Closing reports whether the connection closes or has gone, so that every send is
// refused.
func (c *Conn) Closing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end != nil
}

// Abandon refuses all further sends of a Conn that will not be opened, and drops what
// is queued.
func (c *Conn) Abandon() { c.Cut(CauseGone) }

// Cut ends the connection without a word. An ending that was decided before stays the
// one reported. A write that does not return is its Writer's to end.
func (c *Conn) Cut(cause string) {
	c.mu.Lock()
	c.endLocked(&ending{Ending: Ending{codeAbnormal, "", cause}})
	c.end.silent = true
	c.queue, c.queued = nil, 0
	c.signalLocked()
	if c.polls != nil {
		c.leaveLocked()
	}
	c.mu.Unlock()
	c.report()
}

// CutIdle ends a connection that is closing and whose client does not poll at the
// moment: it is not waited for.
func (c *Conn) CutIdle() {
	c.mu.Lock()
	if c.polls != nil && c.end != nil && c.polls.current == nil {
		c.leaveLocked()
	}
	c.mu.Unlock()
	c.report()
}

// hangUp ends a parked connection without a word; its poller drops it.
func (c *Conn) hangUp(cause string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(&ending{Ending: Ending{codeAbnormal, "", cause}})
	c.end.silent = true
}

// silent reports whether the client is told nothing any more.
func (c *Conn) silent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end != nil && c.end.silent
}

// lost ends a connection whose client is not there any more.
func (c *Conn) lost(cause string) {
	c.mu.Lock()
	c.lostLocked(cause)
	c.mu.Unlock()
	c.report()
}

func (c *Conn) lostLocked(cause string) {
	c.endLocked(&ending{Ending: Ending{codeAbnormal, "", cause}, silent: true})
	c.leaveLocked()
}

func (c *Conn) finish(e *ending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(e)
}

// endLocked makes e the ending if there is none yet.
func (c *Conn) endLocked(e *ending) bool {
	if c.end != nil {
		return false
	}
	c.end = e
	if c.handler != nil {
		c.handler.Closing()
	}
	c.makeRoomLocked()
	c.signalLocked()
	return true
}
