package e2e

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An authority issues the certificates of one test.
type authority struct {
	File string         // its own certificate, PEM, for clients that want a file
	Pool *x509.CertPool // the same for clients in Go

	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, File: filepath.Join(t.TempDir(), "ca.pem"), Pool: x509.NewCertPool(), key: newKey(t)}
	a.cert = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "ephpm test authority"},
		IsCA:    true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, a.key, nil)
	a.Pool.AddCert(a.cert)
	writePEM(t, a.File, "CERTIFICATE", a.cert.Raw)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign makes a certificate of a template, by itself without a parent.
func (a *authority) sign(c *x509.Certificate, key *ecdsa.PrivateKey, parent *x509.Certificate) *x509.Certificate {
	a.t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = serial, time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	if parent == nil {
		parent = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

// issue writes dir/cert.pem and dir/key.pem for names and for this machine,
// and returns the certificate.
func (a *authority) issue(dir string, names ...string) *x509.Certificate {
	a.t.Helper()
	key := newKey(a.t)
	cert := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, key, a.cert)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	writePEM(a.t, filepath.Join(dir, "cert.pem"), "CERTIFICATE", cert.Raw)
	writePEM(a.t, filepath.Join(dir, "key.pem"), "PRIVATE KEY", der)
	return cert
}

// writePEM replaces a file in one step.
func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// tlsIn returns the [server.tls] of the certificate in a directory.
func tlsIn(dir string) string {
	return fmt.Sprintf("[server.tls]\ncert = %q\nkey = %q\n", filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
}

// client returns a client that trusts the authority and speaks the protocols,
// each on a connection of its own.
func (a *authority) client(protocols *http.Protocols) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.Pool}, Protocols: protocols}
	a.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport: transport, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// connectTLS is connect over TLS, for HTTP/1.1.
func (a *app) connectTLS(ca *authority) *wire {
	a.t.Helper()
	w := a.connect()
	w.Conn = tls.Client(w.Conn, &tls.Config{RootCAs: ca.Pool, ServerName: "127.0.0.1", NextProtos: []string{"http/1.1"}})
	w.in = bufio.NewReader(w.Conn)
	return w
}

// http1, http2 and h2c are the protocols of one client each.
var (
	http1 = protocols(func(p *http.Protocols) { p.SetHTTP1(true) })
	http2 = protocols(func(p *http.Protocols) { p.SetHTTP2(true) })
	h2c   = protocols(func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) })
)

func protocols(set func(*http.Protocols)) *http.Protocols {
	p := new(http.Protocols)
	set(p)
	return p
}
