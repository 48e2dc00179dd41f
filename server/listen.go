package server

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// newHTTPServer returns the net/http side of the server.
func newHTTPServer(c ServerConfig, h http.Handler, trusted proxies, log *slog.Logger) *http.Server {
	conns := &fresh{conns: map[net.Conn]struct{}{}}
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: time.Duration(c.Timeouts.HeaderRead),
		IdleTimeout:       idleTimeout(c),
		// net/http reads 4 KiB more than it is told.
		MaxHeaderBytes: max(1, int(c.Request.MaxHeaderSize)-4096),
		ConnContext:    trusted.connContext,
		ConnState:      conns.track,
		ErrorLog:       slog.NewLogLogger(httpLog{log.Handler()}, slog.LevelDebug),
	}
	s.RegisterOnShutdown(conns.close)
	return s
}

// idleTimeout translates zero, "never": net/http would fall back to its header
// timeout.
func idleTimeout(c ServerConfig) time.Duration {
	if c.Timeouts.Idle == 0 {
		return -1
	}
	return time.Duration(c.Timeouts.Idle)
}

// splitHostPort splits at the last colon that is not part of an IPv6 address.
// Brackets stay. It takes anything: what has no port is all host.
func splitHostPort(s string) (host, port string) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || strings.IndexByte(s[i:], ']') >= 0 {
		return s, ""
	}
	if s[0] != '[' && strings.IndexByte(s, ':') != i {
		return s, "" // an IPv6 address without brackets
	}
	return s[:i], s[i+1:]
}

// fresh holds the connections that have not sent a byte. A browser opens such
// in advance, and http.Server.Shutdown would wait five seconds for each.
type fresh struct {
	n     atomic.Int64 // len(conns), so that busy connections need no lock
	mu    sync.Mutex   // guards the following
	conns map[net.Conn]struct{}
}

// track is http.Server.ConnState.
func (f *fresh) track(c net.Conn, state http.ConnState) {
	if state == http.StateNew {
		f.mu.Lock()
		f.conns[c] = struct{}{}
		f.n.Store(int64(len(f.conns)))
		f.mu.Unlock()
		return
	}
	if state == http.StateIdle || f.n.Load() == 0 {
		return
	}
	f.mu.Lock()
	delete(f.conns, c)
	f.n.Store(int64(len(f.conns)))
	f.mu.Unlock()
}

// close closes them.
func (f *fresh) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = c.Close() // nothing was said on it
	}
}
