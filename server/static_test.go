package server

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// settle waits until the files below a directory are old enough to be kept. The time
// of a file's last change cannot be set.
func settle(t testing.TB, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st syscall.Stat_t
		if err == nil {
			err = syscall.Stat(path, &st)
		}
		for err == nil && !idOf(&st).settled(time.Now()) {
			time.Sleep(time.Millisecond)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// fetchFile asks for a target. Pairs of header are a name and a value.
func fetchFile(s http.Handler, method, target string, header ...string) *http.Response {
	r := httptest.NewRequest(method, "/", nil)
	r.RequestURI = target
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

// decode undoes the Content-Encoding of an answer.
func decode(t *testing.T, r *http.Response) string {
	t.Helper()
	var from io.Reader = r.Body
	var err error
	switch r.Header.Get("Content-Encoding") {
	case "gzip":
		from, err = gzip.NewReader(r.Body)
	case "br":
		from = brotli.NewReader(r.Body)
	case "zstd":
		from, err = zstd.NewReader(r.Body)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(from)
	if err != nil {
		t.Fatalf("%s: %v", r.Header.Get("Content-Encoding"), err)
	}
	return string(b)
}

func writeAll(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

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
	root := files(t, "a.js", "noext", "x.txt")
	settle(t, root) // or the entity tag changes between two requests
	s := newTest(t, root, &fakePool{}, func(c *Config) { c.Server.Static.CacheControl = "max-age=60" })
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
	if r := do(s, "POST", "/a.js", nil); r.StatusCode != 405 || r.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("POST to a file: %d, Allow %q; want 405", r.StatusCode, r.Header.Get("Allow"))
	}
	if r := do(s, "OPTIONS", "/a.js", nil); r.StatusCode != 204 || r.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("OPTIONS of a file: %d, Allow %q; want 204", r.StatusCode, r.Header.Get("Allow"))
	}
	if r := fetchFile(s, "GET", "/a.js", "If-None-Match", r.Header.Get("Etag")); r.StatusCode != 304 {
		t.Errorf("a known entity tag: %d, want 304", r.StatusCode)
	}
	if r := fetchFile(s, "GET", "/x.txt", "Range", "bytes=0-6"); r.StatusCode != 206 || text(t, r) != "content" {
		t.Errorf("a range: %d, want 206", r.StatusCode)
	}
}

func TestRangesAreOfThePlainFile(t *testing.T) {
	body := strings.Repeat("0123456789", 1000)
	root := writeAll(t, t.TempDir(), map[string]string{"a.txt": body})
	settle(t, root)
	s := newTest(t, root, &fakePool{})
	plain := fetchFile(s, "GET", "/a.txt").Header.Get("Etag")
	encoded := fetchFile(s, "GET", "/a.txt", "Accept-Encoding", "br").Header.Get("Etag")
	r := fetchFile(s, "GET", "/a.txt", "Accept-Encoding", "br", "Range", "bytes=10-14", "If-Range", plain)
	if got := text(t, r); r.StatusCode != 206 || got != "01234" || r.Header.Get("Content-Encoding") != "" || r.Header.Get("Vary") == "" || r.Header.Get("Etag") != plain {
		t.Errorf("a range: %d %q %v", r.StatusCode, got, r.Header)
	}
	// The part would not fit what the client has.
	r = fetchFile(s, "GET", "/a.txt", "Accept-Encoding", "br", "Range", "bytes=10-14", "If-Range", encoded)
	if got := text(t, r); r.StatusCode != 200 || got != body {
		t.Errorf("a range of an encoded form: %d, %d bytes; want 200 and all", r.StatusCode, len(got))
	}
}

func TestPrecondition(t *testing.T) {
	modified := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	before, at, after := "Fri, 02 Jan 2026 03:04:04 GMT", "Fri, 02 Jan 2026 03:04:05 GMT", "Fri, 02 Jan 2026 03:04:06 GMT"
	for _, test := range []struct {
		tag    string
		header []string
		want   int
	}{
		{`"a"`, nil, 0},
		{`"a"`, []string{"If-Match", `"a"`}, 0},
		{`"a"`, []string{"If-Match", `"b", "a"`}, 0},
		{`"a"`, []string{"If-Match", `W/"a"`}, 412},
		{`W/"a"`, []string{"If-Match", `W/"a"`}, 412},
		{`"a"`, []string{"If-Match", "*"}, 0},
		{"", []string{"If-Match", `"a"`}, 412},
		{`"a"`, []string{"If-Match", `a`}, 412},
		{`"a"`, []string{"If-None-Match", `"a"`}, 304},
		{`"a"`, []string{"If-None-Match", `W/"a"`}, 304},
		{`W/"a"`, []string{"If-None-Match", `"a"`}, 304},
		{`"a,b"`, []string{"If-None-Match", `"x" , ,"a,b"`}, 304},
		{`"a"`, []string{"If-None-Match", `"x"`, "If-None-Match", `"a"`}, 304},
		{`"a"`, []string{"If-None-Match", `"ab"`}, 0},
		{`"a"`, []string{"If-None-Match", `"a`}, 0},
		{`"a"`, []string{"If-None-Match", `W/`}, 0},
		{"", []string{"If-None-Match", `""`}, 0},
		{"", []string{"If-None-Match", "*"}, 304},
		{`"a"`, []string{"If-None-Match", `"b"`, "If-Modified-Since", after}, 0},
		{`"a"`, []string{"If-Modified-Since", before}, 0},
		{`"a"`, []string{"If-Modified-Since", at}, 304},
		{`"a"`, []string{"If-Modified-Since", after}, 304},
		{`"a"`, []string{"If-Modified-Since", "yesterday"}, 0},
		{`"a"`, []string{"If-Unmodified-Since", before}, 412},
		{`"a"`, []string{"If-Unmodified-Since", at}, 0},
		{`"a"`, []string{"If-Match", `"a"`, "If-Unmodified-Since", before}, 0},
		{`"a"`, []string{"If-Match", `"b"`, "If-None-Match", `"a"`}, 412},
	} {
		r := &http.Request{Header: http.Header{}}
		for i := 0; i < len(test.header); i += 2 {
			r.Header.Add(test.header[i], test.header[i+1])
		}
		if got := precondition(r, test.tag, modified); got != test.want {
			t.Errorf("%s with %q: %d, want %d", test.tag, test.header, got, test.want)
		}
	}
}

func FuzzRangesAndConditions(f *testing.F) {
	for _, seed := range []string{"bytes=0-4", "bytes=-5", "bytes=5-", "bytes=0-0,9-", "bytes=9-1", "bytes=0-99999999999999999999", "lines=1"} {
		f.Add(seed, `"x", W/"y"`, `"x"`)
	}
	root := f.TempDir()
	content := []byte("0123456789")
	if err := os.WriteFile(filepath.Join(root, "a.txt"), content, 0o644); err != nil {
		f.Fatal(err)
	}
	c := DefaultConfig()
	c.Server.DocumentRoot = root
	s, err := newServer(c, &fakePool{}, testStores(f, c), quiet)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, ranges, tags, ifRange string) {
		r := fetchFile(s, "GET", "/a.txt", "Range", ranges, "If-None-Match", tags, "If-Range", ifRange)
		body, _ := io.ReadAll(r.Body)
		switch r.StatusCode {
		case 200:
			if !bytes.Equal(body, content) {
				t.Errorf("Range %q: 200 with %q", ranges, body)
			}
		case 206:
			if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") && !bytes.Contains(content, body) {
				t.Errorf("Range %q: %q is no part of the file", ranges, body)
			}
		case 304, 412, 416:
		default:
			t.Errorf("Range %q, If-None-Match %q, If-Range %q: %d", ranges, tags, ifRange, r.StatusCode)
		}
	})
}

func TestMIMETypesAndCacheRules(t *testing.T) {
	s := newTest(t, files(t, "a.foo", "assets/b.js", "assets/c.txt", "d.js"), &fakePool{}, func(c *Config) {
		c.Server.Static.MIMETypes = MIMETypes{".foo": "text/x-foo", ".js": "text/ecmascript"}
		c.Server.Static.CacheControl = "no-cache"
		c.Server.Static.CacheRules = []CacheRule{{"/assets/*.js", "immutable"}, {"/assets/*", "max-age=5"}, {"*.foo", ""}}
	})
	for target, want := range map[string][2]string{
		"/a.foo": {"text/x-foo", ""}, "/assets/b.js": {"text/ecmascript", "immutable"},
		"/assets/c.txt": {"text/plain; charset=utf-8", "max-age=5"}, "/d.js": {"text/ecmascript", "no-cache"},
	} {
		r := get(s, target)
		if got := [2]string{r.Header.Get("Content-Type"), r.Header.Get("Cache-Control")}; got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}

func BenchmarkServeFile(b *testing.B) {
	root := b.TempDir()
	if err := os.WriteFile(filepath.Join(root, "1k.bin"), bytes.Repeat([]byte("x"), 1024), 0o644); err != nil {
		b.Fatal(err)
	}
	c := DefaultConfig()
	c.Server.DocumentRoot = root
	s, err := newServer(c, &fakePool{}, testStores(b, c), quiet)
	if err != nil {
		b.Fatal(err)
	}
	settle(b, root)
	r := httptest.NewRequest("GET", "/1k.bin", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	h := http.Header{}
	w := &headerOnly{h}
	b.ReportAllocs()
	for b.Loop() {
		clear(h)
		s.ServeHTTP(w, r)
	}
}

// A headerOnly is a ResponseWriter that keeps the header.
type headerOnly struct{ header http.Header }

func (w *headerOnly) Header() http.Header         { return w.header }
func (w *headerOnly) WriteHeader(int)             {}
func (w *headerOnly) Write(p []byte) (int, error) { return len(p), nil }
