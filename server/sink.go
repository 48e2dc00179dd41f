package server

import (
	"bytes"
	"context"

	"ephpm/eventstream"
	"ephpm/websocket"
)

// A sink takes the frames of one connection, whichever way they travel. All
// methods may be called from any goroutine, and mean what those of a
// *websocket.Conn do, which is one; the other is an *eventStream.
type sink interface {
	Close(code int, reason string, cause websocket.Cause)
	Kill(code int, reason string, cause websocket.Cause) bool
	Cut(cause websocket.Cause)
	Abandon()
	Closing() bool
}

// A push is a payload on its way to connections, encoded once for all that it
// travels to in the same way. It belongs to one goroutine.
type push struct {
	payload []byte // as long as the call of the script
	binary  bool
	frame   *websocket.Prepared
	stamp   eventstream.Stamp  // of a broadcast that is remembered; set before it is sent
	event   *eventstream.Frame // made for the first that needs it
}

func newPush(payload []byte, binary bool) *push {
	return &push{payload: payload, binary: binary, frame: websocket.Prepare(payload, binary)}
}

func (m *push) asEvent() *eventstream.Frame {
	if m.event == nil {
		m.event = eventstream.NewFrame(bytes.Clone(m.payload), m.binary, m.stamp)
	}
	return m.event
}

// try sends without waiting: false means that the sink's queue is full, or that
// it is closing.
func (m *push) try(s sink) bool {
	switch s := s.(type) {
	case *websocket.Conn:
		return s.TrySend(m.frame)
	case *eventStream:
		return s.TrySend(m.asEvent())
	}
	return false
}

// wait is try that waits for room until ctx ends.
func (m *push) wait(ctx context.Context, s sink) bool {
	switch s := s.(type) {
	case *websocket.Conn:
		return s.SendWait(ctx, m.frame)
	case *eventStream:
		return s.SendWait(ctx, m.asEvent())
	}
	return false
}

// A batch sends a push to many: add for each of them, then send.
type batch struct {
	message *push
	sockets *websocket.Batch
}

func (s *sockets) batch(m *push) *batch { return &batch{m, s.loop.Batch(m.frame)} }

// add is push.try that may leave it to send.
func (b *batch) add(s sink) bool {
	if c, ok := s.(*websocket.Conn); ok {
		return b.sockets.Add(c)
	}
	return b.message.try(s)
}

func (b *batch) send() { b.sockets.Send() }
