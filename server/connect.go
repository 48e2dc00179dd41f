package server

import (
	"net/http"
	"slices"
	"strings"

	"ephpm/phpbridge"
	"ephpm/websocket"
)

// enter admits a connection and lets the script decide. It returns the header that
// the script has for a client that it accepts; one that does not come in is
// answered, and nothing is left of it.
func (s *sockets) enter(w *response, r *http.Request, c *socket, vars phpbridge.Vars, body []byte) (http.Header, bool) {
	if wait := s.rate.take(); wait > 0 {
		s.http.siteRateLimited()
		w.Header().Set("Retry-After", retryAfter(wait))
		s.refuse(w, r, c.transport, &refusal{status: http.StatusTooManyRequests, reason: refusedRate, text: http.StatusText(http.StatusTooManyRequests)})
		return nil, false
	}
	if no := s.admit(c, peerOf(r)); no != nil {
		s.refuse(w, r, c.transport, no)
		return nil, false
	}
	if c.transport != overSocket {
		vars = append(phpbridge.Vars(nil), vars...).Add("WS_TRANSPORT", c.transport.String())
	}
	connect, replayed := eventVars(vars, c.id.String(), sameOrigin(r))
	c.vars = replayed
	header, ok := s.connect(w, r, c, event{name: eventConnect, vars: connect, body: body})
	if !ok {
		s.abandon(c)
	}
	return header, ok
}

// abandon takes out a connection whose client never got it.
func (s *sockets) abandon(c *socket) {
	c.conn.Abandon()
	s.leave(c)
	s.done()
}

// connect lets the script decide, and returns what it says to a client that it
// accepts. Any other is answered.
func (s *sockets) connect(w *response, r *http.Request, c *socket, e event) (http.Header, bool) {
	v := &verdict{client: w, header: http.Header{}}
	fatal, err := s.dispatch(r.Context(), c, e, v)
	switch {
	case err != nil:
		s.failConnect(w, r, c.transport, err)
	case fatal && v.accepted():
		// With display_errors PHP prints the error with status 200.
		s.answer(w, r, c.transport, http.StatusInternalServerError, "Internal Server Error", nil)
	case !v.accepted():
		s.logRefusal(r, c.transport, v.status, "refused by connect", nil)
	case r.Context().Err() != nil:
		w.cut = true // nobody is there
		return nil, false
	default:
		return v.header, true
	}
	s.metrics.notAccepted(c.transport)
	return nil, false
}

// accept answers the handshake.
func (s *sockets) accept(w *response, r *http.Request, c *socket, conn *websocket.Conn, header http.Header) error {
	travel(w.Header(), header)
	if r.ProtoMajor == 1 { // a stream has no connection to itself
		c.seat = peerOf(r).conn.leaveSeat() // leave gives it back
	}
	return conn.Accept(w, r, s.subprotocol(r, header.Get("Sec-WebSocket-Protocol")))
}

// failConnect answers a client whose connect event did not run to its end. What
// has begun is cut.
func (s *sockets) failConnect(w *response, r *http.Request, t transport, err error) {
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
	s.answer(w, r, t, status, http.StatusText(status), err)
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
