package server

import (
	"crypto/tls"
	"errors"
	"slices"
)

// TLSConfig is [server.tls]: certificates, and what speaks TLS.
type TLSConfig struct {
	// Cert is the file of the certificate and of those between it and a root,
	// PEM. A relative path in a configuration file starts at that file's
	// directory. The server looks at it again while it runs. Empty means none;
	// then Key is empty as well.
	Cert string `toml:"cert"`
	// Key is the file of Cert's private key, PEM, not encrypted.
	Key string `toml:"key"`
	// CertDir is a directory of more certificates: each directory in it that has
	// the files fullchain.pem and privkey.pem is shown for the names of its
	// certificate. They are found and forgotten while the server runs. A relative
	// path in a configuration file starts at that file's directory. Empty means
	// none.
	CertDir string `toml:"cert_dir"`
	// Listen are the addresses of listeners for TLS; those of ServerConfig.Listen
	// are then for plain HTTP. Empty means that ServerConfig.Listen speaks TLS
	// when there is a certificate.
	Listen Addresses `toml:"listen"`
	// RedirectHTTP answers every request for plain HTTP with a redirect to TLS.
	RedirectHTTP bool `toml:"redirect_http"`
	// RedirectPort is the port that clients reach TLS at. Zero means that of the
	// first address of Listen.
	RedirectPort int `toml:"redirect_port"`
	// MinVersion is the oldest version of TLS that is spoken: "1.2" or "1.3".
	MinVersion string `toml:"min_version"`

	// Domains are the names for which certificates are obtained by ACME (RFC
	// 8555), one each. Empty means none.
	Domains []string `toml:"domains"`
	// ACMESites obtains them for the names of sites as well, if they are public
	// ones: for those of a [[site]] without a certificate of its own from the
	// start on, for a directory of SitesDir when the first client asks for it.
	ACMESites bool `toml:"acme_sites"`
	// Email is where the authority writes to. Empty means that it does not.
	Email string `toml:"email"`
	// CacheDir keeps the ACME account, certificates and keys. It is made when it
	// is not there, for this user only. A relative path in a configuration file
	// starts at that file's directory.
	CacheDir string `toml:"cache_dir"`
	// Staging asks Let's Encrypt's test authority, which no browser trusts.
	Staging bool `toml:"staging"`
	// ACMEDirectory is the URL of another authority's directory. Empty means
	// Let's Encrypt.
	ACMEDirectory string `toml:"acme_directory"`
	// ACMECA is a file of the roots, PEM, that the connection to ACMEDirectory is
	// checked with. Empty means the system's.
	ACMECA string `toml:"acme_ca"`
}

func defaultTLS() TLSConfig {
	return TLSConfig{MinVersion: "1.2", CacheDir: "certs"}
}

// speaksTLS reports whether there is a certificate or will be one.
func (c Config) speaksTLS() bool {
	return len(keyPairs(c)) > 0 || c.Server.TLS.CertDir != "" || c.usesACME()
}

// tlsVersions are the values of TLSConfig.MinVersion.
var tlsVersions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

func (k *checks) tls(c Config) {
	t := c.Server.TLS
	k.keyPair("server.tls.cert", t.Cert, "server.tls.key", t.Key, c.roots())
	k.oneOf("server.tls.min_version", t.MinVersion, "1.2", "1.3")
	k.addresses("server.tls.listen", t.Listen)
	switch {
	case len(t.Listen) > 0 && !c.speaksTLS() && t.Key == "":
		k.add("server.tls.listen", "needs a certificate: set cert and key, cert_dir, domains or acme_sites")
	case t.RedirectHTTP && len(t.Listen) == 0:
		k.add("server.tls.redirect_http", "there is no plain listener to redirect from; set listen in [server.tls]")
	}
	if t.RedirectPort > 65535 {
		k.add("server.tls.redirect_port", "%d is not a port", t.RedirectPort)
	}
	if t.CertDir != "" {
		k.root("server.tls.cert_dir", t.CertDir, "")
		k.private("server.tls.cert_dir", t.CertDir, c.roots())
	}
	if c.usesACME() {
		k.acme(t)
		k.private("server.tls.cache_dir", t.CacheDir, c.roots())
	}
	if t.ACMESites && !c.hasSites() {
		k.add("server.tls.acme_sites", "there are no sites; name the hosts in domains, or set [server] sites_dir or a [[site]]")
	}
}

// keyPair checks the files of a certificate, both of which may be empty. roots are
// the directories that are served.
func (k *checks) keyPair(certKey, cert, keyKey, key string, roots []string) {
	switch {
	case cert == "" && key == "":
		return
	case cert == "":
		k.add(keyKey, "needs a certificate: name its file in %s", certKey)
		return
	case key == "":
		k.add(certKey, "needs a private key: name its file in %s", keyKey)
		return
	}
	_, err := loadKeyPair(cert, key)
	var bad *keyPairError
	switch {
	case errors.As(err, &bad) && bad.key:
		k.add(keyKey, "%s", bad.text)
	case errors.As(err, &bad):
		k.add(certKey, "%s", bad.text)
	default:
		k.private(keyKey, key, roots)
	}
}

// roots are the directories that are served.
func (c Config) roots() []string {
	roots := []string{c.Server.DocumentRoot}
	for _, s := range c.Sites {
		roots = append(roots, s.Root)
	}
	roots = append(roots, c.Server.SitesDir)
	return slices.DeleteFunc(roots, func(root string) bool { return root == "" })
}
