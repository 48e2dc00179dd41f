package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	quicgo "github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"ephpm/quic"
)

// An http3Server answers HTTP/3. Open it, serve once, then drain and close it.
type http3Server struct {
	config    HTTP3Config
	idle      time.Duration // of a connection without a request; 0: for ever
	next      http.Handler
	proxies   proxies
	log       *slog.Logger
	metrics   *http3Metrics
	udp       *http3Endpoints
	tls       *tls.Config
	listeners []*quicgo.EarlyListener
	server    *http3.Server
	firstPort int
	headers   map[int][]string // Alt-Svc by port; empty when clients are not told

	accepting sync.WaitGroup // a goroutine for each listener
	goings    sync.WaitGroup // those of connections, and of drain

	mu       sync.Mutex // guards the following
	conns    map[*http3Conn]struct{}
	draining bool
}

// http3Endpoints are opened before anything else is started.
type http3Endpoints struct {
	all     []*quic.Endpoint
	keys    *quic.Keys
	keyFile string // empty for keys without one
	door    *http3Door
}

// openHTTP3 opens the UDP addresses of a checked configuration, nil without HTTP/3.
// tcp are the listeners, which are open.
func openHTTP3(c Config, tcp []endpoint, log *slog.Logger) (*http3Endpoints, error) {
	h := c.Server.HTTP3
	if !c.speaksTLS() || !h.Enabled {
		return nil, nil
	}
	e := &http3Endpoints{keys: quic.NewKeys(), keyFile: h.KeyFile, door: &http3Door{knocks: map[netip.Addr]int{}}}
	if e.keyFile == "" && c.usesACME() {
		e.keyFile = filepath.Join(c.Server.TLS.CacheDir, "quic.keys")
	}
	if e.keyFile != "" {
		var err error
		if e.keys, err = quic.LoadKeys(e.keyFile); err != nil {
			return nil, fmt.Errorf("[server.http3] key_file: %w", err)
		}
	}
	for _, a := range udpAddresses(c.Server, tcp) {
		o := quic.Options{
			Network: a.network, Addr: a.addr, Sockets: h.Sockets, Keys: e.keys, ProveAbove: h.RetryAbove, Log: log,
			Doubts: e.door.doubts, Admit: e.door.admit,
		}
		one, err := quic.Open(o)
		if a.freePort && errors.Is(err, syscall.EADDRINUSE) { // what is free for TCP need not be for UDP; clients are told the port
			host, _ := splitHostPort(a.addr)
			a.addr, o.Addr = host+":0", host+":0"
			one, err = quic.Open(o)
		}
		if err != nil {
			_ = e.close() // nothing was read from them
			return nil, explainUDP(a.addr, err)
		}
		e.all = append(e.all, one)
	}
	return e, nil
}

// A udpAddress is one to open.
type udpAddress struct {
	network, addr string
	freePort      bool // any other port will do
}

// udpAddresses returns the addresses of HTTP/3: its own, or those of the listeners
// for TLS.
func udpAddresses(c ServerConfig, tcp []endpoint) []udpAddress {
	var all []udpAddress
	add := func(list Addresses, i int, addr string, free bool) {
		network := strings.Replace(list.network(list[i]), "tcp", "udp", 1)
		all = append(all, udpAddress{network, addr, free})
	}
	for i, addr := range c.HTTP3.Listen {
		add(c.HTTP3.Listen, i, addr, false)
	}
	if len(all) > 0 {
		return all
	}
	list := c.TLS.Listen
	if len(list) == 0 {
		list = c.Listen
	}
	i := 0
	for _, e := range tcp { // in the order of the list
		if !e.tls {
			continue
		}
		host, port := splitHostPort(list[i])
		_, got := splitHostPort(e.Addr().String())
		add(list, i, host+":"+got, port == "0")
		i++
	}
	return all
}

// explainUDP says what to do about an address that could not be opened.
func explainUDP(addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("listen on UDP %s: another program has this port: stop it, choose another with [server.http3] listen, or set enabled = false there", addr)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("listen on UDP %s: not permitted: ports below 1024 need root or CAP_NET_BIND_SERVICE; or choose another with [server.http3] listen", addr)
	}
	return fmt.Errorf("listen on UDP %s: %w", addr, err)
}

// close closes them. There may be none.
func (e *http3Endpoints) close() error {
	if e == nil {
		return nil
	}
	var errs []error
	for _, one := range e.all {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// answerHTTP3 lets the server answer at addresses, which may be nil.
func (s *Server) answerHTTP3(udp *http3Endpoints) error {
	if udp == nil {
		return nil
	}
	h := &http3Server{
		config:  s.config.Server.HTTP3,
		idle:    time.Duration(s.config.Server.Timeouts.Idle),
		next:    s,
		proxies: s.proxies,
		log:     s.log,
		udp:     udp,
		metrics: newHTTP3Metrics(s.metrics, udp.all),
		conns:   map[*http3Conn]struct{}{},
		tls:     http3.ConfigureTLSConfig(s.certs.tlsConfig(http3.NextProtoH3)),
		headers: map[int][]string{},
	}
	udp.door.limits, udp.door.proxies = s.conns, s.proxies
	h.tls.SetSessionTicketKeys(udp.keys.Tickets(ticketsOfHTTP3))
	h.server = &http3.Server{
		Handler:        h,
		MaxHeaderBytes: int(s.config.Server.Request.MaxHeaderSize),
		ConnContext:    h.admit,
		Logger:         s.log,
	}
	for _, e := range udp.all {
		listeners, err := e.Listen(h.tls, h.transport())
		if err != nil {
			return fmt.Errorf("HTTP/3: %w", err)
		}
		h.listeners = append(h.listeners, listeners...)
	}
	h.announce()
	s.http3 = h
	return nil
}

// announce makes the headers that tell clients of HTTP/3 (RFC 7838, RFC 9114
// §3.1.1).
func (s *http3Server) announce() {
	if s.config.AltSvcMaxAge == 0 {
		return
	}
	age := strconv.FormatInt(int64(time.Duration(s.config.AltSvcMaxAge)/time.Second), 10)
	ports := []int{s.config.AltSvcPort}
	if s.config.AltSvcPort == 0 {
		ports = nil
		for _, e := range s.udp.all {
			ports = append(ports, e.Addr().Port)
		}
	}
	s.firstPort = ports[0]
	for _, port := range ports {
		s.headers[port] = []string{http3.NextProtoH3 + `=":` + strconv.Itoa(port) + `"; ma=` + age}
	}
}

// altSvc returns the header that tells the client of a request over TLS, nil for
// none. s may be nil.
func (s *http3Server) altSvc(r *http.Request) []string {
	if s == nil {
		return nil
	}
	if len(s.headers) > 1 {
		if addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && s.headers[addr.Port] != nil {
			return s.headers[addr.Port]
		}
	}
	return s.headers[s.firstPort]
}

// ticketsOfHTTP3 is what the keys of its session tickets are derived for. Those of
// TLS over TCP are others: a ticket says what the client may send early.
const ticketsOfHTTP3 = "HTTP/3"

const (
	// keepAlive is how often a silent client is asked whether it is there, while
	// a script runs or waits for something to say. It also keeps routers from
	// forgetting the connection.
	keepAlive = 20 * time.Second
	// lostAfter is after how long of silence a client is gone, whatever the idle
	// timeout is. It answers keepAlive.
	lostAfter = 60 * time.Second
	// firstStreamWindow and firstWindow are what clients may send at once, in
	// bytes, before windows have grown.
	firstStreamWindow = 256 << 10
	firstWindow       = 1 << 20
	// uniStreams are control, QPACK encoder and decoder (RFC 9114 §6.2), and
	// room for those that we must ignore.
	uniStreams = 8
)

// transport returns the QUIC side of the configuration.
func (s *http3Server) transport() *quicgo.Config {
	window := uint64(s.config.MaxWindow)
	return &quicgo.Config{
		HandshakeIdleTimeout:           time.Duration(s.config.HandshakeTimeout) / 2, // the whole may take twice as long
		MaxIdleTimeout:                 lostAfter,
		KeepAlivePeriod:                keepAlive,
		InitialStreamReceiveWindow:     min(firstStreamWindow, window),
		MaxStreamReceiveWindow:         window,
		InitialConnectionReceiveWindow: min(firstWindow, window),
		MaxConnectionReceiveWindow:     window,
		MaxIncomingStreams:             int64(s.config.MaxStreams),
		MaxIncomingUniStreams:          uniStreams,
		Allow0RTT:                      s.config.EarlyData,
	}
}

// serve starts to answer. It returns at once.
func (s *http3Server) serve() {
	for _, l := range s.listeners {
		s.accepting.Go(func() {
			if err := s.server.ServeListener(l); !errors.Is(err, http.ErrServerClosed) {
				s.log.Error("HTTP/3 stopped", "addr", l.Addr().String(), "err", err)
			}
		})
	}
	for _, e := range s.udp.all {
		s.log.Info("HTTP/3 listening", "addr", e.Addr().String(), "sockets", s.config.Sockets)
	}
}

// reload reads the key file again, for session tickets. Tokens and resets of
// connections that are open keep their keys.
func (s *http3Server) reload() {
	if s.udp.keyFile == "" {
		return
	}
	keys, err := quic.LoadKeys(s.udp.keyFile)
	if err != nil {
		s.log.Error("key file not taken up; the keys before it stay", "err", err)
		return
	}
	s.tls.SetSessionTicketKeys(keys.Tickets(ticketsOfHTTP3))
}

// drain lets no new connection in, tells clients to go (GOAWAY, RFC 9114 §5.2) and
// waits until what runs has ended and was received, or until ctx ends, which cuts
// the rest. Scripts may still run then: close waits for them.
func (s *http3Server) drain(ctx context.Context) {
	for _, l := range s.listeners {
		_ = l.Close() // it has no error
	}
	s.accepting.Wait() // http3.Server counts connections that come while it ends wrong
	s.mu.Lock()
	s.draining = true
	for c := range s.conns {
		s.goings.Go(func() { c.drain(ctx) })
	}
	s.mu.Unlock()
	ended := make(chan error, 1)
	s.goings.Go(func() { ended <- s.server.Shutdown(ctx) })
	select {
	case err := <-ended:
		if err == nil {
			return
		}
	case <-ctx.Done():
	}
	s.log.Warn("cut the HTTP/3 requests that were still running")
}

// close ends what drain left. Call it when scripts have ended.
func (s *http3Server) close() {
	s.goings.Wait()
	if err := s.udp.close(); err != nil {
		s.log.Warn("close UDP sockets", "err", err)
	}
}
