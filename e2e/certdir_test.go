package e2e

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// issueLive writes a certificate as certbot leaves it, in a directory of its name.
func issueLive(ca *authority, dir, name string) error {
	sub := filepath.Join(dir, name)
	if err := os.MkdirAll(sub, 0o700); err != nil {
		return err
	}
	ca.issue(sub, name)
	if err := os.Rename(filepath.Join(sub, "cert.pem"), filepath.Join(sub, "fullchain.pem")); err != nil {
		return err
	}
	return os.Rename(filepath.Join(sub, "key.pem"), filepath.Join(sub, "privkey.pem"))
}

// Sites of directories have the certificates that lie in a directory of their own, by
// TCP and QUIC; new ones are found, removed ones forgotten.
func TestSitesFindTheirCertificatesInADirectory(t *testing.T) {
	t.Parallel()
	ca, live := newAuthority(t), t.TempDir()
	if err := issueLive(ca, live, "a.test"); err != nil {
		t.Fatal(err)
	}
	s := startSites(t, sitesDirTOML+fmt.Sprintf("[server.tls]\ncert_dir = %q\n", live),
		map[string]string{"a.test/index.php": tlsVars, "b.test/index.php": tlsVars})
	shows := func(name string) error {
		conn, err := tls.Dial("tcp", s.Addr, &tls.Config{RootCAs: ca.Pool, ServerName: name})
		if err != nil {
			return err
		}
		return conn.Close()
	}
	if err := shows("a.test"); err != nil {
		t.Error(err)
	}
	if shows("b.test") == nil {
		t.Error("b.test has a certificate that is not there yet")
	}
	if err := issueLive(ca, live, "b.test"); err != nil {
		t.Fatal(err)
	}
	if err := eventually(func() error { return shows("b.test") }); err != nil {
		t.Errorf("the new certificate: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(live, "a.test")); err != nil {
		t.Fatal(err)
	}
	if err := eventually(func() error {
		if shows("a.test") == nil {
			return errors.New("it is still shown")
		}
		return nil
	}); err != nil {
		t.Errorf("the certificate that was removed: %v", err)
	}
	if err := shows("b.test"); err != nil {
		t.Error(err)
	}
}
