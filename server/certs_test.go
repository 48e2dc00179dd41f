package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newKeyPair writes a self-signed certificate for a name, and its key.
func newKeyPair(t testing.TB, dir, name string) keyPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	p := keyPair{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	writePEM(t, p.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	writePEM(t, p.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	return p
}

func writePEM(t testing.TB, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// shown returns the common name of the certificate for an SNI.
func shown(t *testing.T, c *certificates, sni string) string {
	t.Helper()
	cert, err := c.GetCertificate(&tls.ClientHelloInfo{ServerName: sni})
	if err != nil {
		return err.Error()
	}
	return cert.Leaf.Subject.CommonName
}

func newCerts(t *testing.T, pairs ...keyPair) (*certificates, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	c, err := newCertificates(defaultTLS(), pairs, nil, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return c, log
}

func TestCertificateIsChosenByName(t *testing.T) {
	var pairs []keyPair
	for _, names := range [][]string{nil, {"a.example", "www.a.example"}, {"*.b.example"}, {"x.b.example"}} {
		p := newKeyPair(t, t.TempDir(), strings.Join(append([]string{"for"}, names...), " "))
		p.names = names
		pairs = append(pairs, p)
	}
	c, _ := newCerts(t, pairs...)
	for sni, want := range map[string]string{
		"": "for", "other.example": "for", "b.example": "for", "x.y.b.example": "for *.b.example", "example": "for", "*.example": "for", "a..b": "for",
		"a.example": "for a.example www.a.example", "A.Example.": "for a.example www.a.example", "www.a.example": "for a.example www.a.example",
		"y.b.example": "for *.b.example", "x.b.example": "for x.b.example", ".b.example": "for",
	} {
		if got := shown(t, c, sni); got != want {
			t.Errorf("%q gets the certificate %q, want %q", sni, got, want)
		}
	}
	if none, _ := newCerts(t); shown(t, none, "a.example") != errNoCertificate.Error() {
		t.Error("without certificates there is one")
	}
}

func TestChangedCertificateIsTakenUpWhenItsFilesRest(t *testing.T) {
	dir := t.TempDir()
	c, log := newCerts(t, newKeyPair(t, dir, "one"))
	c.look(false)
	next := newKeyPair(t, t.TempDir(), "two")

	rename(t, next.cert, dir, "cert.pem") // its key is still to come
	c.look(false)
	rename(t, next.key, dir, "key.pem")
	c.look(false)
	if got := shown(t, c, ""); got != "one" {
		t.Errorf("while the files change the certificate is %q, want one", got)
	}
	c.look(false)
	if got := shown(t, c, ""); got != "two" {
		t.Errorf("then it is %q, want two", got)
	}
	if strings.Contains(log.String(), "level=ERROR") || strings.Count(log.String(), `msg="certificate taken up"`) != 1 {
		t.Errorf("the log is %s", log)
	}
}

func TestBrokenCertificateLeavesTheOneBefore(t *testing.T) {
	dir := t.TempDir()
	c, log := newCerts(t, newKeyPair(t, dir, "one"))
	if err := os.Remove(filepath.Join(dir, "key.pem")); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		c.look(false)
	}
	if got := shown(t, c, ""); got != "one" || strings.Count(log.String(), "level=ERROR") != 1 || !strings.Contains(log.String(), "key.pem") {
		t.Errorf("the certificate is %q, want one; the log, where one error names the key, is %s", got, log)
	}
	c.reload()
	if strings.Count(log.String(), "level=ERROR") != 2 {
		t.Errorf("who asks for a reload is not told that it failed: %s", log)
	}
	newKeyPair(t, dir, "two")
	c.reload()
	if got := shown(t, c, ""); got != "two" {
		t.Errorf("after a reload the certificate is %q, want two", got)
	}
}

func rename(t *testing.T, file, dir, name string) {
	t.Helper()
	if err := os.Rename(file, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func TestKeyPairErrorsNameTheKey(t *testing.T) {
	dir := t.TempDir()
	good, other := newKeyPair(t, dir, "good"), newKeyPair(t, t.TempDir(), "other")
	file := func(name, text string) string {
		writePEM(t, filepath.Join(dir, name), []byte(text))
		return filepath.Join(dir, name)
	}
	for _, test := range []struct{ cert, key, want string }{
		{"", "", ""},
		{good.cert, good.key, ""},
		{good.cert, "", "server.tls.cert: needs a private key: name its file in server.tls.key"},
		{"", good.key, "server.tls.key: needs a certificate: name its file in server.tls.cert"},
		{"nothing.pem", good.key, `server.tls.cert: "nothing.pem" cannot be read: no such file`},
		{good.cert, dir, "server.tls.key: "},
		{good.cert, other.key, "private key does not match public key"},
		{good.key, good.key, "server.tls.cert: "},
		{good.cert, good.cert, "server.tls.key: "},
		{good.cert, file("empty.pem", ""), "has no private key"},
		{good.cert, file("locked.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"), "is encrypted"},
		{good.cert, file("old.pem", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----\n"), "is encrypted"},
		{file("broken.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), good.key, "server.tls.cert: "},
	} {
		var k checks
		k.keyPair("server.tls.cert", test.cert, "server.tls.key", test.key, nil)
		if got := errText(k); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("cert %q, key %q: %q, want %q", test.cert, test.key, got, test.want)
		}
	}
}

func errText(k checks) string {
	var lines []string
	for _, err := range k {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}
