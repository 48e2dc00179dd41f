package eventstream

import (
	"errors"
	"sync"
	"time"

	"ephpm/wheel"
)

// Errors of Poll and Handle.
var (
	// ErrClosed means that the connection has ended, or is about to.
	ErrClosed = errors.New("eventstream: connection has ended")
	// ErrFull means that too many messages wait to be handled.
	ErrFull = errors.New("eventstream: too many messages wait")
	// ErrCursor means that the frames behind a cursor are not there any more, or
	// never were.
	ErrCursor = errors.New("eventstream: no such cursor")
)

// A Handler is told of the end of a connection.
type Handler interface {
	// Closing is called once for a connection that was opened, when every further send
	// is refused. It must not wait, nor call the Conn.
	Closing()
	// Closed is called once for a connection that was opened, when its client can
	// be told nothing any more and the last message was handled. It must not wait.
	Closed(c Closed)
}

// A Conn is one connection. TrySend, SendWait, Handle, Close, Kill, Cut, CutIdle and
// Abandon may be called from any goroutine at any time; Open once, and then either
// Park or Serve once, or Poll any number of times.
type Conn struct {
	loop *Loop
	o    *Options

	// Set by Open.
	handler Handler
	opened  int64 // since the loop began, as all times here

	timed wheel.Place[*Conn]

	mu     sync.Mutex // guards the following
	queue  []entry
	queued int64 // bytes of their payloads
	room   chan struct{}
	order  order
	passed counts

	parked *parked       // nil unless a poller serves it
	polls  *polls        // nil unless it is polled
	wake   chan struct{} // holds one: there is something to write; nil while nobody waits for it

	nextPing int64
	expiry   int64 // when it has taken nothing, or not polled, for too long; 0: never
	pingDue  bool

	end      *ending
	open     bool
	gone     bool // the client is told nothing any more
	reported bool

	handling bool            // a message is handled
	waiting  []chan struct{} // messages that wait for their turn, which is closed then
}

// An entry is what waits for the client.
type entry struct {
	frame *Frame   // nil when there is only a position
	at    Position // of a client that has it
}

func (e entry) size() int64 {
	if e.frame == nil {
		return 0
	}
	return int64(len(e.frame.payload))
}

// New returns a Conn whose client has not been answered yet. Frames may be queued,
// and Close or Kill takes effect when it is. o may be shared and does not change.
func (l *Loop) New(o *Options) *Conn { return &Conn{loop: l, o: o} }

// Open begins the connection: Park or Serve follows, or polls. Every broadcast up to
// settled that is for the client was tried on it, so once it has what is queued so
// far it has come as far as that, and is told so then; 0 tells it nothing.
func (c *Conn) Open(h Handler, polled bool, settled uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.loop.now()
	c.handler, c.opened, c.open = h, now, true
	if settled != 0 {
		c.order.settle(settled)
		c.queue = append(c.queue, entry{at: c.order.position()})
	}
	if polled {
		c.polls, c.wake = new(polls), make(chan struct{}, 1)
		c.expiry = now + int64(c.o.PollIdle)
	} else if c.o.PingInterval > 0 {
		c.nextPing = now + int64(c.o.PingInterval)
	}
	c.watchLocked()
	if c.end != nil {
		h.Closing()
	}
}

// signalLocked has the queue looked at.
func (c *Conn) signalLocked() {
	if c.parked != nil {
		if !c.gone {
			c.parked.poller.turns.Claim(c)
		}
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// makeRoomLocked wakes whoever waits for room in the queue.
func (c *Conn) makeRoomLocked() {
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
}

// leaveLocked marks a connection that is over. report follows.
func (c *Conn) leaveLocked() {
	c.gone = true
	c.queue, c.queued = nil, 0
	c.loop.wheel.Remove(c)
	c.makeRoomLocked()
	c.signalLocked()
}

// report tells the handler that the connection has ended, once it has.
func (c *Conn) report() {
	c.mu.Lock()
	if !c.gone || c.handling || c.reported || c.handler == nil {
		c.mu.Unlock()
		return
	}
	c.reported = true
	closed := Closed{
		Ending: c.end.Ending, Duration: time.Duration(c.loop.now() - c.opened),
		FramesIn: c.passed.framesIn, FramesOut: c.passed.framesOut,
		BytesIn: c.passed.bytesIn, BytesOut: c.passed.bytesOut,
	}
	c.mu.Unlock()
	c.handler.Closed(closed)
}
