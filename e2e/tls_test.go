package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
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
	foreach (['HTTPS', 'REQUEST_SCHEME', 'SERVER_PORT', 'SERVER_PROTOCOL', 'HTTP_HOST', 'SERVER_NAME', 'REQUEST_URI', 'SSL_PROTOCOL', 'SSL_CIPHER'] as $name)
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
			"HTTP_HOST=" + a.Addr, "SERVER_NAME=127.0.0.1", "REQUEST_URI=/x?y=1", "SSL_PROTOCOL=TLSv1.3", "SSL_CIPHER=" + tls.CipherSuiteName(resp.TLS.CipherSuite), ""}, "\n")
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
	a := startApp(t, appOptions{TOML: tlsIn(dir) + metricsOn, Files: map[string]string{"index.php": `<?php echo "fine";`}})
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
	second := ca.issue(dir, "second.test")
	if err := eventually(func() error { return wantName(name(), "second.test") }); err != nil {
		t.Error(err)
	}
	writePEM(t, filepath.Join(dir, "key.pem"), "PRIVATE KEY", []byte("none"))
	a.waitLine("level=ERROR", `msg="certificate not taken up, the one before stays"`, `key\.pem`)
	if err := wantName(name(), "second.test"); err != nil {
		t.Error(err)
	}
	_, metrics := visitWith(t, ca.client(http1), "https://"+a.Addr+"/metrics")
	for _, want := range []string{
		regexp.QuoteMeta(fmt.Sprintf("ephpm_tls_certificate_expiry_timestamp_seconds{name=\"second.test\"} %v\n", float64(second.NotAfter.Unix()))),
		"ephpm_tls_certificate_failures_total [1-9]", // one more if the test paused between certificate and key
	} {
		if !regexp.MustCompile(want).MatchString(metrics) {
			t.Errorf("the metrics lack %s", want)
		}
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

// tlsURL returns where a server with listeners of both kinds speaks TLS.
func (a *app) tlsURL() string {
	a.t.Helper()
	return "https://" + a.waitLog(`msg="HTTPS listening" addr=(\S+)`)[1]
}

func TestPlainAndTLSListeners(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	a := startApp(t, appOptions{
		TOML:  tlsIn(dir) + "listen = [\"127.0.0.1:0\", \"[::1]:0\"]\n",
		Files: map[string]string{"index.php": tlsVars},
	})
	a.waitLog(`msg="HTTPS listening" addr="?\[::1\]:`)
	_, body := visitWith(t, ca.client(http2), a.tlsURL())
	if !strings.HasPrefix(body, "HTTPS=on\nREQUEST_SCHEME=https\n") {
		t.Errorf("over TLS: %s", body)
	}
	if resp, body := a.get("/"); resp.StatusCode != 200 || !strings.HasPrefix(body, "HTTPS=-\nREQUEST_SCHEME=http\n") {
		t.Errorf("in plain text: %s %s", resp.Status, body)
	}
	a.Stop()
	for _, addr := range []string{a.Addr, strings.TrimPrefix(a.tlsURL(), "https://")} {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			t.Errorf("%s is still open", addr)
		}
	}
}

func TestPlainHTTPIsRedirectedToTLS(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	toml := tlsIn(dir) + "listen = \"127.0.0.1:0\"\nredirect_http = true\n"
	a := startApp(t, appOptions{
		TOML: toml + metricsOn,
		Files: map[string]string{
			"index.php":                         tlsVars,
			".well-known/acme-challenge/of.txt": "another program's challenge",
		},
	})
	_, port, _ := strings.Cut(strings.TrimPrefix(a.tlsURL(), "https://"), ":")
	for _, test := range []struct{ text, want string }{
		{getText("/a/b%20c?x=1&y=%2F"), "https://x:" + port + "/a/b%20c?x=1&y=%2F"},
		{getText("http://x:81/a?b"), "https://x:" + port + "/a?b"},
		{"POST /form HTTP/1.1\r\nHost: a.test:8080\r\nContent-Length: 0\r\n\r\n", "https://a.test:" + port + "/form"},
		{"GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "https://[::1]:" + port + "/"},
		{"GET /old HTTP/1.0\r\n\r\n", "https://127.0.0.1:" + port + "/old"},
		{getText("//evil.test/"), "https://x:" + port + "//evil.test/"},
	} {
		resp, _ := a.exchange(test.text)
		if got := resp.Header.Get("Location"); resp.StatusCode != 308 || got != test.want {
			t.Errorf("%q: %s to %q, want 308 to %q", test.text, resp.Status, got, test.want)
		}
	}
	for path, want := range map[string]string{
		"/_ephpm/health":                     `{"status":"ok"}`,
		"/_ephpm/ready":                      `{"status":"ready"}`,
		"/.well-known/acme-challenge/of.txt": "another program's challenge",
	} {
		if resp, body := a.get(path); resp.StatusCode != 200 || strings.TrimSpace(body) != want {
			t.Errorf("%s: %s %q, want 200 %q", path, resp.Status, body, want)
		}
	}
	if resp, _ := visitWith(t, ca.client(http1), a.tlsURL()); resp.StatusCode != 200 {
		t.Errorf("over TLS: %s", resp.Status)
	}
	mapped := startApp(t, appOptions{TOML: toml + "redirect_port = 443\n"})
	if resp, _ := mapped.getExactly("/a"); resp.Header.Get("Location") != "https://x/a" {
		t.Errorf("with redirect_port 443: %s to %q", resp.Status, resp.Header.Get("Location"))
	}
}

func TestHandshakeHasATimeLimit(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	a := startApp(t, appOptions{TOML: tlsIn(dir) + "[server.timeouts]\nheader_read = \"100ms\"\n"})
	for name, begin := range map[string]string{"nothing": "", "the begin of a hello": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"} {
		w := a.connect()
		_, _ = io.WriteString(w, begin) // on a busy machine the time may be over
		if answer, err := w.rest(); answer != "" || err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a client that sends %s: %q, %v; want it closed", name, answer, err)
		}
	}
}

func TestTLSConfigurationErrors(t *testing.T) {
	t.Parallel()
	ca, dir, other := newAuthority(t), t.TempDir(), t.TempDir()
	ca.issue(dir, "a.test")
	ca.issue(other, "b.test")
	cert, key, foreign := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(other, "key.pem")
	for toml, want := range map[string]string{
		fmt.Sprintf("cert = %q\n", cert):                           `ephpm\.toml:2: server\.tls\.cert: needs a private key`,
		fmt.Sprintf("key = %q\n", key):                             `ephpm\.toml:2: server\.tls\.key: needs a certificate`,
		fmt.Sprintf("cert = %q\nkey = %q\n", cert, foreign):        `ephpm\.toml:3: server\.tls\.key: .* does not match`,
		fmt.Sprintf("cert = %q\nkey = \"key.pem\"\n", cert):        `ephpm\.toml:3: server\.tls\.key: "key.pem" cannot be read: no such file`,
		"redirect_http = true\n":                                   `ephpm\.toml:2: server\.tls\.redirect_http: there is no plain listener`,
		fmt.Sprintf("cert = %q\nkey = %q\nciphers = 1", cert, key): `ephpm\.toml:4: server\.tls\.ciphers: unknown key`,
	} {
		where := t.TempDir()
		writeFiles(t, where, map[string]string{"ephpm.toml": "[server.tls]\n" + toml})
		wantOneLine(t, command{Dir: where, Args: []string{"serve", "-d", ".", "-l", "127.0.0.1:0"}}, "^error: "+want)
	}
}

func TestSitesHaveTheirOwnCertificates(t *testing.T) {
	t.Parallel()
	ca, _, toml := certifiedSites(t)
	a := startApp(t, appOptions{TOML: toml})
	for sni, want := range map[string]string{
		"a.test": "a.test", "A.test": "a.test", "x.wild.test": "wild.test", "other.test": "default.test", "": "default.test",
	} {
		conn, err := tls.Dial("tcp", a.Addr, &tls.Config{ServerName: sni, InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; got != want {
			t.Errorf("%q gets the certificate of %s, want %s", sni, got, want)
		}
		_ = conn.Close() // it was only opened
	}
	for _, p := range []*http.Protocols{http1, http2} {
		c := ca.client(p)
		c.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, a.Addr)
		}
		if resp, body := visitWith(t, c, "https://a.test/"); resp.StatusCode != 200 || body != "a.test" {
			t.Errorf("%s: %s %q, want the page of a.test", resp.Proto, resp.Status, body)
		}
	}
}

// certifiedSites issues certificates for default.test, a.test and wild.test, each in a
// directory of dirs, and has a site for each in toml.
func certifiedSites(t *testing.T) (ca *authority, dirs map[string]string, toml string) {
	t.Helper()
	ca, dirs = newAuthority(t), map[string]string{}
	for _, name := range []string{"default.test", "a.test", "wild.test"} {
		dirs[name] = t.TempDir()
		ca.issue(dirs[name], name)
		toml += siteTOML(t, name, dirs[name])
	}
	return ca, dirs, toml
}

// siteTOML makes a site of its own certificate. The first also is the server's.
func siteTOML(t *testing.T, name, dir string) string {
	t.Helper()
	root := t.TempDir()
	writeFiles(t, root, map[string]string{"index.php": `<?php echo "` + name + `";`})
	if name == "default.test" {
		return tlsIn(dir)
	}
	names := fmt.Sprintf("%q", name)
	if name == "wild.test" {
		names += `, "*.wild.test"`
	}
	return fmt.Sprintf("[[site]]\nnames = [%s]\nroot = %q\ntls.cert = %q\ntls.key = %q\n",
		names, root, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
}

// Clients resume their sessions, also when certificates have been read again.
func TestTLSSessionsAreResumed(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	a := startApp(t, appOptions{TOML: tlsIn(dir), Files: map[string]string{"index.php": `<?php echo "page";`}})
	for i, version := range []string{"-tls1_2", "-tls1_3"} {
		session := filepath.Join(t.TempDir(), "session")
		visit := func(args ...string) string {
			cmd := exec.Command("openssl", append([]string{"s_client", "-connect", a.Addr, "-servername", "a.test", "-CAfile", ca.File, "-ign_eof", version}, args...)...)
			cmd.Stdin = strings.NewReader("GET / HTTP/1.0\r\n\r\n")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "Verify return code: 0") || !strings.Contains(string(out), "\r\n\r\npage") {
				t.Fatalf("openssl %q: %v\n%s", args, err, out)
			}
			return string(out)
		}
		if out := visit("-sess_out", session); !strings.Contains(out, "\nNew, TLSv1") {
			t.Errorf("%s, the first time:\n%s", version, out)
		}
		if out := visit("-sess_in", session); !strings.Contains(out, "\nReused, TLSv1") {
			t.Errorf("%s, the second time:\n%s", version, out)
		}
		ca.issue(dir, "a.test")
		a.signal(syscall.SIGHUP)
		if err := eventually(func() error {
			if n := a.countLines(`msg="PHP started anew"`); n != i+1 {
				return fmt.Errorf("PHP started anew %d times, want %d", n, i+1)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if out := visit("-sess_in", session); !strings.Contains(out, "\nReused, TLSv1") {
			t.Errorf("%s, with a new certificate:\n%s", version, out)
		}
	}
}
