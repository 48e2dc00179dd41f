package server

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestValidateNamesTheKeyOfTLS(t *testing.T) {
	pair := newKeyPair(t, t.TempDir(), "a.example")
	with := func(change func(c *TLSConfig)) func(c *Config) {
		return func(c *Config) {
			c.Server.TLS.Cert, c.Server.TLS.Key = pair.cert, pair.key
			change(&c.Server.TLS)
		}
	}
	for _, test := range []struct {
		key, text string
		spoil     func(c *Config)
	}{
		{"server.listen", "is empty", func(c *Config) { c.Server.Listen = nil }},
		{"server.listen", "twice", func(c *Config) { c.Server.Listen = Addresses{":80", ":80"} }},
		{"server.tls.listen", "port", with(func(c *TLSConfig) { c.Listen = Addresses{":80", ":https"} })},
		{"server.tls.listen", "needs a certificate", func(c *Config) { c.Server.TLS.Listen = Addresses{":443"} }},
		{"server.tls.redirect_http", "no plain listener", with(func(c *TLSConfig) { c.RedirectHTTP = true })},
		{"server.tls.redirect_port", "not a port", with(func(c *TLSConfig) { c.RedirectPort = 70000 })},
		{"server.tls.redirect_port", "less than 0", with(func(c *TLSConfig) { c.RedirectPort = -1 })},
		{"server.tls.key", "needs a certificate: name its file in server.tls.cert", with(func(c *TLSConfig) { c.Cert = "" })},
		{"server.tls.cert", "needs a private key: name its file in server.tls.key", with(func(c *TLSConfig) { c.Key = "" })},
		{"server.tls.min_version", "1.1", with(func(c *TLSConfig) { c.MinVersion = "1.1" })},
		{"server.tls.domains", "wildcard", with(func(c *TLSConfig) { c.Domains = []string{"*.a.example"} })},
		{"server.tls.domains", "a_b", with(func(c *TLSConfig) { c.Domains = []string{"a_b.example"} })},
		{"server.tls.domains", "localhost", with(func(c *TLSConfig) { c.Domains = []string{"localhost"} })},
		{"server.tls.domains", "127.0.0.1", with(func(c *TLSConfig) { c.Domains = []string{"127.0.0.1"} })},
		{"server.tls.email", "nobody", with(func(c *TLSConfig) { c.Domains, c.Email = []string{"a.example"}, "nobody" })},
		{"server.tls.cache_dir", "is empty", with(func(c *TLSConfig) { c.Domains, c.CacheDir = []string{"a.example"}, "" })},
		{"server.tls.staging", "another authority", with(func(c *TLSConfig) {
			c.Domains, c.Staging, c.ACMEDirectory = []string{"a.example"}, true, "https://acme.example/directory"
		})},
		{"server.tls.acme_directory", "http://", with(func(c *TLSConfig) { c.Domains, c.ACMEDirectory = []string{"a.example"}, "http://acme.example/" })},
		{"server.tls.acme_ca", "no certificate", with(func(c *TLSConfig) { c.Domains, c.ACMECA = []string{"a.example"}, pair.key })},
		{"server.tls.cert_dir", "does not exist", with(func(c *TLSConfig) { c.CertDir = "/nowhere" })},
		{"server.tls.acme_sites", "no sites", func(c *Config) { c.Server.TLS.ACMESites = true }},
		{"site[1].tls.acme", "no authority", func(c *Config) {
			yes := true
			c.Sites = []SiteConfig{{Names: []string{"localhost"}, Root: c.Server.DocumentRoot, TLS: SiteTLSConfig{ACME: &yes}}}
			c.Server.TLS.CacheDir = "/var/lib/certs"
		}},
		{"server.tls.key", "below the document root", with(func(*TLSConfig) {})},
		{"server.tls.cache_dir", "below the document root", func(c *Config) { c.Server.TLS.Domains = []string{"a.example"} }},
	} {
		c := goodConfig(t)
		test.spoil(&c)
		switch {
		case test.text == "below the document root" && test.key == "server.tls.key":
			c.Server.DocumentRoot = filepath.Dir(pair.key)
		case test.text == "below the document root":
			c.Server.TLS.CacheDir = filepath.Join(c.Server.DocumentRoot, "x", "certs")
		}
		err := c.Validate()
		var k *KeyError
		if !errors.As(err, &k) {
			t.Errorf("Validate of a bad %s = %v, want a *KeyError", test.key, err)
			continue
		}
		if k.Key != test.key || !strings.Contains(k.Text, test.text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Validate of a bad %s = %q, want one line that says %q", test.key, err, test.text)
		}
	}
}

func TestValidateAcceptsTLS(t *testing.T) {
	pair := newKeyPair(t, t.TempDir(), "a.example")
	for name, change := range map[string]func(c *Config){
		"a certificate": func(c *Config) { c.Server.TLS.Cert, c.Server.TLS.Key = pair.cert, pair.key },
		"a redirect": func(c *Config) {
			c.Server.TLS.Cert, c.Server.TLS.Key, c.Server.TLS.Listen, c.Server.TLS.RedirectHTTP = pair.cert, pair.key, Addresses{":443"}, true
		},
		"ACME": func(c *Config) {
			t := &c.Server.TLS
			t.Domains, t.Listen, t.Email = []string{"a.example", "WWW.A.Example", "xn--bcher-kva.example", "1.example"}, Addresses{":443"}, "admin@a.example"
		},
		"ACME elsewhere": func(c *Config) {
			t := &c.Server.TLS
			t.Domains, t.ACMEDirectory, t.ACMECA = []string{"a.example"}, "https://acme.example:14000/dir", pair.cert
		},
	} {
		c := goodConfig(t)
		c.Server.TLS.CacheDir = t.TempDir()
		change(&c)
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNetworkOfAnAddress(t *testing.T) {
	both := Addresses{"0.0.0.0:80", "[::]:80", "[::]:81", ":82", "127.0.0.1:83", "[::1]:84", "localhost:85"}
	for i, want := range []string{"tcp4", "tcp6", "tcp", "tcp", "tcp4", "tcp", "tcp"} {
		if got := both.network(both[i]); got != want {
			t.Errorf("%s is opened as %s, want %s", both[i], got, want)
		}
	}
}

func TestAddressesAreOneOrAList(t *testing.T) {
	for _, test := range []struct {
		in   any
		want string
	}{
		{":80", ":80"}, {"", ""}, {[]any{}, ""}, {[]any{":80", "[::1]:81"}, ":80, [::1]:81"},
		{int64(80), "error"}, {[]any{int64(80)}, "error"}, {nil, "error"},
	} {
		a := Addresses{"before"}
		got := "error"
		if err := a.UnmarshalTOML(test.in); err == nil {
			got = a.String()
		} else if a.String() != "before" {
			t.Errorf("%v: an error changed the addresses to %q", test.in, a)
		}
		if got != test.want {
			t.Errorf("%v gives %q, want %q", test.in, got, test.want)
		}
	}
}
