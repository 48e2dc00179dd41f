package websocket

import (
	"context"
	"errors"
	"io"
	"net"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// The inbox lets the reader go on while a message is handled, so that pings are
// answered. Full, it stops the reader, and TCP stops the client. The bytes may
// be exceeded by one message.
const (
	inboxMessages = 8
	inboxBytes    = 64 << 10
)

// A Message is one data message. Its fragments are joined; text is UTF-8.
type Message struct {
	Binary bool
	Data   []byte // the handler's to keep
}

var errNotUTF8 = errors.New("text is not UTF-8")

// read reads until the connection ends and says why.
func (c *Conn) read(ctx context.Context, handle func(context.Context, Message) error) error {
	for {
		// A context that ends would make coder start a goroutine per read.
		kind, r, err := c.ws.Reader(context.Background())
		if err != nil {
			return err
		}
		if c.Closing() {
			if _, err = io.Copy(io.Discard, r); err != nil {
				return err
			}
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		m := Message{Binary: kind == websocket.MessageBinary, Data: data}
		if !m.Binary && !utf8.Valid(data) {
			return errNotUTF8
		}
		c.passed.in(len(data))
		if c.o.Stats != nil {
			c.o.Stats.in(len(data))
		}
		c.deliver(ctx, m, handle)
	}
}

// deliver puts m into the inbox when there is room, and starts the handler's
// goroutine if none runs. Messages that come after Close are dropped.
func (c *Conn) deliver(ctx context.Context, m Message, handle func(context.Context, Message) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.end == nil && (len(c.inbox) >= inboxMessages || c.inboxBytes >= inboxBytes) {
		c.inboxRoom.Wait()
	}
	if c.end != nil {
		return
	}
	c.inbox = append(c.inbox, m)
	c.inboxBytes += len(m.Data)
	if !c.handling {
		c.handling = true
		c.handler.Go(func() { c.handleAll(ctx, handle) })
	}
}

// handleAll empties the inbox and is then gone.
func (c *Conn) handleAll(ctx context.Context, handle func(context.Context, Message) error) {
	for {
		m, ok := c.take()
		if !ok {
			return
		}
		if err := handle(ctx, m); err != nil {
			c.Close(CodeInternal, "", CauseServer)
		}
	}
}

func (c *Conn) take() (Message, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.inbox) == 0 {
		c.inbox, c.inboxBytes = nil, 0
		c.handling = false
		c.handled = c.ageNow()
		return Message{}, false
	}
	m := c.inbox[0]
	c.inbox[0] = Message{}
	c.inbox = c.inbox[1:]
	c.inboxBytes -= len(m.Data)
	c.inboxRoom.Signal()
	return m, true
}

// settle turns the end of reading into the end of the connection and returns
// when the client has been told, or cannot be.
func (c *Conn) settle(err error) {
	var peer websocket.CloseError
	switch {
	case errors.As(err, &peer) && utf8.ValidString(peer.Reason):
		c.echo(peer)
		return
	case errors.As(err, &peer):
		c.fail(CodeInvalidData, "close reason is not UTF-8", CauseProtocol)
	case errors.Is(err, errNotUTF8):
		c.fail(CodeInvalidData, errNotUTF8.Error(), CauseProtocol)
	case errors.Is(err, websocket.ErrMessageTooBig):
		c.fail(CodeTooBig, "message over the limit", CauseLimit)
	case errors.Is(err, errFrameTooBig):
		c.fail(CodeTooBig, errFrameTooBig.Error(), CauseLimit)
	case errors.Is(err, errLost), errors.Is(err, net.ErrClosed):
		c.cut(CauseGone)
		return
	default:
		c.fail(CodeProtocol, "", CauseProtocol)
	}
	// Closing with unread bytes would reset the connection, and the client
	// might lose the close frame. wrote sets the deadline.
	_, _ = io.Copy(io.Discard, c.net)
}

// echo answers the peer's close frame, unless it is itself the answer to ours.
func (c *Conn) echo(peer websocket.CloseError) {
	code := int(peer.Code)
	c.mu.Lock()
	c.endLocked(ending{code: code, reason: peer.Reason, cause: CauseClient, frame: closeFrame(code, "")})
	c.mu.Unlock()
	c.writer.Wait() // it ends behind the close frame
}
