package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHTTP2ConfigurationErrorsNameTheKey(t *testing.T) {
	for n, want := range map[int]string{0: "at least 1", -1: "less than 0", maxHTTP2Streams + 1: "at most 100000"} {
		c := goodConfig(t)
		c.Server.HTTP2.MaxStreams = n
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), "server.http2.max_streams: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("max_streams = %d: %v, want one that says %q", n, err, want)
		}
	}
}

func TestHTTP3ConfigurationErrorsNameTheKey(t *testing.T) {
	readable := filepath.Join(t.TempDir(), "readable")
	if err := os.WriteFile(readable, []byte(strings.Repeat("0", 64)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		key  string
		set  func(*HTTP3Config)
		want string
	}{
		{"listen", func(c *HTTP3Config) { c.Listen = Addresses{"nowhere"} }, "is not an address"},
		{"alt_svc_port", func(c *HTTP3Config) { c.AltSvcPort = 65536 }, "is not a port"},
		{"alt_svc_max_age", func(c *HTTP3Config) { c.AltSvcMaxAge = -1 }, "less than 0"},
		{"handshake_timeout", func(c *HTTP3Config) { c.HandshakeTimeout = Duration(time.Millisecond) }, "at least 1 second"},
		{"max_streams", func(c *HTTP3Config) { c.MaxStreams = 0 }, "at least 1"},
		{"max_window", func(c *HTTP3Config) { c.MaxWindow = 1000 }, "at least 64KiB"},
		{"sockets", func(c *HTTP3Config) { c.Sockets = 0 }, "1 to 64"},
		{"sockets", func(c *HTTP3Config) { c.Sockets = 65 }, "1 to 64"},
		{"key_file", func(c *HTTP3Config) { c.KeyFile = readable }, "chmod 600"},
		{"key_file", func(c *HTTP3Config) { c.KeyFile = "/nowhere/quic.keys" }, "directory does not exist"},
	} {
		c := DefaultConfig()
		test.set(&c.Server.HTTP3)
		err := c.Validate()
		var at *KeyError
		if !errors.As(err, &at) || at.Key != "server.http3."+test.key || !strings.Contains(at.Text, test.want) {
			t.Errorf("%s: got %v, want an error with %q", test.key, err, test.want)
		}
	}
	c := DefaultConfig()
	c.Server.HTTP3.KeyFile = filepath.Join(t.TempDir(), "quic.keys") // is made when the server starts
	if err := c.Validate(); err != nil {
		t.Errorf("a key file that is not there yet: %v", err)
	}
	if _, err := os.Stat(c.Server.HTTP3.KeyFile); err == nil {
		t.Error("a check made the key file")
	}
}
