package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A keyPair names the files of one certificate and the names that it is for.
type keyPair struct {
	// names are host names and wildcards as those of a site. None means that it is
	// only for who asks for a name that no other is for.
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
	acme       *acme // nil: all certificates are in files
	current    atomic.Pointer[certIndex]
	failures   atomic.Uint64 // changed files that could not be used
	dir        string        // of more certificates; may be empty

	mu       sync.Mutex // guards the following; held while files are read
	entries  []*certEntry
	found    []*certEntry // those of dir, by name
	troubled bool         // dir could not be read; told
}

// A certEntry is a certificate and what its files were when they were looked at.
type certEntry struct {
	keyPair
	loaded *tls.Certificate // nil for one of dir that could not be used yet
	stamp  stamp            // of the files that were read last, whether they could be used or not
	seen   stamp            // at the last look
}

// A certIndex finds a certificate. It is never changed.
type certIndex struct {
	first *tls.Certificate // for every other name; nil when there are no certificates
	names nameTable[*tls.Certificate]
}

// newCertificates loads the certificates. The first is also for every name that none
// is for. a obtains others, which beat the first for their names; it may be nil.
func newCertificates(c TLSConfig, pairs []keyPair, a *acme, log *slog.Logger) (*certificates, error) {
	cs := &certificates{log: log, minVersion: tlsVersions[c.MinVersion], acme: a, dir: c.CertDir}
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
	cs.listLocked() // nobody else knows any of it yet
	for _, e := range cs.found {
		cs.takeUpLocked(e)
	}
	cs.indexLocked()
	return cs, nil
}

// openCertificates returns those of a checked configuration, or nil when nothing
// speaks TLS.
func openCertificates(c Config, endpoints []endpoint, log *slog.Logger) (*certificates, error) {
	if !c.speaksTLS() {
		return nil, nil
	}
	var a *acme
	if c.usesACME() {
		var err error
		if a, err = newACME(c.Server.TLS, c.acmeDomains(), listenPort(endpoints, false), listenPort(endpoints, true), log); err != nil {
			return nil, err
		}
	}
	cs, err := newCertificates(c.Server.TLS, keyPairs(c), a, log)
	if err != nil && a != nil {
		a.close()
	}
	return cs, err
}

// tcpConfig returns what listeners for TLS over TCP need.
func (c *certificates) tcpConfig() *tls.Config {
	protos := []string{"h2", "http/1.1", "http/1.0"} // the last from curl --http1.0
	if c.acme != nil {
		protos = append(protos, acmeProtocol)
	}
	return c.tlsConfig(protos...)
}

// run takes up changed files and keeps certificates obtained, until ctx ends.
func (c *certificates) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	if c.acme != nil {
		wg.Go(func() { c.acme.run(ctx) })
	}
	c.watch(ctx)
}

// close is for certificates that run was not called for. They may be nil.
func (c *certificates) close() {
	if c != nil && c.acme != nil {
		c.acme.close()
	}
}

// tlsConfig returns what a listener needs. protos is what it speaks, best first
// (ALPN, RFC 7301).
func (c *certificates) tlsConfig(protos ...string) *tls.Config {
	return &tls.Config{
		MinVersion:     c.minVersion,
		NextProtos:     protos,
		GetCertificate: c.GetCertificate,
	}
}

// errNoCertificate ends a handshake for which there is nothing to show.
var errNoCertificate = errors.New("server: no certificate")

// GetCertificate is for tls.Config.
func (c *certificates) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.acme != nil && isChallenge(hello) {
		return c.acme.config.GetCertificate(hello)
	}
	files := c.current.Load()
	if cert := files.find(hello.ServerName); cert != nil {
		return cert, nil
	}
	if c.acme != nil {
		c.acme.dir.await(hello)
	}
	if c.acme != nil && (files.first == nil || c.acme.manages(hello.ServerName)) {
		if cert, err := c.acme.config.GetCertificate(hello); err == nil || files.first == nil {
			return cert, err
		}
	}
	if files.first == nil {
		return nil, errNoCertificate
	}
	return files.first, nil
}

// find returns the certificate for a name, or nil.
func (x *certIndex) find(sni string) *tls.Certificate {
	name, ok := hostName(sni)
	if !ok {
		return nil
	}
	cert, _ := x.names.find(name)
	return cert
}

// indexLocked makes the index anew.
func (c *certificates) indexLocked() {
	x := new(certIndex)
	for _, e := range slices.Backward(slices.Concat(c.entries, c.found)) { // the earlier one wins
		if e.loaded == nil {
			continue
		}
		x.first = e.loaded
		for _, name := range e.names {
			x.names.set(name, e.loaded)
		}
	}
	c.current.Store(x)
}

// loaded returns the certificates of files.
func (c *certificates) loaded() []*tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*tls.Certificate
	for _, e := range slices.Concat(c.entries, c.found) {
		if e.loaded != nil {
			all = append(all, e.loaded)
		}
	}
	return all
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
