package server

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// A peer is who sent a request and how, as the CGI variables say it. It is worked
// out once for a connection, and for each request that came through a trusted
// proxy. It never changes.
type peer struct {
	addr, port string     // the client's; port is empty when only a proxy knows it
	ip         netip.Addr // addr without a zone; not valid in tests without addresses
	local      string     // our address
	proxy      bool       // addr is a trusted proxy's
	conn       *conn      // nil for HTTP/3 and in tests
	via        bool       // a trusted proxy sent the request; it may be the client itself

	// What a proxy said; empty when it did not.
	scheme     string // "http" or "https"
	serverPort string // where the client reached it
}

// secure reports whether the client speaks TLS, with us or with a proxy.
func (p *peer) secure(r *http.Request) bool {
	if p.scheme != "" {
		return p.scheme == "https"
	}
	return r.TLS != nil
}

type peerKey struct{}

// connContext is http.Server.ConnContext.
func (t proxies) connContext(ctx context.Context, c net.Conn) context.Context {
	p := t.peerAt(c.RemoteAddr(), c.LocalAddr())
	p.conn = underneath(c)
	return context.WithValue(ctx, peerKey{}, p)
}

// withPeer remembers who is at the other end of a connection.
func (t proxies) withPeer(ctx context.Context, remote, local net.Addr) context.Context {
	return context.WithValue(ctx, peerKey{}, t.peerAt(remote, local))
}

func (t proxies) peerAt(remote, local net.Addr) *peer {
	p := newPeer(remote.String(), local.String())
	p.proxy = t.trusts(p.ip)
	p.via = p.proxy
	return p
}

func newPeer(remote, local string) *peer {
	addr, port := splitHostPort(remote)
	host, _ := splitHostPort(local)
	p := &peer{addr: strings.Trim(addr, "[]"), port: port, local: strings.Trim(host, "[]")}
	if ip, err := netip.ParseAddr(p.addr); err == nil {
		p.ip = ip.Unmap().WithZone("")
	}
	return p
}

// peerOf returns the client of a request: what a trusted proxy says, else the
// other end of the connection.
func peerOf(r *http.Request) *peer {
	if p, ok := r.Context().Value(peerKey{}).(*peer); ok {
		return p
	}
	return newPeer(r.RemoteAddr, "")
}
