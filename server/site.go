package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ephpm/eventstream"
	"ephpm/phpbridge"
	"ephpm/registry"
	"ephpm/websocket"
)

// A site is one virtual host and everything it owns. Its methods may be called
// from any goroutine.
type site struct {
	name    string
	tenant  *tenant
	root    *root
	routes  routes
	runner  runner         // of pages
	host    phpbridge.Host // of pages
	sockets *sockets       // nil when WebSockets are off
	entries []string       // where the WebSocket script may be, below the root
	kv      *kvHost
	vars    phpbridge.Vars // for every script, beside those of its request

	timeout       time.Duration // of a script; 0: none
	stall         time.Duration // how long a client may pause in a request body; 0: for ever
	minRate       int64         // how slow it may be, in bytes a second
	rate          *bucket       // of pages and connect events that run PHP
	clientRates   *buckets      // of the site's clients; nil when they have none of its own
	maxBody       int64         // 0: any
	etag          bool          // of files
	precompressed bool
	sendRoots     sendRoots
	out           *outgoing
	errorPages    *errorPages
	rules         *rules // nil when there are none

	metrics *metrics
	access  *accessLog // nil when there is none
	log     *slog.Logger
}

// A shared is what all sites of a server take part of.
type shared struct {
	files     *fileMemory
	encoders  *encoders
	passwords *passwords
}

// shutdown ends what waits on the site's store, and closes its sockets; see
// sockets.shutdown. More does no harm.
func (s *site) shutdown(ctx context.Context) {
	s.kv.stop()
	if s.sockets != nil {
		s.sockets.shutdown(ctx)
	}
}

// A visit is one request on its way through a site.
type visit struct {
	id        string
	target    target
	path      string // decoded
	tree      *tree
	route     route
	user      string // who has given a password; empty: nobody
	rewritten bool   // path is not what the client asked for
}

// newSite returns a site without sockets: every call of theirs throws. The
// configuration is the site's own; see Config.forSite.
func newSite(name string, config Config, t *tenant, with *shared, m *metrics, log *slog.Logger) (*site, error) {
	c := config.Server
	kinds := &fileKinds{types: c.Static.MIMETypes, rules: c.Static.CacheRules, fallback: c.Static.CacheControl}
	root, err := openRoot(c.DocumentRoot, c.ResolveRoot, config.File, c.PHPExtensions, kinds, with.files, log)
	if err != nil {
		return nil, err
	}
	kvs := newKVHost(name, t.store)
	return &site{
		name: name,
		root: root,
		routes: routes{
			fallback: parseFallback(c.Fallback),
			index:    c.IndexFiles,
			listings: c.Static.Autoindex,
			hidden:   map[string]int{HiddenDeny: 403, HiddenIgnore: 404}[c.Static.HiddenFiles],
		},
		tenant:        t,
		runner:        t.php,
		host:          &pageHost{thrower(textDisabled), kvs},
		kv:            kvs,
		timeout:       time.Duration(c.Timeouts.Request),
		stall:         time.Duration(c.Timeouts.Idle),
		minRate:       int64(c.Limits.MinDataRate),
		rate:          newBucket(c.Limits.PerSiteRate, c.Limits.PerSiteBurst),
		maxBody:       int64(c.Request.MaxBodySize),
		etag:          c.Static.ETag,
		precompressed: c.Static.Precompressed,
		out:           newOutgoing(c.Response, with.encoders),
		rules:         newRules(config, with),
		errorPages:    newErrorPages(c.ErrorPages, c.Response.InterceptErrors),
		sendRoots:     newSendRoots(c.Sendfile.Roots),
		metrics:       m,
		log:           log,
	}, nil
}

// limitStall says how long a client may take nothing of an answer that needs no worker.
// A connection of its own is watched as a whole, see connections.watchSlow.
func (s *site) limitStall(w *response) {
	w.stall = s.stall
	if s.minRate > 0 && !w.shared {
		w.stall = 0
	}
}

// answer answers a request for the site.
func (s *site) answer(w *response, r *http.Request, v *visit, now time.Time) handler {
	w.out = s.out
	s.limitStall(w)
	v.tree = s.root.tree(now)
	if s.errorPages != nil {
		w.page = &errorPager{s, v, now}
	}
	if s.clientRates != nil && overRateOf(peerOf(r), s.clientRates, w, s.metrics) {
		return handlerError
	}
	if s.routes.hidden != 0 && hasHidden(v.path) {
		w.fail(s.routes.hidden)
		return handlerError
	}
	if s.rules != nil && s.rules.apply(s, w, r, v, now) {
		return handlerError
	}
	if s.sockets != nil && websocket.IsUpgrade(r) {
		return s.upgrade(w, r, v, now)
	}
	if s.sockets != nil && s.sockets.streams != nil {
		if by, ok := s.answerStream(w, r, v, now); ok {
			return by
		}
	}
	v.route = s.routes.find(v.tree, v.target, v.path, now)
	if s.rules != nil && s.rules.applyRoute(s, w, r, v, now) {
		return handlerError
	}
	switch {
	case v.route.location != "" && !v.rewritten && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		w.Header().Set("Location", v.route.location)
		w.fail(http.StatusMovedPermanently)
		return handlerStatic
	case v.route.script != nil:
		return s.runScript(w, r, v)
	case v.route.file != "":
		return s.sendFile(w, r, v, now)
	case v.route.listing != "":
		return s.sendListing(w, r, v)
	}
	w.fail(v.route.status)
	return handlerError
}

// sharedSockets is what the sockets of all sites share.
type sharedSockets struct {
	metrics  *socketMetrics
	open     *atomic.Int64 // how many there are
	loop     *websocket.Loop
	streams  *eventstream.Loop
	calm     *calm
	contexts *websocket.Contexts
	clients  *clients
}

func newSharedSockets(c WebSocketConfig, loop *websocket.Loop, streams *eventstream.Loop, r prometheus.Registerer) sharedSockets {
	return sharedSockets{newSocketMetrics(r), new(atomic.Int64), loop, streams, newCalm(), websocket.NewContexts(int64(c.CompressionMemory)), newClients(c.MaxConnectionsPerIP)}
}

// openSockets gives the site its sockets. own is what only it has.
func (s *site) openSockets(c Config, own SiteWebSocketConfig, shared sharedSockets) {
	perClient := 0
	replace(&perClient, own.MaxConnectionsPerIP)
	ws := c.Server.WebSocket
	s.entries = c.Server.WebSocketFiles
	s.sockets = newSockets(socketOptions{
		site:        s.name,
		kv:          s.kv,
		storeNumber: s.tenant.storeNumber,
		php:         s.tenant.php,
		log:         s.log,
		metrics:     shared.metrics,
		http:        s.metrics,
		open:        shared.open,
		loop:        shared.loop,
		streamLoop:  shared.streams,
		calm:        shared.calm,
		maxOpen:     ws.MaxConnections,
		maxSite:     ws.MaxConnectionsPerSite,
		clients:     clientCounts{shared.clients, newClients(perClient)},
		messages:    newMessagePace(ws.MaxMessagesPerSec, ws.MessageBurst),
		maxMessage:  int64(ws.MaxMessageSize),
		conn: websocket.Options{
			MaxMessageSize: int64(ws.MaxMessageSize),
			MaxFrameSize:   int64(ws.MaxFrameSize),
			QueueFrames:    ws.SendQueue,
			QueueBytes:     int64(ws.SendQueueBytes),
			Compression:    socketCompression[ws.Compression],
			Contexts:       shared.contexts,

			CompressionThreshold: int(ws.CompressionThreshold),

			PingInterval: time.Duration(ws.PingInterval),
			IdleTimeout:  time.Duration(ws.IdleTimeout),
			WriteTimeout: time.Duration(ws.WriteTimeout),
		},
		historyMemory:  int64(ws.HistoryMemory),
		presenceMemory: int64(ws.PresenceMemory),
		sendWait:       time.Duration(ws.SendWait),
		maxEvents:      max(1, s.tenant.workers, c.PHP.WorkerBacklog),
		eventWait:      time.Duration(c.PHP.WorkerBacklogWait),
		requestTimeout: s.timeout,
		rate:           s.rate,
		access:         s.access,
		noSite:         s.name == noSite,
		streams:        ws.streamOptions(),
		subprotocols:   ws.Subprotocols,
		allowedOrigins: ws.AllowedOrigins,
		entrypoint: func() (string, bool) {
			entry := s.entrypoint(time.Now())
			if entry == nil {
				return "", false
			}
			return entry.file, true
		},
	})
	if s.name == noSite {
		s.sockets.streams = nil
		s.host = &pageHost{thrower(textNoSite), s.kv}
		return
	}
	s.host = s.sockets.host(registry.ID{})
}

// upgrade gives the request to the sockets. Every path leads to the same script.
func (s *site) upgrade(w *response, r *http.Request, v *visit, now time.Time) handler {
	entry := s.entrypoint(now)
	if entry == nil {
		entry = &script{} // the sockets refuse, count and log it
	}
	v.route = route{script: entry, query: v.target.query}
	c := cgi{request: r, id: v.id, target: v.target, route: &v.route, root: v.tree.shown, bodyLen: -1, user: v.user}
	s.sockets.upgrade(w, r, append(c.appendTo(nil), s.vars...), v.id)
	return handlerWebSocket
}

// entrypoint returns the first WebSocket script that is there, or nil.
func (s *site) entrypoint(now time.Time) *script {
	t := s.root.tree(now)
	for _, name := range s.entries {
		if f := t.script(fileName("/"+name), now); f.kind == aScript {
			return f.script
		}
	}
	return nil
}
