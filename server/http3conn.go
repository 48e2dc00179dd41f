package server

import (
	"context"
	"errors"
	"sync"
	"time"

	quicgo "github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"ephpm/quic"
)

// An http3Conn is one connection of a client of HTTP/3.
type http3Conn struct {
	server *http3Server
	quic   *quicgo.Conn

	mu     sync.Mutex    // guards the following
	remote string        // where the client was when it sent its last request
	moved  *peer         // what that makes of it; nil while it is where it began
	active int           // requests in handlers
	idle   *time.Timer   // closes the connection; nil for never and before the handshake is complete
	empty  chan struct{} // closed when active falls to 0; made by drain
}

type http3ConnKey struct{}

// admit is http3.Server.ConnContext: the first thing that happens to a
// connection. Its handshake may not be complete.
func (s *http3Server) admit(ctx context.Context, q *quicgo.Conn) context.Context {
	c := &http3Conn{server: s, quic: q, remote: q.RemoteAddr().String()}
	s.mu.Lock()
	s.conns[c] = struct{}{}
	late := s.draining
	s.mu.Unlock()
	if late {
		c.goAway("")
	}
	s.goings.Go(c.watch)
	return context.WithValue(s.proxies.withPeer(ctx, q.RemoteAddr(), q.LocalAddr()), http3ConnKey{}, c)
}

// watch sees the handshake and the end of a connection.
func (c *http3Conn) watch() {
	ctx, m := c.quic.Context(), c.server.metrics
	select {
	case <-c.quic.HandshakeComplete():
		quic.Done(c.quic)
		m.opened()
		if !c.server.udp.door.enter(c.quic) {
			_ = c.quic.CloseWithError(quicgo.ApplicationErrorCode(http3.ErrCodeExcessiveLoad), "too many connections")
		}
		c.startIdling()
		<-ctx.Done()
		m.closed(context.Cause(ctx))
	case <-ctx.Done(): // counted as a failed handshake
	}
	c.mu.Lock()
	if c.idle != nil {
		c.idle.Stop()
	}
	c.mu.Unlock()
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	delete(c.server.conns, c)
}

// startIdling starts to count the time without a request. http3.Server would count
// a request from its stream's first byte: a client could open streams, send nothing,
// and stay.
func (c *http3Conn) startIdling() {
	if c.server.idle == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = time.AfterFunc(c.server.idle, func() { c.goAway("idle timeout") })
}

// begin and end enclose a request. begin returns the client, nil when it is what it
// was at first.
func (c *http3Conn) begin(remote string) *peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active++
	if c.active == 1 && c.idle != nil {
		c.idle.Stop() // one that fires now finds the request
	}
	if c.remote != remote { // RFC 9000 §9
		c.remote, c.moved = remote, c.server.proxies.peerAt(c.quic.RemoteAddr(), c.quic.LocalAddr())
	}
	return c.moved
}

func (c *http3Conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active--; c.active > 0 {
		return
	}
	if c.idle != nil {
		c.idle.Reset(c.server.idle)
	}
	if c.empty != nil {
		close(c.empty)
		c.empty = nil
	}
}

// goAway closes a connection without requests.
func (c *http3Conn) goAway(why string) {
	c.mu.Lock()
	busy := c.active > 0
	c.mu.Unlock()
	if !busy {
		_ = c.quic.CloseWithError(quicgo.ApplicationErrorCode(http3.ErrCodeNoError), why) // it may be closed
	}
}

// drain closes the connection when its requests have ended and the client has
// everything, at the latest when ctx ends: a client should do so itself when it
// is told to go, but one that is idle may not.
func (c *http3Conn) drain(ctx context.Context) {
	for ctx.Err() == nil && c.quic.Context().Err() == nil {
		if !c.waitEmpty(ctx) || !c.waitQuiet(ctx) {
			return
		}
		c.goAway("")
	}
}

// waitEmpty waits until there are no requests, and reports whether that is so.
func (c *http3Conn) waitEmpty(ctx context.Context) bool {
	c.mu.Lock()
	if c.active == 0 {
		c.mu.Unlock()
		return true
	}
	if c.empty == nil {
		c.empty = make(chan struct{})
	}
	empty := c.empty
	c.mu.Unlock()
	select {
	case <-empty:
		return true
	case <-c.quic.Context().Done():
	case <-ctx.Done():
	}
	return false
}

// waitQuiet waits until nothing is under way to the client. quic-go does not say
// what was acknowledged, but it sends something (RFC 9002 §6.2) when an
// acknowledgement is overdue: nothing is missing when it sent nothing for longer
// than that. CloseWithError would drop what is.
func (c *http3Conn) waitQuiet(ctx context.Context) bool {
	stats := c.quic.ConnectionStats()
	for {
		probe := stats.SmoothedRTT + 4*stats.MeanDeviation + 25*time.Millisecond // RFC 9002 §6.2.1
		select {
		case <-time.After(2 * probe):
		case <-c.quic.Context().Done():
			return false
		case <-ctx.Done():
			return false
		}
		before := stats.PacketsSent
		if stats = c.quic.ConnectionStats(); stats.PacketsSent == before {
			return true
		}
	}
}

// isOrderly reports whether a connection ended as connections should: one side
// had no more to say, or the client vanished.
func isOrderly(cause error) bool {
	var app *quicgo.ApplicationError
	var idle *quicgo.IdleTimeoutError
	switch {
	case errors.As(cause, &app):
		return app.ErrorCode == 0 || app.ErrorCode == quicgo.ApplicationErrorCode(http3.ErrCodeNoError)
	case errors.As(cause, &idle):
		return true
	}
	return false
}
