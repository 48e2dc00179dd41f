package server

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ephpm/eventstream"
	"ephpm/kv"
	"ephpm/websocket"
)

// A Server is the whole front of one configuration: its listeners, its sites and
// their PHP workers. Run it once; ServeHTTP may be called from any
// goroutine.
type Server struct {
	config      Config
	log         *slog.Logger
	endpoints   []endpoint
	redirect    *tlsRedirect  // nil when plain HTTP is answered
	control     *control      // nil without a control socket
	certs       *certificates // nil when nothing speaks TLS
	http3       *http3Server  // nil when it is off
	pools       *pools
	shared      runner   // what runs the scripts of sites that share workers
	shedder     *shedder // nil when nothing is shed
	stores      *stores
	redis       *redisServer // nil when [kv.redis_compat] is off
	sites       *sites
	tenants     atomic.Uint32    // that share workers, so far
	trusted     *nameTable[bool] // the host names that are answered; nil: all
	metrics     *metrics         // nil when they are off
	metricsPath string           // empty when they are off
	ids         *ids
	proxies     proxies // who may name the client of a request
	conns       *connections
	admin       *admin // nil when there is none
	access      *accessLogs
	out         *outgoing         // what happens to answers that are no site's; may be nil
	hears       bool              // conns tell of requests that net/http does not pass on
	rates       *buckets          // of clients; nil when they have none
	loop        *websocket.Loop   // serves the sockets
	upgrades    *socketMetrics    // of all sites; nil when WebSockets are off
	streams     *eventstream.Loop // serves what there is in place of sockets
	stopping    atomic.Bool
}

// New opens the listeners and starts the workers of a configuration that Validate
// accepted. Clients wait until Run, which must follow and ends both.
func New(c Config, log *slog.Logger) (*Server, error) {
	var undo []func() // of what is open, when the rest does not come
	defer func() {
		for _, f := range slices.Backward(undo) {
			f()
		}
	}()
	endpoints, err := listenAll(c) // first: a port that is taken is told at once
	if err != nil {
		return nil, err
	}
	undo = append(undo, func() { closeAll(endpoints) })
	certs, err := openCertificates(c, endpoints, log)
	if err != nil {
		return nil, err
	}
	undo = append(undo, certs.close)
	redis, err := listenRedis(c.KV)
	if err != nil {
		return nil, err
	}
	undo = append(undo, func() { closeListeners(redis) })
	udp, err := openHTTP3(c, endpoints, log)
	if err != nil {
		return nil, err
	}
	undo = append(undo, func() { _ = udp.close() }) // nothing was read from them
	admin, err := listenAdmin(c.Server.Admin)
	if err != nil {
		return nil, err
	}
	if admin != nil {
		undo = append(undo, func() { _ = admin.Close() }) // nobody was served
	}
	s, err := newWithPHP(c, log)
	if err != nil {
		return nil, err
	}
	undo = append(undo, s.pools.closeUnused)
	s.endpoints, s.certs = endpoints, certs
	if d := s.sites.dir; d != nil && certs != nil && certs.acme != nil {
		certs.acme.dir.open(d.has)
		d.gone = certs.acme.dir.forget
	}
	if s.metrics != nil && certs != nil {
		s.metrics.registry.MustRegister(certMetrics{certs})
	}
	if err := s.answerHTTP3(udp); err != nil {
		return nil, err
	}
	if t := c.Server.TLS; t.RedirectHTTP {
		s.redirect = newTLSRedirect(cmp.Or(t.RedirectPort, listenPort(endpoints, true)))
	}
	s.openAdmin(admin)
	s.openControl()
	s.openRedis(redis)
	undo = nil
	return s, nil
}

// newWithPHP is New without listeners and certificates.
func newWithPHP(c Config, log *slog.Logger) (*Server, error) {
	have := thisMachine()
	least, most := have.workers(c.PHP)
	cache := have.opcache()
	log.Info("starting",
		"version", Build().Version, "php", Build().PHP, "root", c.Server.DocumentRoot, "sites", len(c.Sites),
		"workers_min", least, "workers_max", most, "workers_auto", c.PHP.Workers == 0,
		"cpus", have.cpus, "memory", Size(have.memory>>20<<20).String(),
		"opcache", Size(cache.memory).String(), "opcache_files", cache.files, "opcache_revalidate", c.PHP.OPcacheRevalidate.String())
	if l := c.Server.Limits; c.Server.Preview {
		log.Info("preview", "max_connections", l.MaxConnections, "per_ip_max_connections", l.PerIPMaxConnections,
			"per_ip_rate", l.PerIPRate, "per_ip_burst", l.PerIPBurst, "per_site_rate", l.PerSiteRate, "per_site_burst", l.PerSiteBurst,
			"overload_policy", c.PHP.OverloadPolicy)
	}
	stores, err := openStores(c, log)
	if err != nil {
		return nil, err
	}
	var shared workers
	if c.sharers() > 0 {
		o := poolOptions(c, have, log)
		o.Stores = stores.shared()
		if shared, err = startPool(o); err != nil {
			stores.close()
			return nil, err
		}
	}
	s, err := newServer(c, shared, stores, log)
	if err != nil {
		stores.close()
		return nil, err
	}
	if s.metrics != nil {
		s.metrics.registry.MustRegister(poolMetrics{s.pools.stats, s.shedder}, opcacheMetrics{s.pools.opcache})
	}
	return s, nil
}

// newServer makes what surrounds the pool that sites share, nil if none does. It
// closes the pool with an error.
func newServer(c Config, shared workers, stores *stores, log *slog.Logger) (*Server, error) {
	return newServerWith(c, newPools(shared, thisMachine(), log), stores, log)
}

func newServerWith(c Config, p *pools, stores *stores, log *slog.Logger) (*Server, error) {
	s := &Server{config: c, log: log, pools: p, stores: stores, ids: newIDs(), loop: websocket.NewLoop(), streams: eventstream.NewLoop(), proxies: newProxies(c.Server.Security)}
	if c.Server.Metrics.Enabled {
		s.metrics, s.metricsPath = newMetrics(log), c.Server.Metrics.Path
	}
	var err error
	if s.access, err = openAccessLogs(c, log); err != nil {
		s.loop.Close()
		p.closeUnused()
		return nil, err
	}
	s.hears = s.access.main != nil || s.metrics != nil
	s.conns = newConnections(c.Server.Limits, s.metrics)
	if s.hears {
		s.conns.unheard = s.unheard
	}
	if s.metrics != nil {
		s.metrics.connections(s.conns.count)
		s.metrics.accessLogs(s.access)
	}
	s.out = newOutgoing(c.Server.Response.ownHeaders(), nil)
	s.rates = newBuckets(c.Server.Limits.PerIPRate, c.Server.Limits.PerIPBurst)
	s.shared = p.shared
	if c.PHP.OverloadPolicy == OverloadShed && p.shared != nil {
		_, most := p.have.workers(c.PHP)
		s.shedder = newShedder(p.shared, most, c.PHP)
		s.shared = byClass{pages: s.shedder, events: p.shared}
	}
	if trusted := c.Server.Request.TrustedHosts; len(trusted) > 0 {
		s.trusted = new(nameTable[bool])
		for _, name := range trusted {
			s.trusted.set(name, true)
		}
	}
	if err := s.openSites(); err != nil {
		s.loop.Close()
		p.closeUnused()
		return nil, err
	}
	return s, nil
}

// openSites makes the sites and starts the workers that they have to themselves.
func (s *Server) openSites() error {
	var r prometheus.Registerer
	if s.metrics != nil {
		r = s.metrics.registry
	}
	sockets := newSharedSockets(s.config.Server.WebSocket, s.loop, s.streams, r)
	if s.config.Server.WebSocket.Enabled {
		s.upgrades = sockets.metrics
	}
	var err error
	with := &shared{newFileMemory(maxKept), newEncoders(s.config.Server.Response.CompressionLevel), newPasswords()}
	opener := func(name string, c Config, sc SiteConfig) (*site, error) {
		t, err := s.newTenant(name, c, sc)
		if err != nil {
			return nil, err
		}
		site, err := newSite(name, c, t, with, s.metrics, s.log)
		if err != nil {
			_ = s.closeTenant(context.Background(), t)                      // nobody used it
			s.stores.remove(context.Background(), name, func(*kv.Store) {}) // nobody has seen it
			return nil, err
		}
		site.access = s.access.of(c.Server.Logging)
		site.clientRates = sc.Limits.clientBuckets(c.Server.Limits)
		if c.Server.WebSocket.Enabled {
			site.openSockets(c, sc.WebSocket, sockets)
		}
		return site, nil
	}
	if s.sites, err = newSites(s.config, opener); err != nil {
		return err
	}
	if s.config.Server.SitesDir != "" {
		if s.sites.dir, err = s.newSitesDir(opener); err != nil {
			return err
		}
	}
	return s.sites.wake()
}

// Addrs returns the addresses that the server listens on, in the order of the
// configuration, "host:port".
func (s *Server) Addrs() []string {
	var addrs []string
	for _, e := range s.endpoints {
		addrs = append(addrs, e.Addr().String())
	}
	return addrs
}

// Reload takes up new code, php.ini, extensions and certificates: PHP starts anew,
// and each worker is replaced when it has done what it runs. Requests and sockets
// go on. The configuration is not read again. When PHP does not start, all of it
// stays as it is, and the error says why. ctx ends the wait for PHP.
func (s *Server) Reload(ctx context.Context) error {
	if s.certs != nil {
		s.certs.reload()
	}
	if s.http3 != nil {
		s.http3.reload()
	}
	return s.pools.reload(ctx)
}

// ReopenLogs opens the files of the access logs anew; call it when they were
// renamed.
func (s *Server) ReopenLogs() { s.access.reopen() }

// Run serves until ctx ends, then stops gracefully: no new connections, idle ones
// closed, requests in flight answered, sockets closed with 1001 and their
// disconnect events run, workers ended. What is not done when the configured time
// is over is cut. It returns when everything ended, nil if it was asked to stop.
func (s *Server) Run(ctx context.Context) error { return s.serve(ctx, s.endpoints) }

// serve is Run with listeners.
func (s *Server) serve(ctx context.Context, endpoints []endpoint) error {
	if s.config.Server.WebSocket.Enabled {
		s.probeRings()
	}
	hs := newHTTPServer(s.config.Server, s, s.conns, s.proxies, s.log)
	if s.hears {
		hs.ConnState = s.conns.trackPleas
	}
	ended := make(chan error, len(endpoints))
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer s.stores.save(context.WithoutCancel(ctx)) // when nothing changes them any more
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { s.stores.run(background) })
	if s.redis != nil {
		wg.Go(func() { s.redis.serve(background) })
	}
	if s.certs != nil {
		hs.TLSConfig = s.certs.tcpConfig()
		wg.Go(func() { s.certs.run(background) })
	}
	wg.Go(func() { s.access.run(background) })
	if rate := int64(s.config.Server.Limits.MinDataRate); rate > 0 {
		wg.Go(func() { s.conns.watchSlow(background, slowWindow(s.config.Server), rate) })
	}
	if s.control != nil {
		wg.Go(func() { s.control.serve(background) })
	}
	if d := s.sites.dir; d != nil {
		wg.Go(func() { d.watch(background) })
	}
	for _, e := range endpoints {
		e.Listener = s.guard(e.Listener)
		s.log.Info(e.String()+" listening", "addr", e.Addr().String())
		wg.Go(func() { ended <- e.serve(hs) }) // until stop
	}
	if s.admin != nil {
		s.log.Info("admin listening", "addr", s.admin.listener.Addr().String())
		wg.Go(func() { s.admin.serve(background) })
	}
	if s.http3 != nil {
		s.http3.serve() // until stop
	}

	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	s.stop(hs)
	return err
}

// probeRings says once how broadcasts are sent.
func (s *Server) probeRings() {
	if err := s.loop.ProbeRings(); err != nil {
		s.log.Info("broadcasts are sent one by one", "io_uring", err)
		return
	}
	s.log.Info("broadcasts are sent by io_uring")
}

// stop drains everything, for no longer than the configured time.
func (s *Server) stop(hs *http.Server) {
	s.stopping.Store(true)
	limit := time.Duration(s.config.Server.Timeouts.Shutdown)
	s.log.Info("stopping", "at_most", limit)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()

	var wg sync.WaitGroup
	wg.Go(func() {
		if err := hs.Shutdown(ctx); err != nil {
			s.log.Warn("cut the requests that were still running", "err", err)
			_ = hs.Close() // its listeners are closed already
		}
	})
	if s.http3 != nil {
		wg.Go(func() { s.http3.drain(ctx) })
	}
	s.sites.shutdown(ctx)
	wg.Wait()
	if err := s.pools.close(ctx); err != nil {
		s.log.Warn("killed the scripts that were still running", "err", err)
	}
	if s.http3 != nil {
		s.http3.close()
	}
	s.sites.wait() // their scripts have ended, so they do
	s.loop.Close()
	s.streams.Close()
	s.log.Info("stopped")
}
