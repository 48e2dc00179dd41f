package quic

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	quicgo "github.com/quic-go/quic-go"
)

// Handshakes counts the clients that shake hands, over all sockets of an address.
// Anybody can start handshakes in the name of others (RFC 9000 §21.1): when more
// than a number are under way, new clients first prove that they have the address
// that they write from (Retry, §8.1.2), which costs them one round trip.
type Handshakes struct {
	proveAbove int64
	doubts     func(net.Addr) bool // Options.Doubts
	underWay   atomic.Int64
	retries    atomic.Int64
	failed     atomic.Int64
}

// Retries returns how many clients were asked to prove their address.
func (h *Handshakes) Retries() int64 { return h.retries.Load() }

// Failed returns how many handshakes came to nothing.
func (h *Handshakes) Failed() int64 { return h.failed.Load() }

// mustProve is quicgo.Transport.VerifySourceAddress.
func (h *Handshakes) mustProve(client net.Addr) bool {
	if h.underWay.Load() < h.proveAbove && (h.doubts == nil || !h.doubts(client)) {
		return false
	}
	h.retries.Add(1)
	return true
}

type handshakeKey struct{}

// A handshake is one that is under way.
type handshake struct {
	all  *Handshakes
	once sync.Once
}

func (h *handshake) end(ok bool) {
	h.once.Do(func() {
		h.all.underWay.Add(-1)
		if !ok {
			h.all.failed.Add(1)
		}
	})
}

// begin is quicgo.Transport.ConnContext. The context ends with the connection.
func (h *Handshakes) begin(ctx context.Context, _ *quicgo.ClientInfo) (context.Context, error) {
	one := &handshake{all: h}
	h.underWay.Add(1)
	context.AfterFunc(ctx, func() { one.end(false) })
	return context.WithValue(ctx, handshakeKey{}, one), nil
}

// Done says that the handshake of a connection is complete. Call it for every
// connection that Accept returned, once it is.
func Done(c *quicgo.Conn) {
	if h, ok := c.Context().Value(handshakeKey{}).(*handshake); ok {
		h.end(true)
	}
}
