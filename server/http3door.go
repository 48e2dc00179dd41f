package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	quicgo "github.com/quic-go/quic-go"
)

// An http3Door lets clients of HTTP/3 in, within the limits on connections. Anybody can
// write from an address that is not his (RFC 9000 §21.1.1), and must not take places
// of somebody else by that: a client has one once its address is proved, by Retry
// or a token from the first packet on, else when its handshake is complete. Those who
// have not proved theirs are counted apart, and when an address with them would be over
// its limit the next must prove it first. Its methods may be called from any goroutine.
type http3Door struct {
	proxies proxies
	limits  *connections // set before anybody knocks

	mu     sync.Mutex // guards the following
	knocks map[netip.Addr]int
}

var errNoPlace = errors.New("too many connections")

type http3GuestKey struct{}

// An http3Guest is what the door knows of a connection.
type http3Guest struct {
	seated bool   // it has a place
	leave  func() // takes it out of those who knock; nil: it is not one
}

// client returns whom limits count, and whether they are not for him.
func (d *http3Door) client(remote net.Addr) (client netip.Addr, exempt bool) {
	u, ok := remote.(*net.UDPAddr)
	if !ok {
		return netip.Addr{}, true
	}
	ip := u.AddrPort().Addr().Unmap().WithZone("")
	return ip, d.proxies.trusts(ip)
}

// doubts is quic.Options.Doubts.
func (d *http3Door) doubts(remote net.Addr) bool {
	client, exempt := d.client(remote)
	if exempt || d.limits.perIP == 0 {
		return false
	}
	d.mu.Lock()
	knocks := d.knocks[limitKey(client)]
	d.mu.Unlock()
	return knocks+d.limits.of(client) >= d.limits.perIP
}

// admit is quic.Options.Admit. ctx ends with the connection.
func (d *http3Door) admit(ctx context.Context, c *quicgo.ClientInfo) (context.Context, error) {
	client, exempt := d.client(c.RemoteAddr)
	if !c.AddrVerified {
		if !exempt && d.limits.perIP > 0 {
			ctx = d.knock(ctx, limitKey(client))
		}
		return ctx, nil
	}
	place, ok := d.limits.sit(client, exempt)
	if !ok {
		return nil, errNoPlace
	}
	context.AfterFunc(ctx, place.stand)
	return context.WithValue(ctx, http3GuestKey{}, &http3Guest{seated: true}), nil
}

// knock counts a client that has not proved its address until its handshake has ended.
func (d *http3Door) knock(ctx context.Context, client netip.Addr) context.Context {
	d.mu.Lock()
	d.knocks[client]++
	d.mu.Unlock()
	leave := sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.knocks[client]--; d.knocks[client] == 0 {
			delete(d.knocks, client)
		}
	})
	context.AfterFunc(ctx, leave)
	return context.WithValue(ctx, http3GuestKey{}, &http3Guest{leave: leave})
}

// enter gives a connection whose handshake is complete its place, unless it has one,
// and reports false when there is none.
func (d *http3Door) enter(q *quicgo.Conn) bool {
	if g, ok := q.Context().Value(http3GuestKey{}).(*http3Guest); ok {
		if g.seated {
			return true
		}
		defer g.leave() // when it has its place, so that it is always counted
	}
	place, ok := d.limits.sit(d.client(q.RemoteAddr()))
	if ok {
		context.AfterFunc(q.Context(), place.stand)
	}
	return ok
}
