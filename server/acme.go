package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
)

// acmeProtocol is what an authority asks for by ALPN to check a name (RFC 8737 §3).
const acmeProtocol = "acme-tls/1"

// An acme obtains certificates and renews them. certmagic does the work; here is
// what it needs to know. Its methods may be called from any goroutine.
type acme struct {
	domains []string   // obtained from the start on
	dir     *acmeSites // obtained when they are asked for
	log     *slog.Logger
	cache   *certmagic.Cache
	config  *certmagic.Config
	issuer  *certmagic.ACMEIssuer
}

// newACME returns what obtains certificates for domains, in lower case, and later
// for sites. Nothing is asked for before run. The ports are those of our listeners,
// which answer the challenges; 0 means that there is none.
func newACME(c TLSConfig, domains []string, httpPort, tlsPort int, log *slog.Logger) (*acme, error) {
	a := &acme{domains: domains, log: log}
	a.dir = newACMESites(a)
	if err := os.MkdirAll(c.CacheDir, 0o700); err != nil {
		return nil, fmt.Errorf("server.tls.cache_dir: %w", err)
	}
	var roots *x509.CertPool // the system's
	if c.ACMECA != "" {
		var err error
		if roots, err = loadRoots(c.ACMECA); err != nil {
			return nil, fmt.Errorf("server.tls.acme_ca: %w", err)
		}
	}
	logger := zap.New(zapCore{log})
	a.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return a.config, nil },
		Logger:           logger,
	})
	first := "" // for who asks for no name, or for one that there is no certificate for
	if len(domains) > 0 {
		first = domains[0]
	}
	a.config = certmagic.New(a.cache, certmagic.Config{
		Storage:            &certmagic.FileStorage{Path: c.CacheDir},
		DefaultServerName:  first,
		FallbackServerName: first,
		OnEvent:            a.event,
		ShouldEmitFunc:     func(event string) bool { return slices.Contains(acmeEvents, event) },
		Logger:             logger,
	})
	a.issuer = certmagic.NewACMEIssuer(a.config, certmagic.ACMEIssuer{
		CA:                      authorityOf(c),
		Email:                   c.Email,
		Agreed:                  true,
		TrustedRoots:            roots,
		DisableHTTPChallenge:    httpPort == 0,
		DisableTLSALPNChallenge: tlsPort == 0,
		AltHTTPPort:             httpPort, // it finds that we listen there, and leaves it to us
		AltTLSALPNPort:          tlsPort,
		Logger:                  logger,
	})
	a.config.Issuers = []certmagic.Issuer{a.issuer}
	return a, nil
}

// authorityOf returns the URL of the authority's directory.
func authorityOf(c TLSConfig) string {
	switch {
	case c.ACMEDirectory != "":
		return c.ACMEDirectory
	case c.Staging:
		return certmagic.LetsEncryptStagingCA
	}
	return certmagic.LetsEncryptProductionCA
}

// What certmagic tells: a new certificate, renewed ones as well; one that is ready to
// be shown; one that could not be obtained, which is tried again.
const (
	eventObtained = "cert_obtained"
	eventReady    = "cached_managed_cert"
	eventFailed   = "cert_failed"
)

var acmeEvents = []string{eventObtained, eventReady, eventFailed}

// event logs a new certificate, and tells those who wait for one. Failures reach the
// log by zapCore.
func (a *acme) event(_ context.Context, event string, data map[string]any) error {
	switch event {
	case eventObtained:
		a.log.Info("certificate obtained", "name", data["identifier"], "renewal", data["renewal"])
	case eventReady:
		names, _ := data["sans"].([]string)
		a.dir.settle(names...)
	case eventFailed:
		name, _ := data["identifier"].(string)
		a.dir.settle(name)
	}
	return nil
}

// run keeps the certificates obtained and fresh until ctx ends. Failures are
// logged and tried again, later and later; certmagic does so for 30 days.
func (a *acme) run(ctx context.Context) {
	a.obtain(ctx, a.domains...)
	a.dir.run(ctx)
	a.close()
	certmagic.CleanUpOwnLocks(context.WithoutCancel(ctx), a.config.Logger)
}

// obtain loads or obtains certificates and keeps them fresh, in the background.
func (a *acme) obtain(ctx context.Context, names ...string) {
	if err := a.config.ManageAsync(ctx, names); err != nil {
		a.log.Error("ACME does not start", "names", names, "err", err)
	}
}

// drop ends the renewal of certificates.
func (a *acme) drop(names []string) {
	var subjects []certmagic.SubjectIssuer
	for _, name := range names {
		subjects = append(subjects, certmagic.SubjectIssuer{Subject: name})
	}
	a.cache.RemoveManaged(subjects)
}

// close ends what newACME started, when run has not been called.
func (a *acme) close() { a.cache.Stop() } // waits for what renews

// manages reports whether a certificate is obtained here for a name, which may
// have a port.
func (a *acme) manages(host string) bool {
	name, ok := hostName(host)
	return ok && (slices.Contains(a.domains, name) || a.dir.asked(name))
}

// names returns the names for which certificates are obtained here, so far.
func (a *acme) names() []string { return slices.Concat(a.domains, a.dir.names()) }

// expiry returns when the certificate of a domain expires, in Unix time; 0 when
// there is none.
func (a *acme) expiry(domain string) float64 {
	latest := 0.0
	for _, cert := range a.cache.AllMatchingCertificates(domain) {
		latest = max(latest, float64(cert.Leaf.NotAfter.Unix()))
	}
	return latest
}

// isChallenge reports whether it is an authority that asks.
func isChallenge(hello *tls.ClientHelloInfo) bool {
	return len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == acmeProtocol
}

// answer answers an authority's request for HTTP-01. It reports false when the
// request is none, or not one that we asked for.
func (a *acme) answer(w *response, r *http.Request) bool {
	return a != nil && strings.HasPrefix(r.URL.Path, challengePath) && a.manages(r.Host) && a.issuer.HandleHTTPChallenge(w, r)
}
