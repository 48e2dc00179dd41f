package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// acmeTOML asks an authority for certificates.
func acmeTOML(p *pebble, own *authority, dir string, more ...string) string {
	return fmt.Sprintf("[server.tls]\ndomains = [\"a.test\", \"www.a.test\"]\nemail = \"admin@a.test\"\ncache_dir = %q\nacme_directory = %q\nacme_ca = %q\n%s",
		dir, p.URL, own.File, strings.Join(more, ""))
}

// portIn returns the port of an address.
func portIn(t *testing.T, addr string) int {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// waitCertificate waits until the server at addr shows the authority's certificate
// for a name.
func (p *pebble) waitCertificate(t *testing.T, addr, name string) {
	t.Helper()
	err := eventually(func() error {
		conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: p.Roots, ServerName: name})
		if err == nil {
			_ = conn.Close() // it was only opened
		}
		return err
	})
	if err != nil {
		t.Errorf("no certificate for %s: %v", name, err)
	}
}

// closedPort is one at which nobody listens.
func closedPort(t *testing.T) int {
	t.Helper()
	return portIn(t, reservedAddr(t))
}

func TestACMEByTLSALPN(t *testing.T) {
	t.Parallel()
	own, dir := newAuthority(t), filepath.Join(t.TempDir(), "certs")
	p := newPebble(t, own)
	a := startApp(t, appOptions{
		Listen: reservedAddr(t),
		TOML:   acmeTOML(p, own, dir, "[server.http3]\nenabled = false\n"),
		Files:  map[string]string{"index.php": tlsVars},
	})
	p.open(closedPort(t), portIn(t, a.Addr))
	p.waitCertificate(t, a.Addr, "a.test")
	p.waitCertificate(t, a.Addr, "www.a.test")
	a.waitLine(`msg="certificate obtained"`, "name=a.test")
	if n := p.Orders.Load(); n != 2 {
		t.Errorf("%d certificates were asked for, want 2", n)
	}
	// Any other name gets the first.
	conn, err := tls.Dial("tcp", a.Addr, &tls.Config{InsecureSkipVerify: true, ServerName: "other.test"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.ConnectionState().PeerCertificates[0].VerifyHostname("a.test"); err != nil {
		t.Errorf("another name gets: %v", err)
	}
	checkSecrets(t, dir)

	a.Restart()
	p.waitCertificate(t, a.Addr, "a.test")
	p.waitCertificate(t, a.Addr, "www.a.test")
	if n := p.Orders.Load(); n != 2 {
		t.Errorf("after a restart %d certificates were asked for, want still 2", n)
	}
}

// checkSecrets wants what ACME keeps to be for nobody else.
func checkSecrets(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !d.IsDir() {
			files++
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, mode)
		}
		return nil
	})
	if err != nil || files < 4 {
		t.Errorf("%d files are kept in %s (%v), want accounts, certificates and keys", files, dir, err)
	}
}

// The authority's requests for HTTP-01 are answered although plain HTTP is
// redirected and there is no TLS to ask by.
func TestACMEByHTTP(t *testing.T) {
	t.Parallel()
	own, dir := newAuthority(t), t.TempDir()
	p := newPebble(t, own)
	a := startApp(t, appOptions{
		TOML:  acmeTOML(p, own, dir, "listen = \"127.0.0.1:0\"\nredirect_http = true\n"),
		Files: map[string]string{"index.php": tlsVars},
	})
	p.open(portIn(t, a.Addr), closedPort(t))
	addr := strings.TrimPrefix(a.tlsURL(), "https://")
	p.waitCertificate(t, addr, "a.test")
	p.waitCertificate(t, addr, "www.a.test")
}

// A server is ready before it has certificates, shows the one of its files until
// then, and says what goes wrong.
func TestACMEHoldsNothingUp(t *testing.T) {
	t.Parallel()
	own, dir := newAuthority(t), t.TempDir()
	files := t.TempDir()
	own.issue(files, "files.test")
	p := newPebble(t, own) // it never answers
	static := fmt.Sprintf("listen = \"127.0.0.1:0\"\ncert = %q\nkey = %q\n", filepath.Join(files, "cert.pem"), filepath.Join(files, "key.pem"))
	a := startApp(t, appOptions{TOML: acmeTOML(p, own, dir, static), Files: map[string]string{"index.php": `<?php echo "fine";`}})
	if err := wantBody(a.request("GET", "/_ephpm/ready", ""), "{\"status\":\"ready\"}\n"); err != nil {
		t.Error(err)
	}
	if _, body := visitWith(t, own.client(http2), a.tlsURL()); body != "fine" {
		t.Errorf("the page says %q", body)
	}
	a.Stop()

	gone := &pebble{URL: fmt.Sprintf("https://127.0.0.1:%d/dir", closedPort(t))}
	b := startApp(t, appOptions{TOML: acmeTOML(gone, own, dir, static), Files: map[string]string{"index.php": `<?php echo "fine";`}})
	b.waitLine("level=ERROR", "a\\.test", "connection refused")
	if _, body := visitWith(t, own.client(http2), b.tlsURL()); body != "fine" {
		t.Errorf("the page says %q", body)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

// Sites get certificates: those of tables at the start, those of directories when the
// first client asks for them, and names that nobody has never.
func TestACMEForSites(t *testing.T) {
	t.Parallel()
	own, dir := newAuthority(t), filepath.Join(t.TempDir(), "certs")
	p := newPebble(t, own)
	page := `<?php echo $_SERVER['DOCUMENT_ROOT'], ' ', $_SERVER['HTTPS'];`
	s := startSites(t, fmt.Sprintf(`
[server]
sites_dir = "$dir/sites/dir"
sites_state_dir = "$dir/state"
[server.tls]
acme_sites = true
cache_dir = %q
acme_directory = %q
acme_ca = %q
listen = "127.0.0.1:0"
[server.http3]
handshake_timeout = "5m"
[server.timeouts]
header_read = "5m"
[server.metrics]
enabled = true
[[site]]
names = ["table.test", "*.table.test", "localhost"]
root = "$dir/sites/table"
`, dir, p.URL, own.File), map[string]string{"table/index.php": page, "dir/a.test/index.php": page, "dir/b.test/index.php": page})
	addr := strings.TrimPrefix(s.tlsURL(), "https://")
	udp := s.waitLog(`msg="HTTP/3 listening" addr="?(\S+?)"? `)[1]
	p.open(portIn(t, s.Addr), portIn(t, addr))
	p.waitCertificate(t, addr, "table.test")
	if n := p.Orders.Load(); n != 1 {
		t.Errorf("at the start %d certificates were asked for, want that of the table", n)
	}

	client := &http.Client{Timeout: patience, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: p.Roots},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		},
		ForceAttemptHTTP2: true, DisableKeepAlives: true,
	}}
	// The first client waits, and so do those beside it.
	hundred(t, func(int) error {
		resp, err := client.Get("https://a.test/")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if want := s.dir + "/sites/dir/a.test on"; err != nil || string(body) != want {
			return fmt.Errorf("the page says %q (%v), want %q", body, err, want)
		}
		return nil
	})
	for i := range 20 { // they get the first certificate, at once
		name := fmt.Sprintf("invented%d.test", i)
		if _, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: p.Roots, ServerName: name}); err == nil {
			t.Errorf("%s has a certificate", name)
		}
	}
	if n := p.Orders.Load(); n != 2 {
		t.Errorf("then %d certificates were asked for, want those of the table and of one directory", n)
	}
	checkHTTP3Site(t, s, p, udp, "a.test")
	checkHTTP3Site(t, s, p, udp, "b.test")
	for _, name := range []string{"table.test", "a.test", "b.test"} {
		if v, err := s.metric(fmt.Sprintf("ephpm_tls_certificate_expiry_timestamp_seconds{name=%q}", name)); err != nil || v == 0 {
			t.Errorf("the certificate of %s expires at %v (%v)", name, v, err)
		}
	}

	if err := os.RemoveAll(filepath.Join(s.dir, "sites", "dir", "b.test")); err != nil {
		t.Fatal(err)
	}
	s.waitLog(`msg="site removed" site=b.test`)
	if _, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: p.Roots, ServerName: "b.test"}); err == nil {
		t.Error("a directory that is gone still has its certificate")
	}
	if n := p.Orders.Load(); n != 3 {
		t.Errorf("in all %d certificates were asked for, want 3", n)
	}
}

// checkHTTP3Site wants a site's page over HTTP/3 with its certificate.
func checkHTTP3Site(t *testing.T, s *siteTest, p *pebble, addr, name string) {
	t.Helper()
	transport := &http3.Transport{
		TLSClientConfig: &tls.Config{RootCAs: p.Roots},
		QUICConfig:      &quic.Config{HandshakeIdleTimeout: patience}, // for the authority
		Dial: func(ctx context.Context, _ string, c *tls.Config, q *quic.Config) (*quic.Conn, error) {
			return quic.DialAddr(ctx, addr, c, q)
		},
	}
	defer transport.Close()
	resp, err := (&http.Client{Transport: transport, Timeout: patience}).Get("https://" + name + "/")
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if want := s.dir + "/sites/dir/" + name + " on"; err != nil || string(body) != want || resp.ProtoMajor != 3 {
		t.Errorf("%s over %s: %q (%v), want %q", name, resp.Proto, body, err, want)
	}
}
