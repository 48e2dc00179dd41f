package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ephpm/quic"
)

// HTTP3Config is [server.http3]: HTTP/3 over QUIC (RFC 9114, RFC 9000) beside
// TLS. Without TLS all of it has no effect.
type HTTP3Config struct {
	// Enabled speaks HTTP/3 wherever there is TLS, and tells clients of it.
	Enabled bool `toml:"enabled"`
	// Listen are the UDP addresses. Empty means those of the listeners for TLS.
	Listen Addresses `toml:"listen"`
	// AltSvcMaxAge is how long clients may remember that there is HTTP/3 (RFC
	// 7838 §3.1). Zero means that they are not told.
	AltSvcMaxAge Duration `toml:"alt_svc_max_age"`
	// AltSvcPort is the port that clients are told, for a router or container
	// that maps ports. Zero means the one that they used if it is one of
	// Listen, else the first of Listen.
	AltSvcPort int `toml:"alt_svc_port"`
	// EarlyData lets clients that come back send requests before the handshake
	// is complete (0-RTT). Somebody who recorded such a request can send it
	// again, so only those with safe methods are run at once, with the header
	// "Early-Data: 1" (RFC 8470); others wait.
	EarlyData bool `toml:"early_data"`
	// HandshakeTimeout ends a handshake that takes longer. It must be at least
	// one second.
	HandshakeTimeout Duration `toml:"handshake_timeout"`
	// MaxStreams is how many requests of one connection are answered at a time.
	// It must be at least 1.
	MaxStreams int `toml:"max_streams"`
	// MaxWindow is how many bytes of request bodies a connection may have sent
	// that nobody has read. It begins with less and grows when a client is fast.
	// It must be at least 64 KiB.
	MaxWindow Size `toml:"max_window"`
	// RetryAbove is how many handshakes may be under way before new clients
	// must prove their address first (RFC 9000 §8.1.2), which costs them one
	// round trip. Zero means that all must.
	RetryAbove int `toml:"retry_above"`
	// Sockets is how many UDP sockets share the address, each with a goroutine
	// of its own that reads it. It must be 1 to quic.MaxSockets.
	Sockets int `toml:"sockets"`
	// KeyFile is a file, mode 0600, of the keys of address tokens, stateless
	// resets and session tickets. It is made if there is none. With it clients
	// resume and dead connections end after a restart, and on other servers
	// that have the same file. A relative path in a configuration file starts at
	// that file's directory. Empty means quic.keys in TLSConfig.CacheDir with
	// ACME, else keys that end with the process.
	KeyFile string `toml:"key_file"`
}

func defaultHTTP3() HTTP3Config {
	return HTTP3Config{
		Enabled:          true,
		AltSvcMaxAge:     Duration(24 * time.Hour),
		HandshakeTimeout: Duration(10 * time.Second),
		MaxStreams:       128,
		MaxWindow:        6 << 20,
		RetryAbove:       100,
		Sockets:          1,
	}
}

// minWindow is the least MaxWindow, in bytes.
const minWindow = 64 << 10

func (k *checks) http3(c HTTP3Config) {
	k.addresses("server.http3.listen", c.Listen)
	if c.AltSvcPort > 65535 {
		k.add("server.http3.alt_svc_port", "%d is not a port; want a number from 0 to 65535, 0 for the one of listen", c.AltSvcPort)
	}
	if d := c.HandshakeTimeout; d >= 0 && d < Duration(time.Second) {
		k.add("server.http3.handshake_timeout", "%v is too short; want at least 1 second", d)
	}
	if c.MaxStreams == 0 {
		k.add("server.http3.max_streams", "0 lets no request in; want at least 1")
	}
	if n := c.MaxWindow; n >= 0 && n < minWindow {
		k.add("server.http3.max_window", "%v is too little; want at least %v", n, Size(minWindow))
	}
	if c.Sockets == 0 || c.Sockets > quic.MaxSockets {
		k.add("server.http3.sockets", "%d is not a number of sockets; want 1 to %d", c.Sockets, quic.MaxSockets)
	}
	k.keyFile(c.KeyFile)
}

// keyFile checks the file, which need not be there yet.
func (k *checks) keyFile(file string) {
	const key = "server.http3.key_file"
	if file == "" {
		return
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
			k.add(key, "%q cannot be made: its directory does not exist", file)
		}
		return
	}
	if _, err := quic.LoadKeys(file); err != nil {
		k.add(key, "%v", err)
	}
}
