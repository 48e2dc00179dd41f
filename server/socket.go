package server

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ephpm/eventstream"
	"ephpm/phpbridge"
	"ephpm/registry"
	"ephpm/websocket"
)

// socketOptions is what the sockets of a site are made of.
type socketOptions struct {
	site string // its name in logs
	php  runner
	log  *slog.Logger

	kv          *kvHost // the site's
	storeNumber int     // phpbridge.Request.Store

	metrics *socketMetrics  // of the server
	http    *metrics        // of its pages, for what connect does there; may be nil
	open    *atomic.Int64   // sockets of the whole server; every site counts here
	loop    *websocket.Loop // of the whole server; it outlives the sockets
	// streamLoop is for event streams what loop is for sockets.
	streamLoop *eventstream.Loop
	calm       *calm // of the whole server

	// maxOpen limits open, maxSite the sockets of this site. Zero means no limit.
	maxOpen, maxSite int
	// clients limit the sockets of one address, here and on all sites.
	clients clientCounts
	// messages limits what one socket may send. Nil means no limit.
	messages *messagePace
	// maxMessage limits a payload that PHP sends, in bytes. Zero means no limit.
	maxMessage int64
	// conn bounds each connection. Its Stats are set by newSockets.
	conn websocket.Options
	// historyMemory bounds what channels remember, in bytes.
	historyMemory int64
	// presenceMemory bounds what is kept of the users in channels, in bytes.
	presenceMemory int64
	// sendWait is how long one event may wait in all for clients to read.
	sendWait time.Duration
	// maxEvents is how many events may be with the pool at a time, running or in
	// its backlog. More wait in order, so that thousands of sockets that end
	// together do not overflow it. Zero means 1000.
	maxEvents int
	// eventWait is how long a connect or message may wait for that; disconnect
	// waits without limit. Zero means 30 seconds.
	eventWait time.Duration
	// requestTimeout limits the run of one event. Zero means no limit.
	requestTimeout time.Duration
	// access gets a line when a socket has ended. Nil means no log.
	access *accessLog
	// rate limits connect events, together with pages. Nil means no limit.
	rate *bucket

	// streams is what event streams are made of. Nil means that there are none.
	streams *streamOptions

	// noSite refuses every upgrade: the host name is no site's.
	noSite bool

	subprotocols   []string
	allowedOrigins []string

	// entrypoint returns the absolute path of the WebSocket script, if there
	// is one now.
	entrypoint func() (string, bool)
}

// sockets is the WebSocket side of one site. Its methods may be called from any
// goroutine.
type sockets struct {
	socketOptions
	members *registry.Registry[sink]

	streams   *eventStreams    // nil when there are none
	histories *histories       // of its channels
	presences *presences[sink] // in them; who subscribes or leaves does it here
	turns     chan struct{}    // one for each event with the pool
	ends      errands          // disconnect events

	life    context.Context // of every event, not of one call
	cut     context.CancelFunc
	drained chan struct{} // closed when nothing runs any more, after shutdown began

	mu       sync.Mutex // guards the following
	stopping bool
	running  int // upgrades that are decided and sockets, to the end of disconnect
	live     map[sink]struct{}
}

// disconnects is how many disconnect events are given to the pool at a time. It
// is more than a pool has workers, and keeps thousands of sockets that end
// together from having a goroutine each.
const disconnects = 128

// A socket is one connection and what its events repeat. But for traffic it never
// changes once it is accepted.
type socket struct {
	site      *sockets
	id        registry.ID
	conn      sink
	transport transport
	script    string // pinned at the upgrade
	requestID string
	vars      phpbridge.Vars
	seat      seat                            // its place among the connections
	client    netip.Addr                      // whom clients counts; not valid: nobody
	traffic   traffic                         // owned by Message
	entry     *entry                          // of its end in the access log; nil when there is none
	posts     atomic.Pointer[phpbridge.Posts] // of the message event that runs
}

// newSockets returns the WebSocket side of a site; shutdown and wait end it.
func newSockets(o socketOptions) *sockets {
	o.conn.Stats = &o.metrics.frames
	o.maxEvents = cmp.Or(o.maxEvents, 1000)
	o.eventWait = cmp.Or(o.eventWait, 30*time.Second)
	s := &sockets{
		socketOptions: o,
		turns:         make(chan struct{}, o.maxEvents),
		ends:          errands{most: min(o.maxEvents, disconnects)},
		members:       registry.New[sink](registry.Options{MaxConnections: o.maxSite}),
		histories:     newHistories(o.historyMemory),
		drained:       make(chan struct{}),
		live:          map[sink]struct{}{},
	}
	if o.streams != nil {
		s.streams = newEventStreams(o.streams, o.metrics)
	}
	s.presences = newPresences(o.presenceMemory, s.members, o.metrics, o.log.With("site", o.site), s.deliver)
	s.life, s.cut = context.WithCancel(context.Background())
	s.metrics.state.enter(s)
	return s
}

// upgrade answers a request that IsUpgrade. vars are its CGI variables; they are
// copied. When it returns with a 101 the socket lives on its own.
func (s *sockets) upgrade(w *response, r *http.Request, vars phpbridge.Vars, requestID string) {
	script, body, no := s.checkUpgrade(w, r)
	if no != nil {
		s.refuse(w, r, overSocket, no)
		return
	}
	conn := s.loop.New(&s.conn)
	c := &socket{site: s, conn: conn, script: script, requestID: requestID}
	header, ok := s.enter(w, r, c, vars, body)
	if !ok {
		return
	}
	if err := s.accept(w, r, c, conn, header); err != nil {
		s.log.Debug("upgrade never completed", "site", s.site, "addr", peerOf(r).addr, "err", err)
		w.cut = true
		s.abandon(c)
		return
	}
	s.established(r, c)
	conn.Start(c)
}

// established notes that a client has its connection.
func (s *sockets) established(r *http.Request, c *socket) {
	if s.access != nil {
		e := requestEntry(r)
		e.id, e.site = c.requestID, s.site
		c.entry = e.kept()
	}
	if s.log.Enabled(r.Context(), slog.LevelDebug) {
		s.log.Debug(c.transport.noun()+" established", "site", s.site, "connection", c.id.String(), "addr", peerOf(r).addr, "proto", r.Proto)
	}
}

// Message runs the message event, for websocket.Conn.
func (c *socket) Message(m websocket.Message) error {
	s := c.site
	if !s.messages.admits(&c.traffic) {
		if c.conn.Closing() {
			return nil
		}
		s.metrics.overRate.Inc()
		s.log.Info("message rate over the limit, closing", "site", s.site, "connection", c.id.String(), "addr", c.addr())
		c.conn.Close(websocket.CodePolicy, "too many messages", websocket.CauseLimit)
		return nil
	}
	defer s.messages.handled(&c.traffic)
	return s.message(s.life, c, m)
}

// addr is the client's address, for logs.
func (c *socket) addr() string {
	for name, value := range c.vars.All() {
		if name == "REMOTE_ADDR" {
			return value
		}
	}
	return ""
}

// Closing has scripts told that they cannot send any more, for websocket.Conn.
func (c *socket) Closing() {
	if p := c.posts.Load(); p != nil {
		p.Stop()
	}
}

// Closed has the disconnect event run, for websocket.Conn. wait waits for it.
func (c *socket) Closed(closed websocket.Closed) {
	s := c.site
	s.leave(c)
	s.metrics.closed(c.transport, closed)
	now := time.Now()
	if c.entry != nil {
		c.entry.at, c.entry.socket = now, &closed
		s.access.add(c.entry)
	}
	if s.log.Enabled(s.life, slog.LevelDebug) {
		s.log.Debug(c.transport.noun()+" closed", "site", s.site, "connection", c.id.String(),
			"code", closed.Code, "cause", string(closed.Cause), "duration", closed.Duration,
			"messages_in", closed.FramesIn, "messages_out", closed.FramesOut)
	}
	waiting := &s.metrics.event[eventDisconnect].waiting
	waiting.Add(1)
	s.ends.do(func() {
		defer s.done()
		waiting.Add(-1)
		s.disconnect(s.life, c, closed, now)
	})
}

// shutdown closes every socket with 1001, lets no new one in and waits until
// their disconnect events ran. When ctx ends it cuts what is left; scripts that
// run are the pool's to end, and wait waits for the rest. Call it once.
func (s *sockets) shutdown(ctx context.Context) {
	s.mu.Lock()
	s.stopping = true
	s.drainLocked()
	s.mu.Unlock()
	for _, c := range s.conns() {
		c.Close(websocket.CodeGoingAway, "", websocket.CauseShutdown)
	}
	select {
	case <-s.drained:
	case <-ctx.Done():
		s.log.Warn("cut the sockets that did not end in time", "site", s.site)
		for _, c := range s.conns() {
			c.Cut(websocket.CauseShutdown)
		}
	}
	s.cut()
}

// conns returns the connections there are now.
func (s *sockets) conns() []sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.live))
}

// wait returns when everything that sockets ran has ended, after shutdown.
func (s *sockets) wait() {
	<-s.drained
	s.presences.stop()
	s.metrics.state.leave(s)
}
