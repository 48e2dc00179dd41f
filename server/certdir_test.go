package server

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dirPair makes a certificate for a name as certbot leaves it.
func dirPair(t *testing.T, dir, name string) {
	t.Helper()
	p := newKeyPair(t, t.TempDir(), name)
	if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
		t.Fatal(err)
	}
	rename(t, p.cert, filepath.Join(dir, name), dirCert)
	rename(t, p.key, filepath.Join(dir, name), dirKey)
}

func TestDirectoryOfCertificates(t *testing.T) {
	dir := t.TempDir()
	dirPair(t, dir, "b.example")
	writePEM(t, filepath.Join(dir, "README"), []byte("not a certificate"))
	log := new(bytes.Buffer)
	config := defaultTLS()
	config.CertDir = dir
	own := newKeyPair(t, t.TempDir(), "own")
	c, err := newCertificates(config, []keyPair{own}, nil, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	want := func(when string, names map[string]string) {
		t.Helper()
		for sni, want := range names {
			if got := shown(t, c, sni); got != want {
				t.Errorf("%s: %q gets %q, want %q", when, sni, got, want)
			}
		}
	}
	want("at the start", map[string]string{"b.example": "b.example", "a.example": "own", "": "own"})

	dirPair(t, dir, "a.example")
	c.look(false)
	want("a new one that may not be complete", map[string]string{"a.example": "own"})
	c.look(false)
	want("a new one", map[string]string{"a.example": "a.example", "b.example": "b.example"})

	if err := os.RemoveAll(filepath.Join(dir, "b.example")); err != nil {
		t.Fatal(err)
	}
	writePEM(t, filepath.Join(dir, "a.example", dirKey), []byte("broken"))
	for range 4 {
		c.look(false)
	}
	want("one removed, one broken", map[string]string{"a.example": "a.example", "b.example": "own"})
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("%d errors, want one, of the broken key: %s", n, log)
	}

	away := dir + ".away"
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	c.look(false)
	c.look(false)
	want("the directory is away", map[string]string{"a.example": "a.example"})
	if n := strings.Count(log.String(), "level=ERROR"); n != 2 {
		t.Errorf("%d errors, want one more: %s", n, log)
	}
}

func TestDirectoryOfCertificatesAloneHasAFirst(t *testing.T) {
	config := defaultTLS()
	config.CertDir = t.TempDir()
	dirPair(t, config.CertDir, "b.example")
	dirPair(t, config.CertDir, "a.example")
	c, err := newCertificates(config, nil, nil, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(t, c, "c.example"); got != "a.example" {
		t.Errorf("another name gets %q, want the first one", got)
	}
}
