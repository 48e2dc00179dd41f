package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// An admin answers those who run the server, on a listener of its own that stays
// until everything else has ended.
type admin struct {
	listener net.Listener
	http     *http.Server
}

// listenAdmin opens the listener; it is nil when there is none.
func listenAdmin(c AdminConfig) (net.Listener, error) {
	if c.Listen == "" {
		return nil, nil
	}
	return listen("tcp", c.Listen, "[server.admin] listen")
}

// openAdmin takes the listener over. What is there now is no longer among the
// server's own endpoints for clients, but for health and readiness.
func (s *Server) openAdmin(l net.Listener) {
	if l == nil {
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_ephpm/health", func(w http.ResponseWriter, _ *http.Request) { s.health(w) })
	mux.HandleFunc("GET /_ephpm/ready", func(w http.ResponseWriter, _ *http.Request) { s.ready(w) })
	mux.HandleFunc("GET /_ephpm/requests", s.requests)
	mux.HandleFunc("GET /_ephpm/workers", s.workers)
	if s.metrics != nil {
		mux.Handle("GET "+s.metricsPath, s.metrics.endpoint)
		s.metricsPath = ""
	}
	if s.config.Server.Admin.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	s.admin = &admin{l, &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(httpLog{s.log.Handler()}, slog.LevelDebug),
	}}
}

// serve answers until ctx ends.
func (a *admin) serve(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = a.http.Close() }) // nobody waits for it
	defer stop()
	_ = a.http.Serve(a.listener) // ends by that
}
