package websocket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"
)

const (
	// readBuffer holds headers and small messages; larger payloads are read
	// past it.
	readBuffer = 1 << 10
	// unsentLimit is how much the kernel takes that it cannot send yet. It keeps
	// the memory of a slow client small, and what waits where Kill can drop it.
	unsentLimit = 128 << 10
	// tcpNotsentLowat is Linux's TCP_NOTSENT_LOWAT, which syscall lacks.
	tcpNotsentLowat = 25
)

// A Conn is one WebSocket connection. TrySend, SendWait, Close, Kill and
// Abandon may be called from any goroutine at any time; Accept once, and if it
// succeeded Serve once, which ends when the connection did.
type Conn struct {
	o Options

	// Set by Accept.
	opened time.Time
	ws     *websocket.Conn
	timer  *time.Timer // calls tick

	passed Stats
	heard  atomic.Int64 // nanoseconds from opened to the last byte received

	writer  sync.WaitGroup // the writer, while it lives
	handler sync.WaitGroup // the handler's goroutine, while it lives

	mu  sync.Mutex // guards the following
	net net.Conn   // nil before Accept
	end *ending    // nil while the connection is open

	queue   [][]byte      // frames to write, and those being written
	queued  int64         // their bytes
	writing int           // how many of them are being written
	room    chan struct{} // closed when the queue shrinks; nil when nobody waits

	writerRuns bool
	pong       []byte // the newest pong; older ones need no answer (RFC 6455 §5.5.3)
	pingDue    bool
	closeSent  bool
	nextPing   time.Duration // since opened

	inbox      []Message  // read, but not handled yet
	inboxBytes int        // their payloads
	inboxRoom  *sync.Cond // the inbox shrank or the connection ended
	handling   bool
	handled    time.Duration // when the last handler ended, since opened
}

// New returns a Conn whose client has not been answered yet. Frames may be
// queued, and Close or Kill takes effect behind the 101.
func New(o Options) *Conn {
	c := &Conn{o: o}
	c.inboxRoom = sync.NewCond(&c.mu)
	return c
}

// CanAccept reports whether the connection behind w can be taken over: HTTP/2
// and HTTP/3 cannot.
func CanAccept(w http.ResponseWriter) bool {
	for {
		if _, ok := w.(http.Hijacker); ok {
			return true
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = u.Unwrap()
	}
}

// Accept answers the handshake with 101 and the headers set on w, and takes the
// connection over. The client must have offered the subprotocol; empty means
// none. r must have passed CheckHandshake. After an error the Conn is abandoned
// and leaves nothing behind.
func (c *Conn) Accept(w http.ResponseWriter, r *http.Request, subprotocol string) error {
	if err := c.accept(w, r, subprotocol); err != nil {
		c.Abandon()
		return fmt.Errorf("websocket: accept: %w", err)
	}
	return nil
}

func (c *Conn) accept(w http.ResponseWriter, r *http.Request, subprotocol string) error {
	if !CanAccept(w) {
		return http.ErrNotSupported
	}
	c.opened = time.Now()
	taken := &takeover{ResponseWriter: w, in: &inbound{
		borders: borders{max: c.o.MaxFrameSize},
		opened:  c.opened,
		heard:   &c.heard,
	}}
	o := &websocket.AcceptOptions{
		InsecureSkipVerify: true, // origins are the application's business
		CompressionMode:    websocket.CompressionDisabled,
		OnPingReceived:     c.answerPing,
	}
	w.Header().Del("Sec-Websocket-Protocol")
	if subprotocol != "" {
		o.Subprotocols = []string{subprotocol}
	}
	ws, err := websocket.Accept(taken, r, o)
	if err != nil {
		return err
	}
	ws.SetReadLimit(c.o.MaxMessageSize)
	if c.o.MaxMessageSize == 0 {
		ws.SetReadLimit(-1)
	}
	limitUnsent(taken.in.Conn)

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil && c.end.frame == nil {
		_ = taken.in.Conn.Close() // abandoned meanwhile
		_ = ws.CloseNow()
		return errors.New("abandoned")
	}
	c.ws = ws
	c.net = taken.in.Conn
	c.startTimerLocked()
	c.startWriterLocked()
	return nil
}

// Serve reads messages and calls handle for one at a time, in order. It returns
// when the connection has ended, the last handle has returned and all its
// goroutines are gone. The end of ctx cuts the connection. When handle returns
// an error, nothing further is handled, and the connection closes with 1011
// unless handle has closed it.
func (c *Conn) Serve(ctx context.Context, handle func(context.Context, Message) error) Closed {
	stop := context.AfterFunc(ctx, func() { c.cut(CauseShutdown) })
	defer stop()

	err := c.read(ctx, handle)
	c.settle(err)
	_ = c.net.Close() // done with it, whatever it says
	c.writer.Wait()
	c.handler.Wait()
	_ = c.ws.CloseNow() // ends coder's finalizer; it has no connection of its own

	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopTimerLocked()
	return Closed{
		Code: c.end.code, Reason: c.end.reason, Cause: c.end.cause,
		Duration: time.Since(c.opened),
		FramesIn: c.passed.FramesIn.Load(), FramesOut: c.passed.FramesOut.Load(),
		BytesIn: c.passed.BytesIn.Load(), BytesOut: c.passed.BytesOut.Load(),
	}
}

// answerPing is called by coder while it reads; our writer answers.
func (c *Conn) answerPing(_ context.Context, payload []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pong = appendFrame(nil, opPong, payload)
	c.startWriterLocked()
	return false
}

// A takeover is the ResponseWriter that coder hijacks.
type takeover struct {
	http.ResponseWriter
	in *inbound
}

// Hijack passes what net/http has read already through in as well, and gives
// coder a writer that leads nowhere.
func (t *takeover) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(t.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early, _ := rw.Reader.Peek(rw.Reader.Buffered()) // cannot fail for what is buffered
	t.in.early = append([]byte(nil), early...)
	t.in.Conn = conn
	return t.in, bufio.NewReadWriter(
		bufio.NewReaderSize(t.in, readBuffer),
		bufio.NewWriterSize(io.Discard, 1), // bufio's smallest
	), nil
}

// limitUnsent is an optimization, so errors do not matter.
func limitUnsent(conn net.Conn) {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = t.NetConn()
	}
	s, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotsentLowat, unsentLimit)
	})
}
