package server

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
)

// A keyPairError says why a certificate and its private key cannot be used.
type keyPairError struct {
	key  bool // the file of the private key is at fault, not that of the certificate
	text string
}

func (e *keyPairError) Error() string { return e.text }

// loadKeyPair reads a certificate with its chain, and its private key. Its errors
// are *keyPairError.
func loadKeyPair(certFile, keyFile string) (*tls.Certificate, error) {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return nil, &keyPairError{text: fmt.Sprintf("%q cannot be read: %v", certFile, errors.Unwrap(err))}
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, &keyPairError{key: true, text: fmt.Sprintf("%q cannot be read: %v", keyFile, errors.Unwrap(err))}
	}
	leaf := firstBlock(cert, "CERTIFICATE")
	if leaf == nil {
		return nil, &keyPairError{text: fmt.Sprintf("%q has no certificate in PEM, a block that starts with -----BEGIN CERTIFICATE-----", certFile)}
	}
	if _, err := x509.ParseCertificate(leaf.Bytes); err != nil {
		return nil, &keyPairError{text: fmt.Sprintf("%q: the certificate is broken: %s", certFile, strings.TrimPrefix(err.Error(), "x509: "))}
	}
	private := firstBlock(key, "PRIVATE KEY")
	if private == nil {
		return nil, &keyPairError{key: true, text: fmt.Sprintf("%q has no private key in PEM, a block that starts with -----BEGIN PRIVATE KEY-----", keyFile)}
	}
	if encrypted(private) {
		return nil, &keyPairError{key: true, text: fmt.Sprintf("%q is encrypted, and nobody is there to type its passphrase; write it in the clear with openssl pkey", keyFile)}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, &keyPairError{key: true, text: fmt.Sprintf("%q with %q: %s", keyFile, certFile, strings.TrimPrefix(err.Error(), "tls: "))}
	}
	return &pair, nil
}

// firstBlock returns the first PEM block of a type that ends in suffix, or nil.
func firstBlock(text []byte, suffix string) *pem.Block {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil || strings.HasSuffix(block.Type, suffix) {
			return block
		}
	}
}

// encrypted reports whether a private key is, as PKCS #8 (RFC 5958 §3) or in
// OpenSSL's old form (RFC 1421 §4.6).
func encrypted(key *pem.Block) bool {
	return key.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(key.Headers["Proc-Type"], "ENCRYPTED")
}
