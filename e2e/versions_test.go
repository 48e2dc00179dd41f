package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quic-go/quic-go/http3"
)

// Everything that a site does with a request is the same for HTTP/1.1, HTTP/2 and
// HTTP/3. Each row is asked over all of them, by one server.

// A version is a client of one version of HTTP.
type version struct {
	name   string
	major  int
	url    string
	client *http.Client
}

// versions returns a client for each version, which does not decode by itself.
func (a *quicApp) versions() []version {
	of := func(p *http.Protocols) *http.Client {
		c := a.ca.client(p)
		c.Transport.(*http.Transport).DisableCompression = true
		return c
	}
	url := "https://" + a.app.Addr
	a.client.Transport.(*http3.Transport).DisableCompression = true
	return []version{{"HTTP/1.1", 1, url, of(http1)}, {"HTTP/2", 2, url, of(http2)}, {"HTTP/3", 3, a.URL, a.client}}
}

// ask asks and returns the answer with its body, which may be encoded.
func (v version) ask(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, v.url+path, in)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := v.client.Do(req)
	if err != nil {
		t.Fatalf("%s %s over %s: %v", method, path, v.name, err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s over %s: %v", method, path, v.name, err)
	}
	if resp.ProtoMajor != v.major {
		t.Fatalf("%s %s came over %s, want %s", method, path, resp.Proto, v.name)
	}
	return resp, string(got)
}

// versionTest is one row. Values of want are of the answer's header fields; "" is a
// field that must not be there.
type versionTest struct {
	method, path string
	header       []string
	status       int
	body         string // decoded; "*": any
	want         []string
}

const versionsTOML = `
[server]
fallback = ["$uri", "$uri/", "=404"]
error_pages = { 404 = "/errors/404.html", 403 = "/errors/403.php" }

[server.response]
headers = [["X-Site", "of all"]]

[server.static]
cache_rules = [["/assets/*", "max-age=60"]]
autoindex = false

[server.security]
blocked_paths = ["/vendor", "*.bak"]
allowed_php_paths = ["/*.php", "/errors"]
trusted_proxies = ["127.0.0.1"]

[[redirect]]
path = "/old/*"
to = "/new/$1"
status = 301

[[rewrite]]
path = "/api/*"
to = "/show.php?call=$1&$query_string"

[[auth]]
path = "/admin"
realm = "Staff"
users = ['` + alice + `']

[[access]]
path = "/office"
allow = ["10.0.0.0/8"]
`

func versionsFiles() map[string]string {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, "packed form") // a buffer takes everything
	_ = w.Close()
	return map[string]string{
		"index.php": `<?php echo "index";`,
		"show.php":  `<?php header('Content-Type: text/x-test'); echo json_encode([$_SERVER['REQUEST_URI'], $_SERVER['QUERY_STRING'], $_SERVER['REMOTE_ADDR']], JSON_UNESCAPED_SLASHES);`,
		"long.php":  `<?php header('Content-Type: text/plain'); header('ETag: "t"'); echo str_repeat('some output that gets smaller ', 200);`,
		"image.php": `<?php header('Content-Type: image/png'); echo str_repeat('some output that gets smaller ', 200);`,
		"stream.php": `<?php header('Content-Type: text/plain');
			for ($i = 0; $i < 4; $i++) { echo "part $i\n"; ob_flush(); flush();
			for ($n = 0; $n < 20000 && !file_exists($_GET['dir'] . '/' . $_GET['name'] . $i); $n++) { usleep(1000); clearstatcache(); } }
			echo "end\n";`,
		"a.txt": "0123456789", "long.txt": strings.Repeat("a line of text\n", 400), "assets/app.js": "the plain form", "assets/app.js.gz": packed.String(),
		"vendor/lib.txt": "vendor", "a.bak": "source", ".env": "secret", "admin/a.txt": "for staff", "office/a.txt": "office", "new/a.txt": "new", "dir/index.php": `<?php echo "dir";`,
		"errors/404.html": "<p>own page", "errors/403.php": `<?php echo "refused ", $_SERVER['REDIRECT_STATUS'], ' ', $_SERVER['REDIRECT_URL'];`,
	}
}

func TestVersionsAnswerAlike(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{TOML: versionsTOML, Files: versionsFiles()})
	vs := a.versions()
	first, _ := vs[0].ask(t, "GET", "/a.txt", "")
	tag, date := first.Header.Get("Etag"), first.Header.Get("Last-Modified")
	long, lines := strings.Repeat("some output that gets smaller ", 200), strings.Repeat("a line of text\n", 400)
	staff := "Basic YWxpY2U6d29uZGVybGFuZA==" // alice:wonderland
	tests := []versionTest{
		// Compression.
		{"GET", "/long.php", []string{"Accept-Encoding", "gzip, br, zstd"}, 200, long, []string{"Content-Encoding", "zstd", "Vary", "Accept-Encoding", "Etag", `W/"t"`}},
		{"GET", "/long.php", []string{"Accept-Encoding", "gzip;q=0.5, br"}, 200, long, []string{"Content-Encoding", "br", "Vary", "Accept-Encoding"}},
		{"GET", "/long.php", []string{"Accept-Encoding", "gzip"}, 200, long, []string{"Content-Encoding", "gzip", "Vary", "Accept-Encoding"}},
		{"GET", "/long.php", []string{"Accept-Encoding", "identity"}, 200, long, []string{"Content-Encoding", "", "Vary", "Accept-Encoding", "Etag", `"t"`}},
		{"GET", "/long.php", nil, 200, long, []string{"Content-Encoding", "", "Vary", "Accept-Encoding"}},
		{"HEAD", "/long.php", []string{"Accept-Encoding", "br"}, 200, "", []string{"Content-Encoding", "br", "Vary", "Accept-Encoding"}},
		{"GET", "/image.php", []string{"Accept-Encoding", "br"}, 200, long, []string{"Content-Encoding", "", "Vary", ""}},
		{"GET", "/long.txt", []string{"Accept-Encoding", "br"}, 200, lines, []string{"Content-Encoding", "br", "Vary", "Accept-Encoding"}},
		{"GET", "/long.txt", []string{"Accept-Encoding", "zstd"}, 200, lines, []string{"Content-Encoding", "zstd", "Vary", "Accept-Encoding"}},
		{"GET", "/long.txt", []string{"Accept-Encoding", "gzip"}, 200, lines, []string{"Content-Encoding", "gzip", "Vary", "Accept-Encoding"}},
		{"GET", "/long.txt", []string{"Accept-Encoding", "gzip", "Range", "bytes=0-6"}, 206, "a line ", []string{"Content-Encoding", "", "Content-Range", "bytes 0-6/6000"}},
		{"GET", "/assets/app.js", []string{"Accept-Encoding", "gzip"}, 200, "packed form", []string{"Content-Encoding", "gzip", "Vary", "Accept-Encoding", "Cache-Control", "max-age=60"}},
		{"GET", "/assets/app.js", nil, 200, "the plain form", []string{"Content-Encoding", "", "Vary", "Accept-Encoding", "Cache-Control", "max-age=60"}},
		{"GET", "/a.txt", []string{"Accept-Encoding", "gzip"}, 200, "0123456789", []string{"Content-Encoding", ""}}, // too small

		// Rules.
		{"GET", "/old/a.txt?q=1", nil, 301, "*", []string{"Location", "/new/a.txt?q=1"}},
		{"POST", "/old/a.txt", nil, 301, "*", []string{"Location", "/new/a.txt"}},
		{"GET", "/api/a%26b?q=1", nil, 200, `["/api/a%26b?q=1","call=a%26b&q=1","127.0.0.1"]`, []string{"Content-Type", "text/x-test;charset=UTF-8"}},
		{"GET", "/vendor/lib.txt", nil, 403, "refused 403 /vendor/lib.txt", []string{"X-Site", "of all"}},
		{"GET", "/%76endor/lib.txt", nil, 403, "*", nil},
		{"GET", "/a.bak", nil, 403, "*", nil},
		{"GET", "/.env", nil, 403, "refused 403 /.env", nil},
		{"GET", "/admin/a.txt", nil, 401, "401 Unauthorized\n", []string{"Www-Authenticate", `Basic realm="Staff", charset="UTF-8"`}},
		{"GET", "/admin/a.txt", []string{"Authorization", staff}, 200, "for staff", nil},
		{"GET", "/admin/a.txt", []string{"Authorization", staff + "x"}, 401, "*", nil},
		{"GET", "/office/a.txt", nil, 403, "*", nil},
		{"GET", "/office/a.txt", []string{"X-Forwarded-For", "10.1.2.3"}, 200, "office", nil},
		{"GET", "/office/a.txt", []string{"X-Forwarded-For", "11.1.2.3"}, 403, "*", nil},
		{"GET", "/show.php", []string{"X-Forwarded-For", "10.1.2.3"}, 200, `["/show.php","","10.1.2.3"]`, nil},

		// Files.
		{"GET", "/a.txt", nil, 200, "0123456789", []string{"Etag", tag, "Accept-Ranges", "bytes", "Content-Length", "10", "Content-Type", "text/plain; charset=utf-8"}},
		{"HEAD", "/a.txt", nil, 200, "", []string{"Etag", tag, "Content-Length", "10"}},
		{"GET", "/a.txt", []string{"Range", "bytes=2-4"}, 206, "234", []string{"Content-Range", "bytes 2-4/10", "Content-Length", "3"}},
		{"GET", "/a.txt", []string{"Range", "bytes=-2"}, 206, "89", []string{"Content-Range", "bytes 8-9/10"}},
		{"GET", "/a.txt", []string{"Range", "bytes=10-"}, 416, "*", []string{"Content-Range", "bytes */10"}},
		{"GET", "/a.txt", []string{"Range", "bytes=0-1", "If-Range", tag}, 206, "01", nil},
		{"GET", "/a.txt", []string{"Range", "bytes=0-1", "If-Range", `"x"`}, 200, "0123456789", nil},
		{"GET", "/a.txt", []string{"If-None-Match", tag}, 304, "", []string{"Etag", tag, "Content-Type", ""}},
		{"GET", "/a.txt", []string{"If-None-Match", `"x"`}, 200, "0123456789", nil},
		{"GET", "/a.txt", []string{"If-Modified-Since", date}, 304, "", nil},
		{"GET", "/a.txt", []string{"If-Match", `"x"`}, 412, "*", nil},
		{"POST", "/a.txt", nil, 405, "*", []string{"Allow", "GET, HEAD, OPTIONS"}},
		{"OPTIONS", "/a.txt", nil, 204, "", []string{"Allow", "GET, HEAD, OPTIONS"}},
		{"GET", "/dir", nil, 301, "*", []string{"Location", "/dir/"}},
		{"GET", "/dir/", nil, 200, "dir", nil},

		// Error pages.
		{"GET", "/nothing", nil, 404, "<p>own page", []string{"Content-Type", "text/html; charset=utf-8", "X-Site", "of all", "Etag", ""}},
		{"HEAD", "/nothing", nil, 404, "", []string{"Content-Type", "text/html; charset=utf-8"}},
		{"GET", "/%2e%2e/a.txt", nil, 400, "400 Bad Request\n", nil},
		{"GET", "/a%2fb", nil, 400, "400 Bad Request\n", nil},
		{"GET", "/%00", nil, 400, "400 Bad Request\n", nil},
		{"GET", "/%ff%c0%af", nil, 404, "<p>own page", nil}, // a name like any other
	}
	for _, v := range vs {
		for _, test := range tests {
			resp, raw := v.ask(t, test.method, test.path, "", test.header...)
			if resp.StatusCode != test.status {
				t.Errorf("%s: %s %s %q: %s, want %d", v.name, test.method, test.path, test.header, resp.Status, test.status)
				continue
			}
			if body := v.plain(t, resp, raw); test.body != "*" && body != test.body {
				t.Errorf("%s: %s %s %q: %q, want %q", v.name, test.method, test.path, test.header, body, test.body)
			}
			for i := 0; i < len(test.want); i += 2 {
				if got := strings.Join(resp.Header[test.want[i]], ", "); got != test.want[i+1] {
					t.Errorf("%s: %s %s %q: %s is %q, want %q", v.name, test.method, test.path, test.header, test.want[i], got, test.want[i+1])
				}
			}
		}
	}
}

// plain undoes the encoding of a body.
func (v version) plain(t *testing.T, resp *http.Response, raw string) string {
	t.Helper()
	if raw == "" {
		return ""
	}
	in, err := decoded(resp.Header.Get("Content-Encoding"), strings.NewReader(raw))
	if err != nil {
		t.Fatalf("%s: %v", v.name, err)
	}
	body, err := io.ReadAll(in)
	if err != nil {
		t.Fatalf("%s: %v", v.name, err)
	}
	return string(body)
}

// Two ranges are one body of parts, whose boundary is made up for each answer.
func TestVersionsSendSeveralRanges(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{Files: versionsFiles()})
	for _, v := range a.versions() {
		resp, body := v.ask(t, "GET", "/a.txt", "", "Range", "bytes=0-1,8-9")
		if resp.StatusCode != 206 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "multipart/byteranges; boundary=") ||
			!strings.Contains(body, "\r\n\r\n01\r\n") || !strings.Contains(body, "\r\n\r\n89\r\n") {
			t.Errorf("%s: %s %q", v.name, resp.Status, body)
		}
	}
}

// What a script flushed is there, decoded, before the script goes on.
func TestFlushReachesClientsOfAllVersionsThroughCompression(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := startHTTP3(t, appOptions{Files: versionsFiles()})
	for _, v := range a.versions() {
		for _, encoding := range []string{"br", "zstd", "gzip"} {
			name := filepath.Base(v.name) + encoding
			req, err := http.NewRequest("GET", v.url+"/stream.php?dir="+dir+"&name="+name, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept-Encoding", encoding)
			resp, err := v.client.Do(req)
			if err != nil {
				t.Fatalf("%s, %s: %v", v.name, encoding, err)
			}
			defer resp.Body.Close()
			if got := resp.Header.Get("Content-Encoding"); got != encoding || resp.ProtoMajor != v.major {
				t.Fatalf("%s: encoding %q, want %s", resp.Proto, got, encoding)
			}
			body, err := decoded(encoding, resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(body)
			for i := range 4 {
				line, err := in.ReadString('\n')
				if want := fmt.Sprintf("part %d\n", i); line != want {
					t.Fatalf("%s, %s: %q, %v; want %q", v.name, encoding, line, err, want)
				}
				writeFiles(t, dir, map[string]string{fmt.Sprint(name, i): ""})
			}
			if rest, err := io.ReadAll(in); err != nil || string(rest) != "end\n" {
				t.Errorf("%s, %s: the rest is %q, %v", v.name, encoding, rest, err)
			}
		}
	}
}
