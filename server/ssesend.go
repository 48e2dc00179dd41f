package server

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ephpm/eventstream"
	"ephpm/phpbridge"
	"ephpm/websocket"
)

const textGone = "the connection has ended"

// answerStream answers a request that is about event streams. It reports false for any
// other: an ordinary one.
func (s *site) answerStream(w *response, r *http.Request, v *visit, now time.Time) (handler, bool) {
	a := askOf(r, v.target.query)
	switch a.kind {
	case asksNothing:
		return 0, false
	case preflight:
		if _, ok := s.sockets.listedOrigin(r); !ok {
			return 0, false
		}
		s.sockets.answerPreflight(w, r)
	case sends:
		s.receive(w, r, v, a)
	case leaves:
		s.sockets.dismiss(w, r, a)
	case asksPoll, asksStream:
		if a.kind == asksPoll && a.key != "" {
			s.sockets.poll(w, r, a)
			break
		}
		entry := s.entrypoint(now)
		if entry == nil {
			return 0, false // a site without a script has no streams
		}
		if a.last == eventstream.Over {
			w.WriteHeader(http.StatusNoContent) // an EventSource stops (WHATWG HTML §9.2.3)
			break
		}
		v.route = route{script: entry, query: v.target.query}
		c := cgi{request: r, id: v.id, target: v.target, route: &v.route, root: v.tree.shown, bodyLen: -1, user: v.user}
		s.sockets.openStream(w, r, append(c.appendTo(nil), s.vars...), v.id, a)
	}
	return handlerStream, true
}

// streamOf returns the connection whose key a request has. Otherwise the request is
// answered.
func (s *sockets) streamOf(w *response, r *http.Request, key string) (*eventStream, bool) {
	if !allowed(r, s.allowedOrigins) {
		s.say(w, r, nil, http.StatusForbidden, "origin not allowed")
		return nil, false
	}
	id, ok := s.streams.keys.open(key)
	if !ok {
		s.say(w, r, nil, http.StatusNotFound, "no such connection")
		return nil, false
	}
	conn, _ := s.members.Lookup(id)
	e, ok := conn.(*eventStream)
	if !ok {
		s.say(w, r, nil, http.StatusGone, textGone)
	}
	return e, ok
}

// say answers a request of a connection in one line. e may be nil.
func (s *sockets) say(w *response, r *http.Request, e *eventStream, status int, text string) {
	if r.ContentLength != 0 && status >= 400 && hasConnection(r) {
		w.Header().Set("Connection", "close") // or net/http reads on before it answers
	}
	h := w.Header()
	s.allowCross(h, r, e)
	h["Cache-Control"] = noStore
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	h["Content-Type"] = textPlain
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strconv.Itoa(status)+" "+text+"\n") // a client that is gone misses it
}

// dismiss ends the connection of a client that leaves in good order.
func (s *sockets) dismiss(w *response, r *http.Request, a ask) {
	e, ok := s.streamOf(w, r, a.key)
	if !ok {
		return
	}
	e.Leave(websocket.CodeNormal, "", string(websocket.CauseClient))
	s.say(w, r, e, http.StatusNoContent, "")
}

// receive takes a message, and answers when its event has run.
func (s *site) receive(w *response, r *http.Request, v *visit, a ask) {
	all := s.sockets
	e, ok := all.streamOf(w, r, a.key)
	if !ok {
		return
	}
	if len(r.Header["Content-Encoding"]) > 0 {
		all.say(w, r, e, http.StatusUnsupportedMediaType, "a message has no Content-Encoding")
		return
	}
	if wait := e.overRate(); wait > 0 {
		all.log.Info("message rate over the limit", "site", all.site, "connection", e.c.id.String(), "addr", e.c.addr())
		w.Header().Set("Retry-After", retryAfter(wait))
		all.say(w, r, e, http.StatusTooManyRequests, "too many messages")
		return
	}
	m, err := s.readMessage(w, r)
	if errors.Is(err, errTooLong) {
		all.say(w, r, e, http.StatusRequestEntityTooLarge, "a message is at most "+strconv.FormatInt(all.maxMessage, 10)+" bytes")
		return
	}
	if err != nil {
		s.failBody(w, r, v, err)
		return
	}
	if !m.Binary && !utf8.Valid(m.Data) {
		all.say(w, r, e, http.StatusBadRequest, "text is not UTF-8; binary has Content-Type: application/octet-stream")
		return
	}
	var ran error
	if err := e.Handle(len(m.Data), func() { ran = all.runMessage(all.life, e.c, m) }); err != nil {
		ran = err
	}
	all.answerMessage(w, r, e, ran)
}

// readMessage reads the body of a request.
func (s *site) readMessage(w *response, r *http.Request) (websocket.Message, error) {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	m := websocket.Message{Binary: strings.EqualFold(strings.TrimSpace(kind), "application/octet-stream")}
	run := runs.Get().(*run)
	defer run.release()
	limit := s.sockets.maxMessage
	if limit == 0 {
		limit = s.maxBody
	}
	if err := run.body.read(w, r, limit, s.stall, s.minRate); err != nil {
		return m, err
	}
	body := run.body.reader()
	if body == nil {
		return m, nil
	}
	var err error
	m.Data, err = io.ReadAll(body)
	return m, err
}

// answerMessage says what became of a message, and closes a connection whose handler
// ran for too long.
func (s *sockets) answerMessage(w *response, r *http.Request, e *eventStream, err error) {
	status, text := http.StatusNoContent, ""
	switch {
	case err == nil:
	case errors.Is(err, eventstream.ErrClosed):
		status, text = http.StatusGone, textGone
	case errors.Is(err, eventstream.ErrFull):
		status, text = http.StatusServiceUnavailable, "too many messages wait"
	default:
		status = statusOf(err)
		text = http.StatusText(status)
	}
	switch {
	case errors.Is(err, phpbridge.ErrTimeout):
		e.Close(websocket.CodeInternal, "", websocket.CauseTimeout)
	case errors.Is(err, phpbridge.ErrClosed):
		e.Close(websocket.CodeGoingAway, "", websocket.CauseShutdown)
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	s.say(w, r, e, status, text)
}

// overRate returns 0, or how long the connection must wait to send another message.
func (e *eventStream) overRate() (wait time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.c.site.messages.take(&e.full)
}
