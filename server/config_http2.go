package server

// HTTP2Config is [server.http2]: HTTP/2 (RFC 9113), over TLS and by h2c.
type HTTP2Config struct {
	// MaxStreams is how many requests of one connection are answered at a time;
	// WebSockets on it count as long as they are open. More are refused
	// (REFUSED_STREAM), and a client that goes on regardless is cut. It must be
	// at least 1.
	MaxStreams int `toml:"max_streams"`
}

func defaultHTTP2() HTTP2Config { return HTTP2Config{MaxStreams: 128} }

func (k *checks) http2(c HTTP2Config) {
	if c.MaxStreams == 0 {
		k.add("server.http2.max_streams", "0 lets no request in; want at least 1")
	}
	if c.MaxStreams > maxHTTP2Streams {
		k.add("server.http2.max_streams", "%d is too many; want at most %d", c.MaxStreams, maxHTTP2Streams)
	}
}

// maxHTTP2Streams keeps what one connection may hold, about a goroutine and a few
// buffers each, within reason.
const maxHTTP2Streams = 100_000
