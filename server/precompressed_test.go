package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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

func TestOlderSiblingIsNotSent(t *testing.T) {
	root := writeAll(t, t.TempDir(), map[string]string{"a.css": "a{}", "a.css.gz": "old"})
	if err := os.Chtimes(filepath.Join(root, "a.css.gz"), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if r := fetchFile(newTest(t, root, &fakePool{}), "GET", "/a.css", "Accept-Encoding", "gzip"); text(t, r) != "a{}" {
		t.Errorf("sent the sibling that is older than the file: %v", r.Header)
	}
}
