package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A keyPair names the files of one certificate and the names that it is for.
type keyPair struct {
	// names are host names in lower case, or wildcards such as "*.example.com",
	// which stand for one label. None means that it is only for who asks for a
	// name that no other is for.
	names     []string
	cert, key string // files
}

// keyPairs returns the certificates of a checked configuration, the server's own
// first.
func keyPairs(c Config) []keyPair {
	var pairs []keyPair
	if t := c.Server.TLS; t.Cert != "" {
		pairs = append(pairs, keyPair{cert: t.Cert, key: t.Key})
	}
	for _, s := range c.Sites {
		if t := s.TLS; t.Cert != "" {
			pairs = append(pairs, keyPair{names: s.Names, cert: t.Cert, key: t.Key})
		}
	}
	return pairs
}

// certificates are those that the server shows, by the name that a client asks
// for (SNI, RFC 6066 §3). They are the same for TLS over TCP and for QUIC. Its
// methods may be called from any goroutine.
type certificates struct {
	log        *slog.Logger
	minVersion uint16
	protocols  []string // on top of those that the caller of tlsConfig speaks
	current    atomic.Pointer[certIndex]

	mu      sync.Mutex // guards the following; held while files are read
	entries []*certEntry
}

// A certEntry is a certificate and what its files were when they were looked at.
type certEntry struct {
	keyPair
	loaded *tls.Certificate
	stamp  stamp // of the files that were read last, whether they could be used or not
	seen   stamp // at the last look
}

// A certIndex finds a certificate. It is never changed.
type certIndex struct {
	first *tls.Certificate // for every other name; nil when there are no certificates
	names map[string]*tls.Certificate
}

// newCertificates loads the certificates. Of two for one name the earlier wins;
// the first is also for every name that none is for.
func newCertificates(c TLSConfig, pairs []keyPair, log *slog.Logger) (*certificates, error) {
	cs := &certificates{log: log, minVersion: tlsVersions[c.MinVersion]}
	for _, p := range pairs {
		e := &certEntry{keyPair: p}
		e.stamp = stampOf(p)
		e.seen = e.stamp
		var err error
		if e.loaded, err = loadKeyPair(p.cert, p.key); err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
		cs.warnOfAge(e)
		cs.entries = append(cs.entries, e)
	}
	cs.indexLocked() // nobody else knows it yet
	return cs, nil
}

// tlsConfig returns what a listener needs. protos is what it speaks, best first
// (ALPN, RFC 7301).
func (c *certificates) tlsConfig(protos ...string) *tls.Config {
	return &tls.Config{
		MinVersion:     c.minVersion,
		NextProtos:     append(protos, c.protocols...),
		GetCertificate: c.GetCertificate,
	}
}

// errNoCertificate ends a handshake for which there is nothing to show.
var errNoCertificate = errors.New("server: no certificate")

// GetCertificate is for tls.Config.
func (c *certificates) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if cert := c.current.Load().find(hello.ServerName); cert != nil {
		return cert, nil
	}
	return nil, errNoCertificate
}

// find returns the certificate for a name: that of the name, of a wildcard, or
// the first.
func (x *certIndex) find(name string) *tls.Certificate {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if cert := x.names[name]; cert != nil {
		return cert
	}
	if _, parent, ok := strings.Cut(name, "."); ok {
		if cert := x.names["*."+parent]; cert != nil {
			return cert
		}
	}
	return x.first
}

// indexLocked makes the index anew.
func (c *certificates) indexLocked() {
	x := &certIndex{names: map[string]*tls.Certificate{}}
	for _, e := range c.entries {
		if x.first == nil {
			x.first = e.loaded
		}
		for _, name := range e.names {
			if x.names[name] == nil {
				x.names[name] = e.loaded
			}
		}
	}
	c.current.Store(x)
}

// warnOfAge tells of a certificate that clients will refuse.
func (c *certificates) warnOfAge(e *certEntry) {
	now := time.Now()
	switch leaf := e.loaded.Leaf; {
	case now.After(leaf.NotAfter):
		c.log.Warn("certificate has expired", "cert", e.cert, "not_after", leaf.NotAfter)
	case now.Before(leaf.NotBefore):
		c.log.Warn("certificate is not valid yet", "cert", e.cert, "not_before", leaf.NotBefore)
	}
}
