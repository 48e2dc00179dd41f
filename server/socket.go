package server

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ephpm/phpbridge"
	"ephpm/registry"
	"ephpm/websocket"
)

// maxUpgradeBody bounds the body of an upgrade request, which is normally empty.
const maxUpgradeBody = 64 << 10

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
	calm    *calm           // of the whole server

	// maxOpen limits open, maxSite the sockets of this site. Zero means no limit.
	maxOpen, maxSite int
	// clients limits the sockets of one address. Nil means no limit.
	clients *clients
	// messages limits what one socket may send. Nil means no limit.
	messages *messagePace
	// maxMessage limits a payload that PHP sends, in bytes. Zero means no limit.
	maxMessage int64
	// conn bounds each connection. Its Stats are set by newSockets.
	conn websocket.Options
	// historyMemory bounds what channels remember, in bytes.
	historyMemory int64
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
	members *registry.Registry[*websocket.Conn]

	histories *histories    // of its channels
	turns     chan struct{} // one for each event with the pool
	ends      errands       // disconnect events

	life    context.Context // of every event, not of one call
	cut     context.CancelFunc
	drained chan struct{} // closed when nothing runs any more, after shutdown began

	mu       sync.Mutex // guards the following
	stopping bool
	running  int // upgrades that are decided and sockets, to the end of disconnect
	live     map[*websocket.Conn]struct{}
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
	conn      *websocket.Conn
	script    string // pinned at the upgrade
	requestID string
	vars      phpbridge.Vars
	seat      seat       // its place among the connections
	client    netip.Addr // whom clients counts; not valid: nobody
	traffic   traffic    // owned by Message
	entry     *entry     // of its end in the access log; nil when there is none
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
		members:       registry.New[*websocket.Conn](registry.Options{MaxConnections: o.maxSite}),
		histories:     newHistories(o.historyMemory),
		drained:       make(chan struct{}),
		live:          map[*websocket.Conn]struct{}{},
	}
	s.life, s.cut = context.WithCancel(context.Background())
	return s
}

// upgrade answers a request that IsUpgrade. vars are its CGI variables; they are
// copied. When it returns with a 101 the socket lives on its own.
func (s *sockets) upgrade(w *response, r *http.Request, vars phpbridge.Vars, requestID string) {
	script, body, no := s.check(w, r)
	if no != nil {
		s.refuse(w, r, no)
		return
	}
	if wait := s.rate.take(); wait > 0 {
		s.http.siteRateLimited()
		w.Header().Set("Retry-After", retryAfter(wait))
		s.refuse(w, r, &refusal{status: http.StatusTooManyRequests, reason: refusedRate, text: http.StatusText(http.StatusTooManyRequests)})
		return
	}
	c, no := s.admit(script, requestID, peerOf(r))
	if no != nil {
		s.refuse(w, r, no)
		return
	}
	connect, replayed := eventVars(vars, c.id.String(), sameOrigin(r))
	c.vars = replayed
	if !s.connect(w, r, c, event{eventConnect, connect, body}) {
		c.conn.Abandon()
		s.leave(c)
		s.done()
		return
	}
	if s.access != nil {
		e := requestEntry(r)
		e.id, e.site = requestID, s.site
		c.entry = e.kept()
	}
	s.log.Debug("socket established", "site", s.site, "connection", c.id.String(), "addr", peerOf(r).addr)
	c.conn.Start(c)
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

// Closed has the disconnect event run, for websocket.Conn. wait waits for it.
func (c *socket) Closed(closed websocket.Closed) {
	s := c.site
	s.leave(c)
	s.metrics.closed(closed)
	if c.entry != nil {
		c.entry.at, c.entry.socket = time.Now(), &closed
		s.access.add(c.entry)
	}
	s.log.Debug("socket closed", "site", s.site, "connection", c.id.String(),
		"code", closed.Code, "cause", string(closed.Cause), "duration", closed.Duration)
	s.ends.do(func() {
		defer s.done()
		s.disconnect(s.life, c, closed)
	})
}

// A refusal is the answer to an upgrade that PHP does not see.
type refusal struct {
	status int
	reason string // the label
	text   string // for the client
	full   string // at a limit: which, as a label
	err    error  // more for the log
}

func badHandshake(reason string, err error) *refusal {
	return &refusal{status: http.StatusBadRequest, reason: reason, text: "Bad WebSocket Handshake", err: err}
}

// unavailable is a refusal for want of room; full may be empty.
func unavailable(reason, text, full string) *refusal {
	return &refusal{status: http.StatusServiceUnavailable, reason: reason, text: text, full: full}
}

// check judges the request alone and returns the script and the body.
func (s *sockets) check(w *response, r *http.Request) (script string, body []byte, no *refusal) {
	if s.noSite {
		return "", nil, &refusal{status: http.StatusNotFound, reason: refusedSite, text: "Not Found"}
	}
	script, ok := s.entrypoint()
	if !ok {
		return "", nil, &refusal{status: http.StatusNotFound, reason: refusedEntrypoint, text: "Not Found"}
	}
	if err := websocket.CheckHandshake(r); err != nil {
		return "", nil, badHandshake(refusedHandshake, err)
	}
	if !websocket.CanAccept(w) {
		return "", nil, badHandshake(refusedTransport, nil)
	}
	if !allowed(r, s.allowedOrigins) {
		return "", nil, &refusal{status: http.StatusForbidden, reason: refusedOrigin, text: "origin not allowed"}
	}
	if r.ContentLength != 0 {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpgradeBody))
		if err != nil {
			return "", nil, badHandshake(refusedHandshake, err)
		}
		return script, body, nil
	}
	return script, nil, nil
}

// admit registers a new connection, so that connect can subscribe it and others
// can reach it. leave undoes it.
func (s *sockets) admit(script, requestID string, p *peer) (*socket, *refusal) {
	client, ok := s.clients.enter(p)
	if !ok {
		return nil, unavailable(refusedCapacity, "websocket connection limit reached for this address", fullIP)
	}
	if n := s.open.Add(1); s.maxOpen > 0 && n > int64(s.maxOpen) {
		s.open.Add(-1)
		s.clients.leave(client)
		return nil, unavailable(refusedCapacity, "websocket connection limit reached", fullServer)
	}
	c := &socket{site: s, conn: s.loop.New(&s.conn), script: script, requestID: requestID, client: client}
	no := s.register(c)
	if no != nil {
		s.open.Add(-1)
		s.clients.leave(client)
		return nil, no
	}
	s.calm.move()
	s.metrics.admitted.Inc()
	s.metrics.active.Add(1)
	return c, nil
}

func (s *sockets) register(c *socket) *refusal {
	var err error
	if c.id, err = registry.NewID(); err != nil {
		s.log.Error("no entropy for connection IDs", "err", err)
		return unavailable(refusedCapacity, "failed to draw connection-id entropy from the OS", "")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return unavailable(refusedShutdown, "the server is stopping", "")
	}
	if err := s.members.Add(c.id, c.conn); err != nil {
		return unavailable(refusedCapacity, "websocket connection limit reached for this site", "site_full")
	}
	s.live[c.conn] = struct{}{}
	s.running++
	return nil
}

// leave takes a connection out of everything it is in.
func (s *sockets) leave(c *socket) {
	s.members.Remove(c.id)
	c.seat.stand()
	s.clients.leave(c.client)
	s.calm.move()
	s.open.Add(-1)
	s.metrics.active.Add(-1)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, c.conn)
}

// done ends what register began.
func (s *sockets) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.drainLocked()
}

func (s *sockets) drainLocked() {
	if s.stopping && s.running == 0 {
		close(s.drained)
	}
}

// connect lets the script decide and answers the client. It reports whether
// there is a socket now.
func (s *sockets) connect(w *response, r *http.Request, c *socket, e event) bool {
	v := &verdict{client: w, header: http.Header{}}
	fatal, err := s.dispatch(r.Context(), c, e, v)
	if err != nil {
		s.metrics.connectNo.Inc()
		s.failConnect(w, r, err)
		return false
	}
	if fatal && v.accepted() {
		// With display_errors PHP prints the error with status 200.
		s.metrics.connectNo.Inc()
		s.answer(w, r, http.StatusInternalServerError, "Internal Server Error", nil)
		return false
	}
	if !v.accepted() {
		s.metrics.connectNo.Inc()
		s.logRefusal(r, v.status, "refused by connect", nil)
		return false
	}
	if r.Context().Err() != nil {
		w.cut = true // nobody is there
		return false
	}
	travel(w.Header(), v.header)
	if r.ProtoMajor == 1 { // a stream has no connection to itself
		c.seat = peerOf(r).conn.leaveSeat() // leave gives it back
	}
	if err := c.conn.Accept(w, r, s.subprotocol(r, v.header.Get("Sec-WebSocket-Protocol"))); err != nil {
		s.log.Debug("upgrade never completed", "site", s.site, "addr", peerOf(r).addr, "err", err)
		w.cut = true
		return false
	}
	return true
}

// failConnect answers a client whose connect event did not run to its end. What
// has begun is cut.
func (s *sockets) failConnect(w *response, r *http.Request, err error) {
	if w.begun() || r.Context().Err() != nil {
		w.cut = true
		return
	}
	status := statusOf(err)
	if status == http.StatusGatewayTimeout {
		s.http.timeout(stageRequest)
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	s.answer(w, r, status, http.StatusText(status), err)
}

// refuse answers and counts a client that PHP does not see.
func (s *sockets) refuse(w *response, r *http.Request, no *refusal) {
	if no.status == http.StatusBadRequest {
		w.Header().Set("Sec-WebSocket-Version", "13")
	}
	if r.ContentLength != 0 && hasConnection(r) {
		w.Header().Set("Connection", "close") // or net/http reads on before it answers
	}
	s.metrics.handshake.WithLabelValues(no.reason).Inc()
	if no.full != "" {
		s.metrics.full.WithLabelValues(no.full).Inc()
	}
	s.answer(w, r, no.status, no.text, no.err)
}

// answer refuses an upgrade in the name of the server: with one line to the
// client and one to the log. err may be nil.
func (s *sockets) answer(w *response, r *http.Request, status int, text string, err error) {
	s.logRefusal(r, status, text, err)
	w.failAs(status, text)
}

// logRefusal writes the one line that every refusal has, whoever decided it.
func (s *sockets) logRefusal(r *http.Request, status int, reason string, err error) {
	attrs := []any{"site", s.site, "addr", peerOf(r).addr, "status", status, "reason", reason}
	if err != nil {
		attrs = append(attrs, "err", err)
	}
	s.log.Info("upgrade refused", attrs...)
}

// travel copies the headers of an accepting connect to the 101. What describes
// a body or belongs to the handshake is not the script's.
func travel(to, from http.Header) {
	for name, values := range from {
		switch {
		case strings.HasPrefix(name, "Content-"), strings.HasPrefix(name, "Sec-Websocket-"):
		case name == "Connection", name == "Upgrade", name == "Keep-Alive", name == "Transfer-Encoding",
			name == "Trailer", name == "Location":
		default:
			to[name] = slices.Clone(values)
		}
	}
}

// subprotocol chooses among those that the client offers: the script's choice,
// else the first that is configured, else none.
func (s *sockets) subprotocol(r *http.Request, chosen string) string {
	offered := websocket.Offered(r)
	if slices.Contains(offered, chosen) {
		return chosen
	}
	for _, name := range s.subprotocols {
		if slices.Contains(offered, name) {
			return name
		}
	}
	return ""
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
func (s *sockets) conns() []*websocket.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.live))
}

// wait returns when everything that sockets ran has ended, after shutdown.
func (s *sockets) wait() { <-s.drained }
