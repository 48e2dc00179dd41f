package server

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestConfigurationFileIsNeverSent(t *testing.T) {
	root := files(t, "ephpm.toml", "other.toml")
	if err := os.Symlink("ephpm.toml", filepath.Join(root, "alias.txt")); err != nil {
		t.Fatal(err)
	}
	s := newTest(t, root, &fakePool{}, func(c *Config) { c.File = filepath.Join(root, "ephpm.toml") })
	for target, want := range map[string]int{"/ephpm.toml": 404, "/alias.txt": 404, "/other.toml": 200} {
		if r := get(s, target); r.StatusCode != want {
			t.Errorf("GET %s: %d, want %d", target, r.StatusCode, want)
		}
	}
}

func TestStaticFiles(t *testing.T) {
	s := newTest(t, files(t, "a.js", "noext", "x.txt"), &fakePool{}, func(c *Config) { c.Server.Static.CacheControl = "max-age=60" })
	r := get(s, "/a.js")
	for name, want := range map[string]string{
		"Content-Type": "text/javascript; charset=utf-8", "Cache-Control": "max-age=60", "Content-Length": "15", "Accept-Ranges": "bytes",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := get(s, "/noext").Header.Get("Content-Type"); got != "application/octet-stream" {
		t.Errorf("type of a file without extension is %q", got)
	}
	if r := do(s, "POST", "/a.js", nil); r.StatusCode != 405 || r.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST to a file: %d, Allow %q; want 405", r.StatusCode, r.Header.Get("Allow"))
	}
	q := httptest.NewRequest("GET", "/a.js", nil)
	q.Header.Set("If-None-Match", r.Header.Get("Etag"))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, q)
	if w.Code != 304 {
		t.Errorf("a known entity tag: %d, want 304", w.Code)
	}
	q = httptest.NewRequest("GET", "/x.txt", nil)
	q.Header.Set("Range", "bytes=0-6")
	w = httptest.NewRecorder()
	s.ServeHTTP(w, q)
	if w.Code != 206 || w.Body.String() != "content" {
		t.Errorf("a range: %d %q, want 206", w.Code, w.Body)
	}
}
