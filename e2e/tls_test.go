package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// visitWith fetches a URL and returns the answer and its body.
func visitWith(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// tlsVars prints what scripts see of TLS.
const tlsVars = `<?php
	foreach (['HTTPS', 'REQUEST_SCHEME', 'SERVER_PORT', 'SERVER_PROTOCOL', 'HTTP_HOST', 'SERVER_NAME', 'REQUEST_URI'] as $name)
		echo $name, '=', $_SERVER[$name] ?? '-', "\n";`

func TestTLS(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	a := startApp(t, appOptions{TOML: tlsIn(dir), Files: map[string]string{"index.php": tlsVars}})
	a.waitLog(`msg="HTTPS listening"`)
	_, port, _ := strings.Cut(a.Addr, ":")
	for proto, c := range map[string]*http.Client{"HTTP/1.1": ca.client(http1), "HTTP/2.0": ca.client(http2)} {
		resp, body := visitWith(t, c, "https://"+a.Addr+"/x?y=1")
		want := strings.Join([]string{"HTTPS=on", "REQUEST_SCHEME=https", "SERVER_PORT=" + port, "SERVER_PROTOCOL=" + proto,
			"HTTP_HOST=" + a.Addr, "SERVER_NAME=127.0.0.1", "REQUEST_URI=/x?y=1", ""}, "\n")
		if resp.Proto != proto || body != want {
			t.Errorf("over %s:\n%swant over %s:\n%s", resp.Proto, body, proto, want)
		}
	}
}

// handshake returns what a TLS client of some kind agrees on.
func (a *app) handshake(c *tls.Config) (tls.ConnectionState, error) {
	conn, err := tls.Dial("tcp", a.Addr, c)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	return conn.ConnectionState(), nil
}

func TestTLSVersionsAndALPN(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	both := startApp(t, appOptions{TOML: tlsIn(dir)})
	strict := startApp(t, appOptions{TOML: tlsIn(dir) + "min_version = \"1.3\"\n"})
	for _, test := range []struct {
		app     *app
		version uint16
		offer   []string
		want    string // protocol, or "refused"
	}{
		{both, tls.VersionTLS13, []string{"h2", "http/1.1"}, "h2"},
		{both, tls.VersionTLS12, []string{"http/1.1", "h2"}, "h2"}, // the server prefers
		{both, tls.VersionTLS12, []string{"http/1.1"}, "http/1.1"},
		{both, tls.VersionTLS13, nil, ""},
		{both, tls.VersionTLS13, []string{"spdy/3"}, "refused"},
		{both, tls.VersionTLS11, nil, "refused"},
		{strict, tls.VersionTLS13, []string{"h2"}, "h2"},
		{strict, tls.VersionTLS12, []string{"h2"}, "refused"},
	} {
		state, err := test.app.handshake(&tls.Config{RootCAs: ca.Pool, MinVersion: test.version, MaxVersion: test.version, NextProtos: test.offer})
		got := state.NegotiatedProtocol
		if err != nil {
			got = "refused"
		}
		if got != test.want || err == nil && state.Version != test.version {
			t.Errorf("%s that offers %q: %q (%v), want %q", tls.VersionName(test.version), test.offer, got, err, test.want)
		}
	}
}

func TestTLSCertificateIsTakenUpWithoutARestart(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "first.test")
	a := startApp(t, appOptions{TOML: tlsIn(dir), Files: map[string]string{"index.php": `<?php echo "fine";`}})
	name := func() string {
		state, err := a.handshake(&tls.Config{RootCAs: ca.Pool})
		if err != nil {
			t.Fatal(err)
		}
		return state.PeerCertificates[0].Subject.CommonName
	}
	if got := name(); got != "first.test" {
		t.Fatalf("the certificate is for %s", got)
	}
	ca.issue(dir, "second.test")
	if err := eventually(func() error { return wantName(name(), "second.test") }); err != nil {
		t.Error(err)
	}
	writePEM(t, filepath.Join(dir, "key.pem"), "PRIVATE KEY", []byte("none"))
	a.waitLine("level=ERROR", `msg="certificate not taken up, the one before stays"`, `key\.pem`)
	if err := wantName(name(), "second.test"); err != nil {
		t.Error(err)
	}
}

func wantName(got, want string) error {
	if got != want {
		return fmt.Errorf("the certificate is for %s, want %s", got, want)
	}
	return nil
}

// What fails to be a TLS client costs nobody else anything.
func TestPlainTextOnATLSPort(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	a := startApp(t, appOptions{TOML: tlsIn(dir), Files: map[string]string{"index.php": `<?php echo "fine";`}})
	w := a.connect()
	w.send(getText("/"))
	if answer, _ := w.rest(); !strings.HasPrefix(answer, "HTTP/1.0 400 ") {
		t.Errorf("a plain request on a TLS port: %q", answer)
	}
	if _, body := visitWith(t, ca.client(http1), "https://"+a.Addr); body != "fine" {
		t.Errorf("then a page says %q", body)
	}
}
