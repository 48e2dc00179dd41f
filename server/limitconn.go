package server

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// refusalsMax is how many connections over a limit may wait for their 503
	// at a time; more are reset.
	refusalsMax = 64
	// refusalTime is how long one may take to send its request for that.
	refusalTime = 5 * time.Second
	// freshTime is for how long a connection that has sent no whole request is
	// not closed for a new one.
	freshTime = time.Second
)

// The limit at which a connection or a socket was refused, as the label "reason".
const (
	fullServer = "server_full"
	fullSite   = "site_full" // of sockets alone
	fullIP     = "ip_full"
)

// connections are those of all listeners. The methods may be called from any
// goroutine.
type connections struct {
	max     int // of all
	perIP   int // of one client; 0: no limit
	metrics *metrics
	// unheard is told of a request that net/http did not pass on, when its
	// connection is closed. status is 0 when nothing was answered. It needs
	// trackPleas. Nil means that nobody wants to know.
	unheard func(c *conn, status int)

	refusing atomic.Int64 // those that are to be answered with 503
	waves    *waves       // in which their quiet reads begin

	mu    sync.Mutex // guards the following
	open  map[*conn]struct{}
	seats int       // places that upgraded connections have left to their sockets
	fresh list.List // of *conn, oldest first: without a whole request yet
	byIP  map[netip.Addr]int
}

func newConnections(c LimitsConfig, m *metrics) *connections {
	return &connections{
		max: c.maxConnections(), perIP: c.PerIPMaxConnections, metrics: m,
		open: map[*conn]struct{}{}, byIP: map[netip.Addr]int{},
		waves: newWaves(),
	}
}

// A conn is one connection of a client. It is a TCPConn in all that net/http looks
// for, such as sendfile.
type conn struct {
	*net.TCPConn
	all           *connections
	remote, local net.Addr // as the PROXY protocol says, or the connection's own
	opened        time.Time
	client        netip.Addr  // whom perIP counts; not valid: nobody
	refused       *time.Timer // ends the wait for the request; nil: it is not refused

	place   *list.Element // in fresh
	isFresh atomic.Bool   // it is there; changed under mu
	left    bool          // guarded by mu

	taken     taken // owned by connections.cutSlow
	plea      plea
	length    saidLength
	quiet     quietRead
	deadline  readDeadline
	writesEnd atomic.Bool // there is a deadline for them
}

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// Close implements net.Conn, and makes room for another one.
func (c *conn) Close() error {
	if c.all.unheard != nil {
		if status, ok := c.plea.left(); ok {
			c.all.unheard(c, status)
		}
	}
	c.all.leave(c)
	return c.TCPConn.Close()
}

// enter takes a connection in, or refuses it, in which case it is still to be
// served: ServeHTTP answers 503, which also works within TLS and HTTP/2. It returns
// nil for one that it has closed.
func (a *connections) enter(c *conn, counted bool) *conn {
	c.all, c.opened = a, time.Now()
	c.quiet.ended = make(chan struct{}, 1)
	if counted && a.perIP > 0 {
		c.client = limitKey(addrOf(c.remote))
	}
	a.mu.Lock()
	reason, victim := a.judgeLocked(c)
	refuse := reason != "" && a.refusing.Load() < refusalsMax
	switch {
	case reason == "":
		a.addLocked(c)
	case refuse:
		a.refusing.Add(1)
		c.refused = time.AfterFunc(refusalTime, func() { _ = c.Close() }) // it is over its time
	}
	a.mu.Unlock()
	if victim != nil {
		a.metrics.connectionCut(cutForRoom)
		_ = victim.Close() // nothing was asked on it
	}
	if reason == "" {
		return c
	}
	a.metrics.connectionRefused(reason)
	if !refuse {
		_ = c.SetLinger(0) // a reset leaves nothing behind
		_ = c.TCPConn.Close()
		return nil
	}
	return c
}

// judgeLocked says why there is no room for a connection, or makes some by taking
// out another, which is to be closed.
func (a *connections) judgeLocked(c *conn) (reason string, victim *conn) {
	if c.client.IsValid() && a.byIP[c.client] >= a.perIP {
		return fullIP, nil
	}
	if len(a.open)+a.seats < a.max {
		return "", nil
	}
	if oldest := a.fresh.Front(); oldest != nil {
		if v := oldest.Value.(*conn); c.opened.Sub(v.opened) >= freshTime {
			a.removeLocked(v)
			return "", v
		}
	}
	return fullServer, nil
}

func (a *connections) addLocked(c *conn) {
	a.open[c] = struct{}{}
	if c.client.IsValid() {
		a.byIP[c.client]++
	}
	c.place = a.fresh.PushBack(c)
	c.isFresh.Store(true)
}

func (a *connections) removeLocked(c *conn) {
	if c.left {
		return
	}
	c.left = true
	delete(a.open, c)
	a.asksLocked(c)
	a.forgetLocked(c.client)
}

func (a *connections) forgetLocked(client netip.Addr) {
	if !client.IsValid() {
		return
	}
	if a.byIP[client]--; a.byIP[client] == 0 {
		delete(a.byIP, client)
	}
}

// A seat is the place of a connection that has become a socket: its descriptor
// passes on and the conn is closed, but the client is there. The zero value is none.
type seat struct {
	all    *connections
	client netip.Addr
}

// leaveSeat takes the connection's place from it. stand gives it back.
func (c *conn) leaveSeat() seat {
	if c == nil {
		return seat{}
	}
	a := c.all
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.left || c.refused != nil {
		return seat{}
	}
	c.left = true
	delete(a.open, c)
	a.asksLocked(c)
	a.seats++
	return seat{a, c.client}
}

// sit takes a place for a client that has no TCP connection, and reports false when
// there is none. proxy says that limits of one client are not for it.
func (a *connections) sit(client netip.Addr, proxy bool) (seat, bool) {
	c := &conn{all: a, opened: time.Now()}
	if a.perIP > 0 && !proxy {
		c.client = limitKey(client)
	}
	a.mu.Lock()
	reason, victim := a.judgeLocked(c)
	if reason == "" {
		a.seats++
		if c.client.IsValid() {
			a.byIP[c.client]++
		}
	}
	a.mu.Unlock()
	if victim != nil {
		a.metrics.connectionCut(cutForRoom)
		_ = victim.Close() // nothing was asked on it
	}
	if reason != "" {
		a.metrics.connectionRefused(reason)
		return seat{}, false
	}
	return seat{a, c.client}, true
}

// of returns how many connections a client has that are counted for it.
func (a *connections) of(client netip.Addr) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byIP[limitKey(client)]
}

func (s seat) stand() {
	if s.all == nil {
		return
	}
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.all.seats--
	s.all.forgetLocked(s.client)
}

// asksLocked takes a connection out of the fresh ones.
func (a *connections) asksLocked(c *conn) {
	if c.isFresh.Swap(false) {
		a.fresh.Remove(c.place)
	}
}

func (a *connections) leave(c *conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.refused != nil && !c.left {
		c.left = true
		c.refused.Stop()
		a.refusing.Add(-1)
		return
	}
	a.removeLocked(c)
}

// track is http.Server.ConnState. A connection is fresh until net/http has read its
// first request, which includes the TLS handshake.
func (a *connections) track(nc net.Conn, state http.ConnState) {
	switch c := underneath(nc); {
	case c == nil:
	case state == http.StateNew:
		c.plea.opaque.Store(nc != net.Conn(c))
	case state == http.StateIdle:
		c.length.idle()
	case c.isFresh.Load():
		a.mu.Lock()
		a.asksLocked(c)
		a.mu.Unlock()
	}
}

// closeFresh closes the connections that have asked for nothing. A browser opens
// such in advance, and http.Server.Shutdown would wait five seconds for each.
func (a *connections) closeFresh() {
	var fresh []*conn
	a.mu.Lock()
	for e := a.fresh.Front(); e != nil; e = e.Next() {
		fresh = append(fresh, e.Value.(*conn))
	}
	a.mu.Unlock()
	for _, c := range fresh {
		_ = c.Close() // nothing was asked on it
	}
}

func (a *connections) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open) + a.seats
}

// underneath returns the conn that net/http's connection is, or speaks TLS on. It
// is nil for any other, in tests.
func underneath(c net.Conn) *conn {
	for {
		if ours, ok := c.(*conn); ok {
			return ours
		}
		above, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = above.NetConn()
	}
}

// addrOf returns the address of a TCP connection.
func addrOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
