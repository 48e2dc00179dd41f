package server

import (
	"crypto/tls"
	"errors"
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
	// MinVersion is the oldest version of TLS that is spoken: "1.2" or "1.3".
	MinVersion string `toml:"min_version"`
}

// Enabled reports whether anything speaks TLS.
func (c TLSConfig) Enabled() bool { return c.Cert != "" || c.Key != "" }

func defaultTLS() TLSConfig {
	return TLSConfig{MinVersion: "1.2"}
}

// tlsVersions are the values of TLSConfig.MinVersion.
var tlsVersions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

func (k *checks) tls(c TLSConfig) {
	k.keyPair("server.tls.cert", c.Cert, "server.tls.key", c.Key)
	k.oneOf("server.tls.min_version", c.MinVersion, "1.2", "1.3")
}

// keyPair checks the files of a certificate, both of which may be empty.
func (k *checks) keyPair(certKey, cert, keyKey, key string) {
	switch {
	case cert == "" && key == "":
		return
	case cert == "":
		k.add(certKey, "is empty; name the file of the certificate that the key belongs to")
		return
	case key == "":
		k.add(keyKey, "is empty; name the file of the certificate's private key")
		return
	}
	_, err := loadKeyPair(cert, key)
	var bad *keyPairError
	if errors.As(err, &bad) {
		at := certKey
		if bad.key {
			at = keyKey
		}
		k.add(at, "%s", bad.text)
	}
}
