package server

import (
	"crypto/tls"
	"net/http"
	"strings"
	"time"

	"ephpm/websocket"
)

// An entry is what the access log says of one request, or of the end of a socket.
type entry struct {
	at   time.Time // the header was there, or the socket ended
	took time.Duration

	addr, port  string
	user        string // whom the client claims to be, by basic authentication
	method      string
	target      string // as the client wrote it
	proto, host string
	referer     string
	agent       string
	tls         string // the version, such as "TLS 1.3"; empty without

	by       handler
	status   int
	bytes    int64 // of the body, as sent to net/http
	cut      bool  // the answer is not whole
	id, site string
	queued   time.Duration // for a worker
	ran      time.Duration // in it

	socket *websocket.Closed // nil for a request
}

// clientClosed is the status of a request whose client left before the answer, as
// other servers log it.
const clientClosed = 499

// A trail is what a request leaves for its entry on its way.
type trail struct {
	id, site    string
	access      *accessLog // where it goes; nil: nowhere
	queued, ran time.Duration
	body        int64 // bytes of the request body that were read
}

// entryOf describes a request that was answered.
func entryOf(w *response, r *http.Request, by handler, start, now time.Time) entry {
	e := requestEntry(r)
	e.at, e.took = start, now.Sub(start)
	e.by, e.status, e.bytes, e.cut = by, w.status, w.bytes, w.cut
	if e.status == 0 {
		e.status = clientClosed
	}
	if r.Method == http.MethodHead {
		e.bytes = 0 // what was written went nowhere
	}
	e.id, e.site, e.queued, e.ran = w.trail.id, w.trail.site, w.trail.queued, w.trail.ran
	return e
}

// requestEntry describes who asked for what.
func requestEntry(r *http.Request) entry {
	p := peerOf(r)
	e := entry{
		addr: p.addr, port: p.port, method: r.Method, target: r.RequestURI, proto: r.Proto, host: r.Host,
		referer: first(r.Header["Referer"]), agent: first(r.Header["User-Agent"]),
	}
	if len(r.Header["Authorization"]) > 0 {
		e.user, _, _ = r.BasicAuth()
	}
	if r.TLS != nil {
		e.tls = tls.VersionName(r.TLS.Version)
	}
	return e
}

// kept returns an entry that can outlive its request without the request's header.
func (e entry) kept() *entry {
	for _, s := range []*string{&e.user, &e.method, &e.target, &e.host, &e.referer, &e.agent} {
		*s = strings.Clone(*s)
	}
	return &e
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
