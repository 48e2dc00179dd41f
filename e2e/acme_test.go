package e2e

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return portIn(t, l.Addr().String())
}

func TestACMEByTLSALPN(t *testing.T) {
	t.Parallel()
	own, dir := newAuthority(t), filepath.Join(t.TempDir(), "certs")
	p := newPebble(t, own)
	a := startApp(t, appOptions{TOML: acmeTOML(p, own, dir), Files: map[string]string{"index.php": tlsVars}})
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
