package server

import (
	"log/slog"
	"net/http"
	"time"
)

// newHTTPServer returns the net/http side of the server.
func newHTTPServer(c ServerConfig, h http.Handler, conns *connections, trusted proxies, log *slog.Logger) *http.Server {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: time.Duration(c.Timeouts.HeaderRead),
		IdleTimeout:       idleTimeout(c),
		// net/http reads 4 KiB more than it is told.
		MaxHeaderBytes: max(1, int(c.Request.MaxHeaderSize)-4096),
		ConnContext:    trusted.connContext,
		ConnState:      conns.track,
		Protocols:      protocols(c.H2C),
		HTTP2:          http2Limits(c),
		ErrorLog:       slog.NewLogLogger(httpLog{log.Handler()}, slog.LevelDebug),
	}
	s.RegisterOnShutdown(conns.closeFresh)
	return s
}

// protocols are what listeners speak; those for TLS as the client wishes.
func protocols(h2c bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(h2c)
	return p
}

// http2Limits is what a client may do on one connection of HTTP/2. A browser
// never has so many requests under way; who resets requests while they run has
// no more of them than that either (CVE-2023-44487), and net/http closes the
// connection of one that lets more than four times as many wait.
func http2Limits(c ServerConfig) *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams: c.HTTP2.MaxStreams,
		MaxReadFrameSize:     16 << 10, // the least (RFC 9113 §4.2): a frame is held in memory
		WriteByteTimeout:     time.Duration(c.Timeouts.Idle),
	}
}

// idleTimeout translates zero, "never": net/http would fall back to its header
// timeout.
func idleTimeout(c ServerConfig) time.Duration {
	if c.Timeouts.Idle == 0 {
		return -1
	}
	return time.Duration(c.Timeouts.Idle)
}
