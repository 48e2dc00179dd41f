package server

import (
	"cmp"
	"io"
	"net/http"
	"strings"

	"ephpm/registry"
	"ephpm/websocket"
)

// maxUpgradeBody bounds the body of an upgrade request, which is normally empty.
const maxUpgradeBody = 64 << 10

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

// checkUpgrade judges a handshake alone and returns the script and the body.
func (s *sockets) checkUpgrade(w *response, r *http.Request) (script string, body []byte, no *refusal) {
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
	body, no = s.checkRequest(w, r)
	return script, body, no
}

// checkRequest judges what any request for a connection has, and returns its body.
func (s *sockets) checkRequest(w *response, r *http.Request) (body []byte, no *refusal) {
	if !allowed(r, s.allowedOrigins) {
		return nil, &refusal{status: http.StatusForbidden, reason: refusedOrigin, text: "origin not allowed"}
	}
	if r.ContentLength == 0 {
		return nil, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpgradeBody))
	if err != nil {
		return nil, badHandshake(refusedHandshake, err)
	}
	return body, nil
}

// admit registers a new connection, so that connect can subscribe it and others
// can reach it. leave undoes it.
func (s *sockets) admit(c *socket, p *peer) *refusal {
	client, ok := s.clients.enter(p)
	if !ok {
		return unavailable(refusedCapacity, "websocket connection limit reached for this address", fullIP)
	}
	if n := s.open.Add(1); s.maxOpen > 0 && n > int64(s.maxOpen) {
		s.open.Add(-1)
		s.clients.leave(client)
		return unavailable(refusedCapacity, "websocket connection limit reached", fullServer)
	}
	c.client = client
	if no := s.register(c); no != nil {
		s.open.Add(-1)
		s.clients.leave(client)
		return no
	}
	s.calm.move()
	s.metrics.admit(c.transport)
	return nil
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
		return unavailable(refusedCapacity, "websocket connection limit reached for this site", fullSite)
	}
	s.live[c.conn] = struct{}{}
	s.running++
	return nil
}

// leave takes a connection out of everything it is in.
func (s *sockets) leave(c *socket) {
	s.presences.leave(c.id)
	c.seat.stand()
	s.clients.leave(c.client)
	s.calm.move()
	s.open.Add(-1)
	s.metrics.left(c.transport)
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

// refuse answers and counts a client that PHP does not see.
func (s *sockets) refuse(w *response, r *http.Request, t transport, no *refusal) {
	if no.status == http.StatusBadRequest && t == overSocket {
		w.Header().Set("Sec-WebSocket-Version", "13")
	}
	if r.ContentLength != 0 && hasConnection(r) {
		w.Header().Set("Connection", "close") // or net/http reads on before it answers
	}
	s.metrics.refused(t, no)
	s.answer(w, r, t, no.status, no.text, no.err)
}

// answer refuses a client in the name of the server: with one line to the
// client and one to the log. err may be nil.
func (s *sockets) answer(w *response, r *http.Request, t transport, status int, text string, err error) {
	s.logRefusal(r, t, status, text, err)
	w.failAs(status, text)
}

// logRefusal writes the one line that every refusal has, whoever decided it.
func (s *sockets) logRefusal(r *http.Request, t transport, status int, reason string, err error) {
	attrs := []any{"site", s.site, "addr", peerOf(r).addr, "status", status, "reason", reason}
	if err != nil {
		attrs = append(attrs, "err", err)
	}
	what := "upgrade refused"
	if t != overSocket {
		what = "event stream refused"
	}
	s.log.Info(what, attrs...)
}

// refusedUpgrade counts and logs an upgrade that was refused as any other request
// would be, before it came to the sockets of a site.
func (s *Server) refusedUpgrade(w *response, r *http.Request) {
	reason := refusedRequest
	switch w.status {
	case http.StatusTooManyRequests:
		reason = refusedRate
	case http.StatusServiceUnavailable:
		reason = refusedCapacity
	}
	s.upgrades.handshake.WithLabelValues(reason).Inc()
	path, _, _ := strings.Cut(r.RequestURI, "?")
	s.log.Info("upgrade refused", "site", cmp.Or(w.trail.site, noSite), "addr", peerOf(r).addr, "status", w.status,
		"reason", http.StatusText(w.status), "host", r.Host, "path", path)
}
