package server

import (
	"crypto/x509"
	"errors"
	"net/mail"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/certmagic"
)

// usesACME reports whether certificates are obtained.
func (c Config) usesACME() bool {
	return len(c.acmeDomains()) > 0 || c.Server.TLS.ACMESites && c.Server.SitesDir != ""
}

// acmeDomains returns the names for which certificates are obtained from the start on,
// in lower case, each once.
func (c Config) acmeDomains() []string {
	var names []string
	add := func(more []string) {
		for _, name := range more {
			if name = strings.ToLower(name); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	add(c.Server.TLS.Domains)
	for _, s := range c.Sites {
		if s.TLS.obtains(c.Server.TLS.ACMESites) {
			add(s.publicNames())
		}
	}
	return names
}

// obtains reports whether the names of a site get certificates by ACME; byDefault is
// [server.tls] acme_sites.
func (t SiteTLSConfig) obtains(byDefault bool) bool {
	if t.ACME != nil {
		return *t.ACME
	}
	return byDefault && t.Cert == ""
}

// publicNames are the names of the site that an authority may certify.
func (s SiteConfig) publicNames() (names []string) {
	for _, name := range s.Names {
		if isPublicName(name) {
			names = append(names, name)
		}
	}
	return names
}

// isPublicName reports whether an authority may certify a name in the form of
// hostName: no wildcard, no address, and not one of those that mean something else on
// each machine, such as "localhost".
func isPublicName(name string) bool {
	return len(name) <= maxHostName && domainName.MatchString(name) && certmagic.SubjectQualifiesForPublicCert(name)
}

// siteACME checks what one site says of ACME.
func (k *checks) siteACME(key string, s SiteConfig) {
	switch {
	case s.TLS.ACME == nil || !*s.TLS.ACME:
	case s.TLS.Cert != "":
		k.add(key+".tls.acme", "the site has a certificate already; remove cert and key, or acme")
	case len(s.publicNames()) == 0:
		k.add(key+".tls.acme", "no authority certifies any of the names %q; name a certificate in cert and key", s.Names)
	}
}

func (k *checks) acme(t TLSConfig) {
	for _, name := range t.Domains {
		switch {
		case strings.HasPrefix(name, "*."):
			k.add("server.tls.domains", "%q is a wildcard, for which authorities ask a DNS record; get that certificate by another program and name it in cert and key", name)
		case !domainName.MatchString(name) || len(name) > 253:
			k.add("server.tls.domains", `%q is not a domain name such as "www.example.com"; write others than ASCII as xn--…`, name)
		}
	}
	if addr, err := mail.ParseAddress(t.Email); t.Email != "" && (err != nil || addr.Address != t.Email) {
		k.add("server.tls.email", `%q is not an address such as "admin@example.com"`, t.Email)
	}
	if t.CacheDir == "" {
		k.add("server.tls.cache_dir", "is empty; name a directory for certificates and keys")
	}
	if t.ACMEDirectory != "" {
		if u, err := url.Parse(t.ACMEDirectory); err != nil || u.Scheme != "https" || u.Host == "" {
			k.add("server.tls.acme_directory", `%q is not a URL such as "https://acme.example/directory"`, t.ACMEDirectory)
		}
		if t.Staging {
			k.add("server.tls.staging", "is for Let's Encrypt, and acme_directory names another authority; remove one of them")
		}
	}
	if t.ACMECA != "" {
		if _, err := loadRoots(t.ACMECA); err != nil {
			k.add("server.tls.acme_ca", "%v", err)
		}
	}
}

// domainName is a name of at least two labels (RFC 1035 §2.3.1, and digits first
// as in RFC 1123 §2.1), the last not all digits.
var domainName = regexp.MustCompile(`(?i)^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

// loadRoots reads a file of certificates.
func loadRoots(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New(file + " has no certificate in PEM")
	}
	return roots, nil
}
