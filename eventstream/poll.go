package eventstream

import (
	"context"
	"time"
)

// maxAnswer is how many bytes of payloads one poll gets, unless one frame is larger.
const maxAnswer = 1 << 20

// An Answer is what one poll gets, as JSON.
type Answer struct {
	*Hello
	// LastEventID is for the next poll.
	LastEventID string   `json:"last_event_id"`
	Frames      []*Frame `json:"frames"`
	// Close is there when the connection has ended.
	Close *goodbye `json:"close,omitempty"`
}

// polls is what a Conn without a stream remembers of its client, guarded by Conn.mu.
type polls struct {
	acked   uint64   // so many entries the client has, by its word
	given   uint64   // so many it was sent
	at      Position // of the last among the acked that has one
	current chan struct{}
}

// Poll returns the frames behind cursor as soon as there are any, or none after wait.
// It forgets those before: the client has them. A later poll ends this one. ctx is the
// client's; its error is returned when it ends.
func (c *Conn) Poll(ctx context.Context, cursor uint64, wait time.Duration) (Answer, error) {
	c.mu.Lock()
	defer c.report() // behind the lock
	defer c.mu.Unlock()
	if c.gone || c.polls == nil {
		return Answer{}, ErrClosed
	}
	if !c.ackLocked(cursor) {
		return Answer{}, ErrCursor
	}
	mine := c.takeOverLocked()
	c.waitLocked(ctx, mine, wait)
	if c.polls.current != mine {
		c.signalLocked() // it may have been the other's
		return c.emptyLocked(cursor), nil
	}
	c.polls.current = nil
	if c.gone { // cut
		return Answer{}, ErrClosed
	}
	c.expiry = c.loop.now() + int64(c.o.PollIdle)
	c.watchLocked()
	if err := ctx.Err(); err != nil {
		return Answer{}, err
	}
	return c.answerLocked(cursor), nil
}

// atOr returns the position of a client that has the entry, or the one before.
func (e entry) atOr(before Position) Position {
	if e.at.Seq == 0 {
		return before
	}
	return e.at
}

// ackLocked forgets the entries up to cursor, and reports whether it is possible.
func (c *Conn) ackLocked(cursor uint64) bool {
	if cursor < c.polls.acked || cursor > c.polls.given {
		return false
	}
	n := min(int(cursor-c.polls.acked), len(c.queue)) // Kill may have dropped them
	for _, e := range c.queue[:n] {
		c.polls.at = e.atOr(c.polls.at)
	}
	c.polls.acked = cursor
	if n > 0 {
		c.popLocked(n)
	}
	return true
}

// takeOverLocked makes a poll the current one; its channel is closed for another.
func (c *Conn) takeOverLocked() chan struct{} {
	if c.polls.current != nil {
		close(c.polls.current)
	}
	mine := make(chan struct{})
	c.polls.current = mine
	c.expiry = 0
	return mine
}

// waitLocked waits until there is something to tell.
func (c *Conn) waitLocked(ctx context.Context, mine chan struct{}, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for wait > 0 && c.polls.current == mine && c.end == nil && !c.hasNewsLocked() {
		c.mu.Unlock()
		over := false
		select {
		case <-c.wake:
		case <-mine:
		case <-timer.C:
			over = true
		case <-ctx.Done():
			over = true
		}
		c.mu.Lock()
		if over {
			return
		}
	}
}

// hasNewsLocked reports whether there is more than an ID for the client.
func (c *Conn) hasNewsLocked() bool {
	return len(c.queue) > 1 || len(c.queue) == 1 && c.queue[0].frame != nil
}

func (c *Conn) emptyLocked(cursor uint64) Answer {
	m := Mark{Era: c.o.Era, Position: c.polls.at, Cursor: cursor, Polled: true}
	return Answer{LastEventID: m.String(), Frames: []*Frame{}}
}

// answerLocked returns what is queued. It stays there until the client says that it has
// it, but for the last: the end is told once.
func (c *Conn) answerLocked(cursor uint64) Answer {
	a := c.emptyLocked(cursor)
	m := Mark{Era: c.o.Era, Position: c.polls.at, Cursor: cursor, Polled: true}
	bytes := int64(0)
	for _, e := range c.queue {
		if bytes += e.size(); len(a.Frames) > 0 && bytes > maxAnswer {
			break
		}
		m.Cursor++
		m.Position = e.atOr(m.Position)
		if e.frame != nil {
			a.Frames = append(a.Frames, e.frame)
			if m.Cursor > c.polls.given {
				c.countOutLocked(len(e.frame.payload))
			}
		}
	}
	c.polls.given = max(c.polls.given, m.Cursor)
	a.LastEventID = m.String()
	if c.end != nil && int(m.Cursor-cursor) == len(c.queue) {
		a.Close = c.end.goodbye()
		c.leaveLocked()
	}
	return a
}
