package websocket

import (
	"sync"
	"sync/atomic"
	"time"

	"ephpm/descriptor"
	"ephpm/wheel"
)

// A Handler is told what happens to a connection.
type Handler interface {
	// Message handles a message, on a goroutine of its own. It is called for
	// one message at a time, in order. After an error nothing further is
	// handled, and the connection closes with 1011 unless it was closed before.
	Message(m Message) error
	// Closing is called once, when sends begin to be refused. It is called with the
	// connection locked: it must neither wait nor call it.
	Closing()
	// Closed is called once, when the connection has ended, nothing is left of
	// it and the last Message has returned. It must not wait.
	Closed(c Closed)
}

// A Conn is one WebSocket connection. TrySend, SendWait, Close, Kill, Cut and
// Abandon may be called from any goroutine at any time; Accept once, and if it
// succeeded Start once.
type Conn struct {
	loop *Loop
	o    *Options

	// Set by Accept and Start.
	handler Handler
	line    line            // nil before Accept
	tls     *descriptor.TLS // when a poller serves a connection with TLS
	opened  int64           // since the loop began, as all times here

	heard atomic.Int64 // when the last byte came

	// Owned by the reader.
	in     *incoming // nil between two messages
	stash  []byte    // the beginning of a frame, waiting for more
	deaf   bool      // what comes is not read as frames any more
	unread bool      // the descriptor may have more to read
	hungUp bool      // the client ended its side, or broke the connection

	ticket descriptor.Ticket // of the poller
	timed  wheel.Place[*Conn]

	mu      sync.Mutex // guards the following
	passed  counts
	deflate *deflate // nil when nothing is compressed; set before the first frame
	end     *ending  // nil while the connection is open
	later   *ending  // becomes end when all messages are handled, or at laterBy
	fd      int32    // of a poller's connection; -1 when there is none

	queue  [][]byte      // frames that the line did not take yet
	queued int64         // their bytes
	off    int           // how much of the first it took
	room   chan struct{} // closed when the queue shrinks; nil when nobody waits

	part     []byte // of a control frame that the line took in part
	pongs    []byte // that wait, at most maxPongs
	inbox    []Message
	nextPing int64
	expiry   int64 // when to cut, 0 for never: no progress, or no answer to the close frame
	handled  int64 // when the last handler ended
	laterBy  int64

	inboxBytes int
	writing    int // so many frames of the queue are with a sender outside of mu

	started    bool
	opening    bool // the client may know already that line will be there
	blocked    bool // the line takes nothing at the moment
	due        bool // waits for a batch to be sent
	sending    bool // a sender outside of mu is at work; it goes on until nothing is left
	edge       bool // meanwhile the line took more
	pingDue    bool
	lastPart   bool // part is of the close frame
	closeSent  bool
	peerClosed bool // a close frame came, or the end of the stream behind ours
	stopped    bool // the reader waits for room in the inbox
	handling   bool
	gone       bool // the line is closed
	reported   bool
}

// Start begins to serve an accepted connection, which h is told about.
func (c *Conn) Start(h Handler) {
	c.loop.began()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handler = h
	c.started = true
	c.watchLocked(c.loop.now())
	c.line.start(c) // before the line can find that c is over
}

// A line is how the bytes of a connection travel. All methods are called with
// c.mu held and do not wait.
type line interface {
	// start begins to read.
	start(c *Conn)
	// flush writes what is pending, or has it written.
	flush(c *Conn)
	// wakeReader lets a reader go on that found the inbox full.
	wakeReader(c *Conn)
	// halfClose tells the client that nothing follows.
	halfClose(c *Conn)
	// hangUp ends the connection, which is over.
	hangUp(c *Conn)
}

// flushLocked has written what is pending.
func (c *Conn) flushLocked() {
	if c.line != nil && !c.gone {
		c.line.flush(c)
	}
}

// overLocked reports whether there is nothing left to be said or heard.
func (c *Conn) overLocked() bool {
	return c.end != nil && (c.end.frame == nil || c.closeSent && !c.blocked && c.peerClosed)
}

// report tells the handler that the connection has ended, once it has.
func (c *Conn) report() {
	c.mu.Lock()
	if !c.gone || c.handling || c.reported {
		c.mu.Unlock()
		return
	}
	c.reported = true
	closed := Closed{
		Code: c.end.code, Reason: c.end.reason, Cause: c.end.cause,
		Duration: time.Duration(c.loop.now() - c.opened),
		FramesIn: c.passed.framesIn, FramesOut: c.passed.framesOut,
		BytesIn: c.passed.bytesIn, BytesOut: c.passed.bytesOut,
	}
	c.mu.Unlock()
	c.handler.Closed(closed)
	c.loop.ended()
}

// leaveLocked marks a connection whose line is closed. report follows.
func (c *Conn) leaveLocked() {
	c.gone = true
	c.endLocked(ending{code: CodeAbnormal, cause: CauseGone})
	c.queue, c.queued, c.off, c.part, c.pongs, c.due = nil, 0, 0, nil, nil, false
	c.signalLocked()
	c.giveContextsLocked()
	c.loop.wheel.Remove(c)
}

// maxPongs bounds, in bytes, the pongs that wait for a client that does not read.
const maxPongs = 4 << 10

// answerPing has a ping answered. Of more than maxPongs only the newest is, which is
// all that RFC 6455 §5.5.3 asks for.
func (c *Conn) answerPing(payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pongs)+len(payload) > maxPongs {
		c.pongs = c.pongs[:0]
	}
	c.pongs = appendFrame(c.pongs, opPong, payload)
	c.flushLocked()
}

// peerCloses answers the peer's close frame, unless it is itself the answer to
// ours.
func (c *Conn) peerCloses(code int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peerClosed = true
	c.endInOrderLocked(ending{code: code, reason: reason, cause: CauseClient, frame: closeFrame(code, "")})
}

// lost is called by the reader when the stream has ended.
func (c *Conn) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peerClosed = true
	if c.closeSent {
		return
	}
	c.endLaterLocked()
	c.cutLocked(CauseGone)
}

// heardNow is called by the reader for every byte, whatever it says.
func (c *Conn) heardNow() { c.heard.Store(c.loop.now()) }

// counts is Stats of one connection.
type counts struct{ framesIn, framesOut, bytesIn, bytesOut int64 }

func (n *counts) in(size int)  { n.framesIn++; n.bytesIn += int64(size) }
func (n *counts) out(size int) { n.framesOut++; n.bytesOut += int64(size) }
