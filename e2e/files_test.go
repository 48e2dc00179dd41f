package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestStaticFile(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[server.static]\ncache_control = \"public, max-age=60\"\n",
		Files: map[string]string{
			"a.txt":          "0123456789",
			"style.css":      "body {}",
			"app.js":         "1",
			"page.html":      "<p>",
			"data.json":      "{}",
			"image.svg":      "<svg/>",
			"unknown.xyz":    "<script>alert(1)</script>",
			"no-extension":   "<script>alert(1)</script>",
			"dir/b c+d é.md": "deep",
			"empty.txt":      "",
		}})
	for path, want := range map[string]struct{ body, kind string }{
		"/a.txt":                        {"0123456789", "text/plain; charset=utf-8"},
		"/style.css":                    {"body {}", "text/css; charset=utf-8"},
		"/app.js":                       {"1", "text/javascript; charset=utf-8"},
		"/page.html":                    {"<p>", "text/html; charset=utf-8"},
		"/data.json":                    {"{}", "application/json"},
		"/image.svg":                    {"<svg/>", "image/svg+xml"},
		"/unknown.xyz":                  {"<script>alert(1)</script>", ""},
		"/no-extension":                 {"<script>alert(1)</script>", "application/octet-stream"},
		"/dir/b%20c+d%20%C3%A9.md":      {"deep", "text/markdown; charset=utf-8"},
		"/dir//./b%20c%2Bd%20%c3%a9.md": {"deep", "text/markdown; charset=utf-8"},
		"/empty.txt":                    {"", "text/plain; charset=utf-8"},
		"/a.txt?any=query":              {"0123456789", "text/plain; charset=utf-8"},
	} {
		resp, body := a.getExactly(path)
		if resp.StatusCode != 200 || body != want.body || resp.ContentLength != int64(len(want.body)) {
			t.Errorf("GET %s: %s %q, length %d; want 200 %q", path, resp.Status, body, resp.ContentLength, want.body)
		}
		kind := resp.Header.Get("Content-Type")
		if kind == "text/html; charset=utf-8" && want.kind != kind || want.kind != "" && kind != want.kind {
			t.Errorf("GET %s: Content-Type %q, want %q", path, kind, want.kind)
		}
		if got := resp.Header.Get("Cache-Control"); got != "public, max-age=60" {
			t.Errorf("GET %s: Cache-Control %q", path, got)
		}
		if resp.Header.Get("Etag") == "" || resp.Header.Get("Last-Modified") == "" {
			t.Errorf("GET %s: %v, want a validator", path, resp.Header)
		}
	}
}

func TestStaticFileHeadAndOtherMethods(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"a.txt": "0123456789"}})
	resp, body := a.do(a.request("HEAD", "/a.txt", ""))
	if resp.StatusCode != 200 || body != "" || resp.ContentLength != 10 || resp.Header.Get("Etag") == "" {
		t.Errorf("HEAD: %s %q, length %d", resp.Status, body, resp.ContentLength)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "TRACE", "MKCOL"} {
		resp, _ := a.do(a.request(method, "/a.txt", ""))
		if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("%s: %s, Allow %q; want 405", method, resp.Status, resp.Header.Get("Allow"))
		}
	}
	if resp, _ := a.do(a.request("OPTIONS", "/a.txt", "")); resp.StatusCode != http.StatusNoContent || resp.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("OPTIONS: %s, Allow %q; want 204", resp.Status, resp.Header.Get("Allow"))
	}
	if got, err := os.ReadFile(filepath.Join(a.options.Root, "a.txt")); err != nil || string(got) != "0123456789" {
		t.Errorf("the file is %q, %v", got, err)
	}
}

func TestStaticFileRanges(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"a.txt": "0123456789"}})
	for _, test := range []struct {
		header       string
		status       int
		body, extent string
	}{
		{"bytes=2-4", 206, "234", "bytes 2-4/10"},
		{"bytes=7-", 206, "789", "bytes 7-9/10"},
		{"bytes=-2", 206, "89", "bytes 8-9/10"},
		{"bytes=8-100", 206, "89", "bytes 8-9/10"},
		{"bytes=10-", 416, "", "bytes */10"},
		{"bytes=nonsense", 416, "", ""},
		{"bytes=4-2", 416, "", ""},
		{"bytes=-0", 200, "0123456789", ""},
		{"bytes=0-0, -00", 200, "0123456789", ""},
		{"bytes=0-0,-1", 206, "*", ""},           // parts
		{"bytes=0-9,0-9", 200, "0123456789", ""}, // the whole is shorter
		{"bytes=" + strings.Repeat("1-1,", 64) + "1-1", 200, "0123456789", ""},
		{"lines=0-1", 200, "0123456789", ""},
		{"0-1", 200, "0123456789", ""},
		{"", 200, "0123456789", ""},
	} {
		header := []string{}
		if test.header != "" {
			header = []string{"Range", test.header}
		}
		resp, body := a.do(a.request("GET", "/a.txt", "", header...))
		if resp.StatusCode != test.status || test.status < 400 && test.body != "*" && body != test.body || resp.Header.Get("Content-Range") != test.extent {
			t.Errorf("Range %q: %s %q, Content-Range %q; want %d %q %q", test.header,
				resp.Status, body, resp.Header.Get("Content-Range"), test.status, test.body, test.extent)
		}
	}
	resp, body := a.do(a.request("GET", "/a.txt", "", "Range", "bytes=0-1,8-9"))
	if resp.StatusCode != 206 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "multipart/byteranges; boundary=") ||
		!strings.Contains(body, "\r\n\r\n01\r\n") || !strings.Contains(body, "\r\n\r\n89\r\n") {
		t.Errorf("two ranges: %s %q", resp.Status, body)
	}

	got, err := exec.Command("curl", "-sS", "--max-time", maxTime, "-C", "4", a.URL+"/a.txt").Output()
	if err != nil || string(got) != "456789" {
		t.Errorf("curl -C 4 got %q, %v", got, err)
	}
}

func TestStaticFileConditions(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"a.txt": "0123456789"}})
	first, _ := a.get("/a.txt")
	tag, date := first.Header.Get("Etag"), first.Header.Get("Last-Modified")
	for _, test := range []struct {
		status int
		header []string
	}{
		{304, []string{"If-None-Match", tag}},
		{304, []string{"If-None-Match", `"x", ` + tag}},
		{304, []string{"If-None-Match", "W/" + tag}},
		{304, []string{"If-None-Match", "*"}},
		{200, []string{"If-None-Match", `"x"`}},
		{304, []string{"If-Modified-Since", date}},
		{200, []string{"If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"}},
		{200, []string{"If-None-Match", `"x"`, "If-Modified-Since", date}},
		{412, []string{"If-Match", `"x"`}},
		{200, []string{"If-Match", tag}},
		{412, []string{"If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"}},
		{206, []string{"Range", "bytes=0-1", "If-Range", tag}},
		{200, []string{"Range", "bytes=0-1", "If-Range", `"x"`}},
		{200, []string{"Range", "bytes=0-1", "If-Range", "W/" + tag}}, // RFC 9110 §13.1.5: strong only
		{206, []string{"Range", "bytes=0-1", "If-Range", date}},
		{200, []string{"Range", "bytes=0-1", "If-Range", "Thu, 01 Jan 1970 00:00:00 GMT"}},
		{200, []string{"Range", "bytes=0-1", "If-Range", "nonsense"}},
		{200, []string{"Range", "bytes=0-1", "Range", "bytes=2-3"}},
		{304, []string{"Range", "bytes=0-1", "If-None-Match", tag}}, // it comes first
		{412, []string{"Range", "bytes=0-1", "If-Match", `"x"`}},
	} {
		resp, body := a.do(a.request("GET", "/a.txt", "", test.header...))
		if resp.StatusCode != test.status || test.status == 304 && body != "" {
			t.Errorf("%q: %s %q, want %d", test.header, resp.Status, body, test.status)
		}
	}
	writeFiles(t, a.options.Root, map[string]string{"a.txt": "9876543210"})
	if resp, body := a.do(a.request("GET", "/a.txt", "", "If-None-Match", tag)); resp.StatusCode != 200 || body != "9876543210" {
		t.Errorf("behind a change: %s %q, want the new file", resp.Status, body)
	}
}

func TestLargeStaticFile(t *testing.T) {
	t.Parallel()
	want := repeat(5_000_000)
	a := startApp(t, appOptions{Files: map[string]string{"large.bin": want}})
	resp, err := http.Get(a.URL + "/large.bin")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != want {
		t.Errorf("%d bytes, %v; want %d", len(body), err, len(want))
	}
}

func TestIndexFiles(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[server]\nindex_files = [\"main.php\", \"main.html\"]\nfallback = [\"$uri\", \"$uri/\", \"=404\"]\n",
		Files: map[string]string{
			"main.php":       `<?php echo "root ", $_SERVER['SCRIPT_NAME'];`,
			"a/main.html":    "page of a",
			"b/main.php":     `<?php echo "script of b ", $_SERVER['SCRIPT_NAME'];`,
			"b/main.html":    "page of b",
			"c/index.php":    `<?php echo "not an index here";`,
			"d/main.php/x":   "a directory that is called like an index",
			"d/main.html":    "page of d",
			"name.dir/a.txt": "file",
		}})
	for path, want := range map[string]string{
		"/":               "root /main.php",
		"/?x=1":           "root /main.php",
		"//":              "root /main.php",
		"/./":             "root /main.php",
		"/a/":             "page of a",
		"/b/":             "script of b /b/main.php",
		"/b/main.html":    "page of b",
		"/d/":             "page of d",
		"/name.dir/a.txt": "file",
	} {
		if resp, body := a.getExactly(path); resp.StatusCode != 200 || body != want {
			t.Errorf("GET %s: %s %q, want %q", path, resp.Status, body, want)
		}
	}
	for _, path := range []string{"/c/", "/c", "/nothing/", "/name.dir/", "/a/nothing"} {
		if resp, body := a.getExactly(path); resp.StatusCode != 404 || strings.Contains(body, "index") || strings.Contains(body, "a.txt") {
			t.Errorf("GET %s: %s %q, want 404", path, resp.Status, body)
		}
	}
	for path, want := range map[string]string{"/a": "/a/", "/b?x=%20y": "/b/?x=%20y", "//b": "/b/"} {
		if resp, _ := a.getExactly(path); resp.StatusCode != 301 || resp.Header.Get("Location") != want {
			t.Errorf("GET %s: %s to %q, want 301 to %q", path, resp.Status, resp.Header.Get("Location"), want)
		}
	}
}

func TestHiddenFiles(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"index.php":                   `<?php echo "front controller";`,
		".env":                        "SECRET=1",
		".git/config":                 "secret",
		"a/.htaccess":                 "secret",
		".well-known/a.txt":           "well known",
		".well-known/acme/.token":     "secret",
		".well-known.d/x":             "secret",
		"a/.well-known/x":             "secret",
		".hidden.php":                 `<?php echo "secret";`,
		".well-known/script.php":      `<?php echo "well known script";`,
		"...":                         "secret",
		".well-known/..a":             "secret",
		"plain.txt":                   "plain",
		"dir.with.dots/v1.2.3.tar.gz": "plain",
	}
	secret := []string{"/.env", "/%2eenv", "/.git/config", "/.git", "/.git/", "/a/.htaccess", "/a/%2Ehtaccess", "//.env", "/./.env",
		"/.well-known/acme/.token", "/.well-known.d/x", "/a/.well-known/x", "/.hidden.php", "/...", "/.well-known/..a", "/.nothing", "/.env/", "/.env?x"}
	public := map[string]string{
		"/.well-known/a.txt": "well known", "/%2ewell-known/a.txt": "well known", "/.well-known/script.php": "well known script",
		"/plain.txt": "plain", "/dir.with.dots/v1.2.3.tar.gz": "plain", "/.well-known/nothing": "front controller",
	}
	for mode, status := range map[string]int{"deny": 403, "ignore": 404, "allow": 200} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			a := startApp(t, appOptions{Files: files, TOML: fmt.Sprintf("[server.static]\nhidden_files = %q\n", mode)})
			for path, want := range public {
				if resp, body := a.getExactly(path); resp.StatusCode != 200 || body != want {
					t.Errorf("GET %s: %s %q, want %q", path, resp.Status, body, want)
				}
			}
			if mode == "allow" {
				if _, body := a.get("/.env"); body != "SECRET=1" {
					t.Errorf("/.env: %q, want it served", body)
				}
				return
			}
			for _, path := range secret {
				if resp, body := a.getExactly(path); resp.StatusCode != status || strings.Contains(strings.ToLower(body), "secret") {
					t.Errorf("GET %s: %s %q, want %d", path, resp.Status, body, status)
				}
			}
		})
	}
}

// The root itself is a symbolic link here, as for a release that is switched.
func TestSymbolicLinks(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	writeFiles(t, outside, map[string]string{"secret.txt": "secret", "secret.php": `<?php echo "secret";`})
	one, two := t.TempDir(), t.TempDir()
	writeFiles(t, one, map[string]string{"a.txt": "release one", "dir/b.txt": "inside", "index.php": `<?php echo "one ", __DIR__ === $_SERVER['DOCUMENT_ROOT'];`})
	writeFiles(t, two, map[string]string{"a.txt": "release two", "index.php": `<?php echo "two ", __DIR__ === $_SERVER['DOCUMENT_ROOT'];`})
	root := filepath.Join(t.TempDir(), "current")
	for link, target := range map[string]string{
		root:                 one,
		one + "/out.txt":     outside + "/secret.txt",
		one + "/out.php":     outside + "/secret.php",
		one + "/out":         outside,
		one + "/relative":    "../" + filepath.Base(outside),
		one + "/in.txt":      "dir/b.txt",
		one + "/absolute":    one + "/dir",
		one + "/dangling":    "nothing",
		one + "/loop":        "loop",
		one + "/device":      "/dev/zero",
		one + "/etc-passwd":  "/etc/passwd",
		one + "/dir/up.txt":  "../a.txt",
		one + "/dir/far.txt": "../../../../../../etc/passwd",
	} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	a := startApp(t, appOptions{Root: root})
	for path, want := range map[string]string{
		"/": "one 1", "/a.txt": "release one", "/in.txt": "inside", "/absolute/b.txt": "inside", "/dir/up.txt": "release one",
	} {
		if resp, body := a.get(path); resp.StatusCode != 200 || body != want {
			t.Errorf("GET %s: %s %q, want %q", path, resp.Status, body, want)
		}
	}
	for _, path := range []string{"/out.txt", "/out.php", "/out/secret.txt", "/out/secret.php", "/relative/secret.txt", "/device", "/etc-passwd", "/dir/far.txt"} {
		if resp, body := a.get(path); resp.StatusCode < 400 || strings.Contains(body, "secret") || strings.Contains(body, "root:") {
			t.Errorf("GET %s: %s %.50q, want a refusal", path, resp.Status, body)
		}
	}

	next := root + ".next"
	if err := os.Symlink(two, next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, root); err != nil {
		t.Fatal(err)
	}
	err := eventually(func() error {
		if err := wantBody(a.request("GET", "/a.txt", ""), "release two"); err != nil {
			return err
		}
		return wantBody(a.request("GET", "/", ""), "two 1")
	})
	if err != nil {
		t.Errorf("the root was switched: %v", err)
	}
}

func TestConfigurationBelowTheRootIsNeverServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"ephpm.toml": "# secret\n", "index.php": `<?php echo "index";`})
	if err := os.Link(dir+"/ephpm.toml", dir+"/other-name.txt"); err != nil {
		t.Fatal(err)
	}
	a := startApp(t, appOptions{Root: dir, Config: dir + "/ephpm.toml"})
	for _, path := range []string{"/ephpm.toml", "/%65phpm.toml", "//ephpm.toml", "/other-name.txt"} {
		if resp, body := a.getExactly(path); resp.StatusCode != 404 || strings.Contains(body, "secret") {
			t.Errorf("GET %s: %s %q, want 404", path, resp.Status, body)
		}
	}
}

func TestUnreadableFileIsRefused(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	a := startApp(t, appOptions{Files: map[string]string{"a.txt": "secret", "b.php": `<?php echo "secret";`}})
	for _, path := range []string{"/a.txt", "/b.php"} {
		if err := os.Chmod(a.options.Root+path, 0); err != nil {
			t.Fatal(err)
		}
		if resp, body := a.get(path); resp.StatusCode < 400 || strings.Contains(body, "secret") {
			t.Errorf("GET %s: %s %q, want a refusal", path, resp.Status, body)
		}
	}
}
