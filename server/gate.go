package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// A gate is a TCP listener of the server's: it takes each connection into the
// limits, and its addresses from the PROXY protocol if that is spoken. TLS and HTTP
// come after it.
type gate struct {
	net.Listener
	conns   *connections
	proxies proxies
	log     *slog.Logger

	// For the PROXY protocol; without it ready is nil.
	ready   chan accepted
	waiting chan struct{} // one for each connection whose header is read
	limit   time.Duration // for the header
	life    context.Context
	end     context.CancelFunc
	wg      sync.WaitGroup
}

// accepted is what Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

// maxProxyHeaders is how many connections of trusted proxies may owe their header
// at a time; more are closed.
const maxProxyHeaders = 1024

// guard puts a gate in front of a listener. Closing it closes the listener.
func (s *Server) guard(l net.Listener) *gate {
	g := &gate{Listener: l, conns: s.conns, proxies: s.proxies, log: s.log}
	if !s.config.Server.ProxyProtocol {
		return g
	}
	g.ready = make(chan accepted)
	g.waiting = make(chan struct{}, maxProxyHeaders)
	g.limit = time.Duration(s.config.Server.Timeouts.HeaderRead)
	if g.limit == 0 {
		g.limit = 30 * time.Second // it has to come first and at once
	}
	g.life, g.end = context.WithCancel(context.Background())
	g.wg.Go(g.acceptAll)
	return g
}

// Accept implements net.Listener.
func (g *gate) Accept() (net.Conn, error) {
	if g.ready != nil {
		select {
		case a := <-g.ready:
			return a.conn, a.err
		case <-g.life.Done():
			return nil, net.ErrClosed
		}
	}
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if in := g.enter(c, c.RemoteAddr(), c.LocalAddr()); in != nil {
			return in, nil
		}
	}
}

// Close implements net.Listener.
func (g *gate) Close() error {
	err := g.Listener.Close()
	if g.ready != nil {
		g.end()
		g.wg.Wait()
	}
	return err
}

// enter returns nil when there is no room.
func (g *gate) enter(c net.Conn, remote, local net.Addr) net.Conn {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return c // of a test
	}
	counted := !g.proxies.trusts(addrOf(remote)) // behind a proxy there are many clients
	if in := g.conns.enter(&conn{TCPConn: t, remote: remote, local: local}, counted); in != nil {
		return in
	}
	return nil
}

// acceptAll reads the PROXY headers of the connections from trusted proxies, each
// in a goroutine of its own: one that is late holds up nobody.
func (g *gate) acceptAll() {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			g.hand(accepted{err: err})
			continue
		}
		if !g.proxies.trusts(addrOf(c.RemoteAddr())) {
			g.wg.Go(func() { g.pass(c, c.RemoteAddr(), c.LocalAddr()) })
			continue
		}
		select {
		case g.waiting <- struct{}{}:
			g.wg.Go(func() {
				defer func() { <-g.waiting }()
				g.unwrap(c)
			})
		default:
			g.log.Warn("connection of a proxy closed, too many have not sent their PROXY header", "addr", c.RemoteAddr().String())
			_ = c.Close() // nothing was read
		}
	}
}

// unwrap reads the PROXY header of a connection.
func (g *gate) unwrap(c net.Conn) {
	stop := context.AfterFunc(g.life, func() { _ = c.Close() }) // ends the reading
	remote, local, err := readProxyHeader(c, g.limit)
	if !stop() || err != nil {
		if err != nil {
			g.conns.metrics.badProxyHeader()
			g.log.Debug("no PROXY header", "addr", c.RemoteAddr().String(), "err", err)
		}
		_ = c.Close() // it is nobody's
		return
	}
	if remote == nil {
		remote, local = c.RemoteAddr(), c.LocalAddr()
	}
	g.pass(c, remote, local)
}

// pass lets a connection in.
func (g *gate) pass(c net.Conn, remote, local net.Addr) {
	if in := g.enter(c, remote, local); in != nil {
		g.hand(accepted{conn: in})
	}
}

// hand gives Accept something to return, unless the gate is closed.
func (g *gate) hand(a accepted) {
	select {
	case g.ready <- a:
	case <-g.life.Done():
		if a.conn != nil {
			_ = a.conn.Close() // too late
		}
	}
}
