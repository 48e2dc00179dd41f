package e2e

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// decoded undoes a Content-Encoding.
func decoded(encoding string, body io.Reader) (io.Reader, error) {
	switch encoding {
	case "gzip":
		return gzip.NewReader(body)
	case "br":
		return brotli.NewReader(body), nil
	case "zstd":
		return zstd.NewReader(body, zstd.WithDecoderConcurrency(1))
	}
	return body, nil
}

// fetchEncoded asks with Accept-Encoding and returns the answer with the body as it
// was before it was encoded.
func (a *app) fetchEncoded(path, accept string, header ...string) (*http.Response, string) {
	a.t.Helper()
	resp, body := a.do(a.request("GET", path, "", append(header, "Accept-Encoding", accept)...))
	plain, err := decoded(resp.Header.Get("Content-Encoding"), strings.NewReader(body))
	if err != nil {
		a.t.Fatalf("GET %s: %v", path, err)
	}
	text, err := io.ReadAll(plain)
	if err != nil {
		a.t.Fatalf("GET %s as %s: %v", path, resp.Header.Get("Content-Encoding"), err)
	}
	return resp, string(text)
}

func TestScriptOutputIsCompressed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("some output that gets smaller ", 1000)
	print := `echo str_repeat("some output that gets smaller ", 1000);`
	a := startApp(t, appOptions{
		TOML: "[server.response]\ncompression_level = 5\n",
		Files: map[string]string{
			"page.php":      `<?php header('ETag: "abc"'); header('Vary: Cookie'); ` + print,
			"huge.php":      `<?php for ($i = 0; $i < 100; $i++) ` + print,
			"small.php":     `<?php echo "small";`,
			"image.php":     `<?php header('Content-Type: image/png'); ` + print,
			"json.php":      `<?php header('Content-Type: application/problem+json'); ` + print,
			"events.php":    `<?php header('Content-Type: text/event-stream'); ` + print,
			"encoded.php":   `<?php ob_start('ob_gzhandler'); ` + print,
			"as-is.php":     `<?php header('Cache-Control: private, no-transform'); ` + print,
			"part.php":      `<?php http_response_code(206); header('Content-Range: bytes 0-29999/60000'); ` + print,
			"unchanged.php": `<?php http_response_code(304); header('ETag: "abc"');`,
			"missing.php":   `<?php http_response_code(404); ` + print,
			"length.php":    `<?php header('Content-Length: 30000'); ` + print,
			"short.php":     `<?php header('Content-Length: 40000'); ` + print,
		}})
	for _, test := range []struct {
		path, accept, encoding string
		vary                   string
	}{
		{"/page.php", "gzip, deflate, br, zstd", "zstd", "Cookie, Accept-Encoding"},
		{"/page.php", "br, gzip", "br", "Cookie, Accept-Encoding"},
		{"/page.php", "gzip", "gzip", "Cookie, Accept-Encoding"},
		{"/page.php", "gzip;q=0", "", "Cookie, Accept-Encoding"},
		{"/page.php", "identity", "", "Cookie, Accept-Encoding"},
		{"/huge.php", "br", "br", "Accept-Encoding"},
		{"/huge.php", "zstd", "zstd", "Accept-Encoding"},
		{"/huge.php", "gzip", "gzip", "Accept-Encoding"},
		{"/small.php", "gzip", "", ""},
		{"/small.php", "gzip, identity;q=0", "gzip", "Accept-Encoding"},
		{"/image.php", "gzip", "", ""},
		{"/json.php", "gzip", "gzip", "Accept-Encoding"},
		{"/events.php", "gzip", "", ""},
		{"/encoded.php", "gzip, br", "gzip", "Accept-Encoding"}, // by PHP
		{"/as-is.php", "gzip", "", ""},
		{"/missing.php", "gzip", "gzip", "Accept-Encoding"},
		{"/length.php", "gzip", "gzip", "Accept-Encoding"},
	} {
		resp, body := a.fetchEncoded(test.path, test.accept)
		want := long
		switch test.path {
		case "/huge.php":
			want = strings.Repeat(long, 100)
		case "/small.php":
			want = "small"
		}
		if body != want {
			t.Errorf("GET %s for %q: %d bytes, want %d", test.path, test.accept, len(body), len(want))
		}
		if got := resp.Header.Get("Content-Encoding"); got != test.encoding {
			t.Errorf("GET %s for %q: encoding %q, want %q", test.path, test.accept, got, test.encoding)
		}
		if got := strings.Join(resp.Header["Vary"], ", "); got != test.vary {
			t.Errorf("GET %s for %q: Vary %q, want %q", test.path, test.accept, got, test.vary)
		}
		if tag := resp.Header.Get("Etag"); test.path == "/page.php" && tag != map[bool]string{true: `"abc"`, false: `W/"abc"`}[test.encoding == ""] {
			t.Errorf("GET %s for %q: the tag is %s", test.path, test.accept, tag)
		}
		if test.path == "/page.php" && resp.ContentLength < 0 {
			t.Errorf("GET %s for %q: no length, though the page was whole", test.path, test.accept)
		}
	}
	if resp, _ := a.do(a.request("GET", "/part.php", "", "Accept-Encoding", "gzip")); resp.Header.Get("Content-Encoding") != "" {
		t.Errorf("a part was encoded: %v", resp.Header)
	}
	if resp, _ := a.do(a.request("GET", "/unchanged.php", "", "Accept-Encoding", "gzip")); resp.StatusCode != 304 || resp.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("304: %s, Vary %q", resp.Status, resp.Header["Vary"])
	}
	if resp, _ := a.do(a.request("HEAD", "/page.php", "", "Accept-Encoding", "gzip")); resp.Header.Get("Content-Encoding") != "gzip" || resp.ContentLength > 0 {
		t.Errorf("HEAD: %v, length %d; want what GET says", resp.Header, resp.ContentLength)
	}
	if _, _, err := fetch(a.request("GET", "/short.php", "", "Accept-Encoding", "gzip")); err == nil {
		t.Error("a body that is shorter than announced looks complete")
	}
	if resp, _ := a.fetchEncoded("/page.php", "gzip", "Cache-Control", "no-transform"); resp.Header.Get("Content-Encoding") != "" {
		t.Error("a client that wants no transformation got one")
	}
}

// A script that dies in the middle must not leave a body that looks complete.
func TestCompressedAnswerOfACrashIsCut(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"crash.php": `<?php
		echo str_repeat("some output", 1000); ob_flush(); flush(); posix_kill(getmypid(), SIGKILL);`}})
	for _, encoding := range []string{"br", "zstd", "gzip"} {
		if resp, _, err := fetch(a.request("GET", "/crash.php", "", "Accept-Encoding", encoding)); err == nil {
			t.Errorf("%s: %s looks complete", encoding, resp.Status)
		}
	}
}

func TestCompressionOff(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[server.response]\ncompression = false\n",
		Files: map[string]string{"a.css": repeat(5000), "b.css": repeat(5000), "b.css.gz": "gz", "p.php": `<?php echo str_repeat("x", 5000);`}})
	for path, want := range map[string]string{"/a.css": "", "/p.php": "", "/b.css": "gzip"} {
		resp, _ := a.do(a.request("GET", path, "", "Accept-Encoding", "gzip"))
		if got := resp.Header.Get("Content-Encoding"); got != want {
			t.Errorf("GET %s: encoding %q, want %q", path, got, want)
		}
		if got := resp.Header.Get("Vary") != ""; got != (want != "") {
			t.Errorf("GET %s: Vary %q", path, resp.Header["Vary"])
		}
	}
}

// Clients that are not written in Go decode what we send.
func TestCurlDecodesWhatWeEncode(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"a.css": repeat(100_000), "p.php": `<?php for ($i = 0; $i < 20000; $i++) echo $i, "\n";`}})
	for _, path := range []string{"/a.css", "/p.php"} {
		_, want := a.fetchEncoded(path, "identity")
		for _, encoding := range []string{"br", "zstd", "gzip"} {
			cmd := exec.Command("curl", "-sS", "--max-time", maxTime, "--compressed", "-H", "Accept-Encoding: "+encoding, "-w", "%header{content-encoding}", "-o", "-", a.URL+path)
			cmd.Stderr = os.Stderr
			got, err := cmd.Output()
			if err != nil || string(got) != want+encoding {
				t.Errorf("curl %s as %s: %d bytes, %v; want %d", path, encoding, len(got), err, len(want))
			}
		}
	}
}

func TestPrecompressedFiles(t *testing.T) {
	t.Parallel()
	pack := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, text) // a buffer takes everything
		_ = w.Close()
		return b.String()
	}
	a := startApp(t, appOptions{Files: map[string]string{
		"app.js": repeat(3_000_000), "app.js.gz": pack("packed " + repeat(3_000_000)), ".htaccess": "secret", ".htaccess.gz": "secret"}})
	resp, body := a.fetchEncoded("/app.js", "gzip")
	if body != "packed "+repeat(3_000_000) || resp.Header.Get("Content-Type") != "text/javascript; charset=utf-8" || resp.ContentLength < 0 {
		t.Errorf("%s, %d bytes, %v; want the file beside it", resp.Status, len(body), resp.Header)
	}
	tag := resp.Header.Get("Etag")
	resp, part := a.do(a.request("GET", "/app.js", "", "Accept-Encoding", "gzip", "Range", "bytes=0-1", "If-Range", tag))
	if resp.StatusCode != 206 || part != "\x1f\x8b" || resp.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("a range of the packed file: %s %q %v", resp.Status, part, resp.Header)
	}
	if resp, _ := a.do(a.request("GET", "/app.js", "", "Accept-Encoding", "identity", "Range", "bytes=0-1", "If-Range", tag)); resp.StatusCode != 200 {
		t.Errorf("a range of the plain file with the tag of the packed one: %s, want 200", resp.Status)
	}
	if resp, _ := a.do(a.request("GET", "/.htaccess", "", "Accept-Encoding", "gzip")); resp.StatusCode != 403 {
		t.Errorf("a hidden file with a packed form: %s, want 403", resp.Status)
	}
}
