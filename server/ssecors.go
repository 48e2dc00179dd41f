package server

import (
	"net/http"
	"slices"
	"strings"
)

// A browser lets a page of another origin open a socket, and leaves it to the server
// to look at its Origin. What a page gets by requests it may read only when the server
// says so (WHATWG Fetch, "CORS protocol"). So allowed_origins, which lets sockets in,
// says it for event streams; without it connect may, and what it says holds for all
// requests of the connection.

// crossFields are what a script can say of other origins.
var crossFields = []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Vary"}

// crossHeader returns what connect says of other origins; nil: nothing.
func crossHeader(header http.Header) http.Header {
	if len(header["Access-Control-Allow-Origin"]) == 0 {
		return nil
	}
	h := http.Header{}
	for _, name := range crossFields {
		if values := header[name]; len(values) > 0 {
			h[name] = slices.Clone(values)
		}
	}
	return h
}

// listedOrigin returns the Origin of a request if allowed_origins lists it.
func (s *sockets) listedOrigin(r *http.Request) (origin string, ok bool) {
	sent := r.Header["Origin"]
	if len(sent) != 1 || !slices.ContainsFunc(s.allowedOrigins, func(o string) bool { return strings.EqualFold(o, sent[0]) }) {
		return "", false
	}
	return sent[0], true
}

// allowCross lets the page that sent the request read the answer. e may be nil.
func (s *sockets) allowCross(h http.Header, r *http.Request, e *eventStream) {
	if origin, ok := s.listedOrigin(r); ok {
		h["Access-Control-Allow-Origin"] = []string{origin}
		h["Access-Control-Allow-Credentials"] = []string{"true"}
		addVary(h, "Origin")
		return
	}
	if e == nil {
		return
	}
	for name, values := range e.cors {
		h[name] = slices.Clone(values)
	}
}

// answerPreflight tells a page of a listed origin that it may use event streams.
func (s *sockets) answerPreflight(w *response, r *http.Request) {
	h := w.Header()
	s.allowCross(h, r, nil)
	h["Access-Control-Allow-Methods"] = []string{"GET, POST, DELETE"}
	h["Access-Control-Allow-Headers"] = []string{"WS-Connection-Key, Last-Event-ID, Content-Type"}
	h["Access-Control-Max-Age"] = []string{"600"}
	w.WriteHeader(http.StatusNoContent)
}
