package eventstream

import (
	"errors"
	"sync"
	"time"
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
// Serve once or Poll any number of times.
type Conn struct {
	o    *Options
	wake chan struct{} // there is something to write; holds one

	// Set by Open.
	handler Handler
	opened  time.Time
	polled  bool // not served

	mu     sync.Mutex // guards the following
	open   bool
	queue  []entry
	queued int64 // bytes of their payloads
	room   chan struct{}
	order  order
	passed counts

	end      *ending
	gone     bool // the client is told nothing any more
	reported bool

	handling bool            // a message is handled
	waiting  []chan struct{} // messages that wait for their turn, which is closed then

	polls polls
}

// An entry is what waits for the client.
type entry struct {
	frame *Frame // nil when there is only an ID
	id    uint64 // 0: none
}

func (e entry) size() int64 {
	if e.frame == nil {
		return 0
	}
	return int64(len(e.frame.payload))
}

// New returns a Conn whose client has not been answered yet. Frames may be queued,
// and Close or Kill takes effect when it is. o may be shared and does not change.
func New(o *Options) *Conn {
	return &Conn{o: o, wake: make(chan struct{}, 1)}
}

// Open begins the connection: Serve follows, or polls. The client has all up to the
// sequence number seq once it has what is queued so far, and is told so then; 0 tells
// it nothing.
func (c *Conn) Open(h Handler, polled bool, seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handler, c.opened, c.polled, c.open = h, time.Now(), polled, true
	if c.order.highest = seq; seq != 0 {
		c.queue = append(c.queue, entry{id: seq})
	}
	if polled {
		c.polls.begin(c)
	}
	if c.end != nil {
		h.Closing()
	}
}

// signalLocked has the queue looked at.
func (c *Conn) signalLocked() {
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
	c.polls.endLocked()
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
		Ending: c.end.Ending, Duration: time.Since(c.opened),
		FramesIn: c.passed.framesIn, FramesOut: c.passed.framesOut,
		BytesIn: c.passed.bytesIn, BytesOut: c.passed.bytesOut,
	}
	c.mu.Unlock()
	c.handler.Closed(closed)
}
