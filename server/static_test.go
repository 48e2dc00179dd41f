package server

import (
	"bytes"
	"compress/gzip"
	"fmt"
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

func TestFileIsSentInTheFormThatTheClientLikesBest(t *testing.T) {
	long := strings.Repeat("some text that gets smaller ", 1000)
	huge := strings.Repeat("more than is encoded in one piece ", 40_000)
	root := writeAll(t, t.TempDir(), map[string]string{
		"long.css": long, "huge.txt": huge, "short.css": "a{}", "photo.jpg": long,
		"pre.js": long, "pre.js.br": "not really brotli", "pre.js.gz": "not really gzip",
		"photo2.jpg": long, "photo2.jpg.gz": "not really gzip",
	})
	settle(t, root)
	s := newTest(t, root, &fakePool{})
	const all = "gzip, deflate, br, zstd"
	for _, test := range []struct {
		target, accept string
		status         int
		encoding       string
		vary, length   bool
	}{
		{"/long.css", "", 200, "", true, true},
		{"/long.css", all, 200, "br", true, true},
		{"/long.css", "gzip", 200, "gzip", true, true},
		{"/long.css", "zstd, gzip", 200, "zstd", true, true},
		{"/long.css", "br;q=0, zstd;q=0.1, gzip;q=0.2", 200, "gzip", true, true},
		{"/long.css", "identity;q=0, compress", 406, "", true, false},
		{"/huge.txt", all, 200, "zstd", true, false},
		{"/huge.txt", "br", 200, "br", true, false},
		{"/huge.txt", "", 200, "", true, true},
		{"/short.css", all, 200, "", false, true},
		{"/photo.jpg", all, 200, "", false, true},
		{"/photo.jpg", "identity;q=0, gzip", 200, "gzip", false, true},
		{"/photo.jpg", "*;q=0", 406, "", false, false},
		{"/pre.js", all, 200, "br", true, true},
		{"/pre.js", "gzip", 200, "gzip", true, true},
		{"/pre.js", "zstd", 200, "zstd", true, true}, // there is none: encoded now
		{"/pre.js", "", 200, "", true, true},
		{"/photo2.jpg", "gzip", 200, "gzip", true, true},
		{"/photo2.jpg", "br", 200, "", true, true},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			r := fetchFile(s, method, test.target, "Accept-Encoding", test.accept)
			if r.StatusCode != test.status || r.Header.Get("Content-Encoding") != test.encoding {
				t.Errorf("%s %s for %q: %d, encoding %q; want %d, %q", method, test.target, test.accept, r.StatusCode, r.Header.Get("Content-Encoding"), test.status, test.encoding)
				continue
			}
			if got := r.Header.Get("Vary") == "Accept-Encoding"; got != test.vary && r.StatusCode == 200 {
				t.Errorf("%s %s for %q: Vary %q", method, test.target, test.accept, r.Header["Vary"])
			}
			if got := r.Header.Get("Content-Length") != ""; r.StatusCode == 200 && got != test.length {
				t.Errorf("%s %s for %q: Content-Length %q", method, test.target, test.accept, r.Header.Get("Content-Length"))
			}
			if method == "HEAD" || r.StatusCode != 200 || strings.Contains(test.target, "pre") && test.encoding != "zstd" || strings.Contains(test.target, "photo") {
				continue
			}
			want := map[string]string{"/long.css": long, "/huge.txt": huge, "/short.css": "a{}", "/pre.js": long}[test.target]
			if got := decode(t, r); got != want {
				t.Errorf("%s for %q: %d bytes, want %d", test.target, test.accept, len(got), len(want))
			}
		}
	}
}

func TestEveryFormHasATagOfItsOwn(t *testing.T) {
	root := writeAll(t, t.TempDir(), map[string]string{"a.css": strings.Repeat("a{b:c}", 1000), "b.css": strings.Repeat("a{b:c}", 1000), "b.css.gz": "other"})
	settle(t, root)
	s := newTest(t, root, &fakePool{})
	seen := map[string]string{}
	for _, target := range []string{"/a.css", "/b.css"} {
		for _, accept := range []string{"identity", "gzip", "br", "zstd"} {
			r := fetchFile(s, "GET", target, "Accept-Encoding", accept)
			tag := r.Header.Get("Etag")
			if !strings.HasPrefix(tag, `"`) {
				t.Errorf("%s as %s has the tag %q, want a strong one", target, accept, tag)
			}
			body := text(t, r)
			if before, ok := seen[tag]; ok && before != body {
				t.Errorf("%s as %s has the tag of other bytes", target, accept)
			}
			seen[tag] = body
			if r := fetchFile(s, "GET", target, "Accept-Encoding", accept, "If-None-Match", tag); r.StatusCode != 304 || r.Header.Get("Vary") == "" {
				t.Errorf("%s as %s is %d for its own tag, Vary %q; want 304", target, accept, r.StatusCode, r.Header["Vary"])
			}
			if r := fetchFile(s, "GET", target, "Accept-Encoding", "identity", "If-None-Match", tag); accept != "identity" && r.StatusCode != 200 {
				t.Errorf("%s plain is %d for the tag of %s, want 200", target, r.StatusCode, accept)
			}
		}
	}
	if len(seen) != 5 {
		t.Errorf("%d tags, want 5: two files of one content have the same, and one has its own gzip", len(seen))
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

func TestChangedFileIsSeenAtOnce(t *testing.T) {
	root := writeAll(t, t.TempDir(), map[string]string{"a.txt": strings.Repeat("one ", 1000)})
	settle(t, root)
	s := newTest(t, root, &fakePool{})
	var tags []string
	for _, content := range []string{"one ", "two ", "six "} {
		writeAll(t, root, map[string]string{"a.txt": strings.Repeat(content, 1000)})
		for range 2 { // the second may come from memory
			for _, accept := range []string{"", "gzip"} {
				r := fetchFile(s, "GET", "/a.txt", "Accept-Encoding", accept)
				if got := decode(t, r); !strings.HasPrefix(got, content) || len(got) != 4000 {
					t.Errorf("%q, encoded %q: got %.8q", content, accept, got)
				}
				tags = append(tags, r.Header.Get("Etag"))
			}
			settle(t, root)
		}
	}
	if !strings.HasPrefix(tags[0], "W/") {
		t.Errorf("a file that was just written has the tag %s, want a weak one", tags[0])
	}
	if err := os.Remove(filepath.Join(root, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if r := get(s, "/a.txt"); text(t, r) != "404 Not Found\n" {
		t.Errorf("a file that was removed: %d, want 404", r.StatusCode)
	}
}

func TestOlderSiblingIsNotSent(t *testing.T) {
	root := writeAll(t, t.TempDir(), map[string]string{"a.css": "a{}", "a.css.gz": "old"})
	if err := os.Chtimes(filepath.Join(root, "a.css.gz"), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if r := fetchFile(newTest(t, root, &fakePool{}), "GET", "/a.css", "Accept-Encoding", "gzip"); text(t, r) != "a{}" {
		t.Errorf("sent the sibling that is older than the file: %v", r.Header)
	}
}

func TestFileMemoryIsBounded(t *testing.T) {
	root := t.TempDir()
	for i := range 40 {
		writeAll(t, root, map[string]string{fmt.Sprintf("%d.txt", i): strings.Repeat("x", 10<<10)})
	}
	settle(t, root)
	memory := newFileMemory(100 << 10)
	r, err := openRoot(root, true, "", extensions{".php"}, &fileKinds{}, memory, quiet)
	if err != nil {
		t.Fatal(err)
	}
	tree := r.tree(time.Now())
	for i := range 40 {
		f, err := tree.file(fmt.Sprintf("%d.txt", i), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		memory.keepForm(f, gzipCoding, &encodedForm{body: make([]byte, 1<<10)})
		if _, err := tree.file("0.txt", time.Now()); err != nil { // the one that is used all the time
			t.Fatal(err)
		}
	}
	if memory.used > memory.max || memory.used < memory.max/2 {
		t.Errorf("%d bytes are kept, want at most %d and not much less", memory.used, memory.max)
	}
	if len(memory.ring) != len(tree.files.files) {
		t.Errorf("%d files are counted, %d kept", len(memory.ring), len(tree.files.files))
	}
	if tree.files.get("0.txt") == nil {
		t.Error("what is used all the time was dropped")
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
