package server

import (
	"crypto/rand"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"ephpm/websocket"
)

// ServeHTTP answers one request. The checks come in this order: limits of the
// client, the path is sound, the server's own endpoints, ACME challenges, the host
// name is sound and trusted and has a site, the redirect to TLS, hidden paths,
// the rules of the site, WebSocket upgrades, the fallback list.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if isHTTP2Socket(r) {
		s.serveHTTP2Socket(rw, r)
		return
	}
	start := time.Now()
	w := responses.Get().(*response)
	*w = response{ResponseWriter: rw, old: !r.ProtoAtLeast(1, 1), shared: r.ProtoMajor > 1, out: s.out, preview: s.config.Server.Preview}
	switch {
	case r.ProtoMajor == 3:
		w.http3 = s.http3
	case r.TLS != nil:
		w.altSvc = s.http3.altSvc(r)
	}
	r = s.proxies.through(r)
	w.request = r
	w.last = mayHaveTwoEnds(r)
	w.trail.access = s.access.main
	s.metrics.begin()
	defer s.metrics.end()

	if s.hears {
		peerOf(r).conn.heard()
	}
	stall := time.Duration(s.config.Server.Timeouts.Idle)
	if w.shared {
		w.stall = stall // no other stream tells that this one stands still
	}
	if r.ContentLength != 0 && stall > 0 {
		// For whoever reads the body, and for net/http, which reads a little of
		// what nobody read. It is lifted by body.read or the next request.
		_ = http.NewResponseController(rw).SetReadDeadline(start.Add(stall))
	}
	by := handlerError
	if !s.overLimit(w, r) {
		by = s.answer(w, r, start)
	}
	if !w.isOver() {
		w.finish()
	}
	if s.upgrades != nil && w.status >= 300 && (by == handlerError || by == handlerStatic) && websocket.IsUpgrade(r) {
		s.refusedUpgrade(w, r)
	}
	s.metrics.answered(w, r.Method, by, start)
	if access := w.trail.access; access != nil {
		e := entryOf(w, r, by, start, time.Now())
		access.add(&e)
	}
	cut := w.cut
	if !w.isOver() {
		*w = response{}
		responses.Put(w)
	}
	if cut {
		abort(rw, r)
	}
}

// abort closes the connection without ending the response. To a client of
// HTTP/1.0, such as many proxies, the end of the connection is the end of the
// body: only a reset tells it that something is missing.
func abort(w http.ResponseWriter, r *http.Request) {
	if !r.ProtoAtLeast(1, 1) {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			reset(conn)
			return
		}
	}
	panic(http.ErrAbortHandler)
}

// reset closes a connection so that the client does not take it for an end in good
// order: without TLS's goodbye (RFC 8446 §6.1), and by a reset.
func reset(conn net.Conn) {
	for {
		if tcp, ok := conn.(interface{ SetLinger(int) error }); ok {
			_ = tcp.SetLinger(0) // closing resets the connection
			break
		}
		above, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		conn = above.NetConn()
	}
	_ = conn.Close() // nobody is told
}

func (s *Server) answer(w *response, r *http.Request, now time.Time) handler {
	status := s.http3.refuses(r)
	if status == 0 {
		status = refusesProtocol(r)
	}
	if status != 0 {
		w.fail(status)
		return handlerError
	}
	t, ok := parseTarget(r.RequestURI)
	if !ok {
		w.fail(http.StatusBadRequest)
		return handlerError
	}
	path, ok := decodePath(t.path)
	isConnect := r.Method == http.MethodConnect // it names no path (RFC 9110 §9.3.6)
	if !ok || isConnect || r.ProtoMajor > 1 && isMalformed(r) {
		w.fail(http.StatusBadRequest)
		return handlerError
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		if by, ok := s.own(w, r, path); ok {
			return by
		}
	}
	if s.certs != nil && s.certs.acme.answer(w, r) {
		return handlerACME
	}
	site, status := s.siteOf(r)
	if site == nil {
		w.fail(status)
		return handlerError
	}
	if s.redirect.applies(r, path) {
		return s.redirect.answer(w, r, t.uri)
	}
	v := &visit{id: s.requestID(r), target: t, path: path}
	w.trail.id, w.trail.site, w.trail.access = v.id, site.name, site.access
	if s.config.Server.Logging.RequestIDHeader {
		w.Header()["X-Request-Id"] = []string{v.id}
	}
	return site.answer(w, r, v, now)
}

// siteOf returns the site that the request is for, or why there is none. net/http
// has put the :authority of HTTP/2 and the host of an absolute URL into r.Host.
func (s *Server) siteOf(r *http.Request) (found *site, status int) {
	name, ok := hostName(r.Host)
	if !ok {
		return nil, http.StatusBadRequest
	}
	if s.trusted != nil {
		if _, ok := s.trusted.find(name); !ok {
			return nil, http.StatusMisdirectedRequest // RFC 9110 §15.5.20
		}
	}
	found, err := s.sites.find(name)
	switch {
	case err != nil:
		return nil, http.StatusInternalServerError // it was logged
	case found == nil:
		return nil, http.StatusNotFound
	}
	return found, 0
}

// own answers the server's own endpoints.
func (s *Server) own(w *response, r *http.Request, path string) (handler, bool) {
	switch path {
	case "/_ephpm/health":
		s.health(w)
		return handlerHealth, true
	case "/_ephpm/ready":
		s.ready(w)
		return handlerHealth, true
	case s.metricsPath:
		s.metrics.endpoint.ServeHTTP(w, r)
		return handlerMetrics, true
	}
	return 0, false
}

// health says that the process is there.
func (s *Server) health(w http.ResponseWriter) { sendJSON(w, http.StatusOK, `{"status":"ok"}`) }

// ready says whether new requests are welcome.
func (s *Server) ready(w http.ResponseWriter) {
	if s.stopping.Load() {
		sendJSON(w, http.StatusServiceUnavailable, `{"status":"stopping"}`)
	} else {
		sendJSON(w, http.StatusOK, `{"status":"ready"}`)
	}
}

func sendJSON(w http.ResponseWriter, status int, text string) {
	w.Header()["Content-Type"] = typeJSON
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // a client that is gone misses it
}

// requestID returns the name of a request: what a trusted proxy calls it, else one
// of ours.
func (s *Server) requestID(r *http.Request) string {
	if len(s.proxies.networks) > 0 && peerOf(r).via {
		if id := r.Header["X-Request-Id"]; len(id) == 1 && requestID.MatchString(id[0]) {
			return id[0]
		}
	}
	return s.ids.next()
}

// requestID is what can stand in logs, headers and file names.
var requestID = regexp.MustCompile("^[A-Za-z0-9][-A-Za-z0-9._:+=@]{0,127}$")

// ids names requests in logs and for scripts: a random part for this process, and
// a count.
type ids struct {
	prefix string
	n      atomic.Uint64
}

func newIDs() *ids {
	var b [6]byte
	rand.Read(b[:]) // never fails
	return &ids{prefix: hex.EncodeToString(b[:]) + "-"}
}

func (i *ids) next() string {
	b := make([]byte, 0, 32)
	b = append(b, i.prefix...)
	return string(strconv.AppendUint(b, i.n.Add(1), 16))
}
