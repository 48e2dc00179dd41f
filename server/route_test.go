package server

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRequestsFindTheirFile(t *testing.T) {
	root := files(t, "index.php", "hello.txt", "s.php", "a.PHP", ".env", ".well-known/x.txt", "dir/index.html", "empty/", "deep/x.php/y.php",
		"shell\ufe52php", "ȺȺȺȺshell.php.txt.php", "sp ace.txt", "dir.php/in.txt")
	s := newTest(t, root, &fakePool{})
	tests := []struct {
		target string
		status int
		body   string
	}{
		{"/", 200, "ran index.php"},
		{"/hello.txt", 200, "content of hello.txt"},
		{"//hello.txt", 200, "content of hello.txt"},
		{"/./hello.txt", 200, "content of hello.txt"},
		{"/sp%20ace.txt", 200, "content of sp ace.txt"},
		{"/hello%2Etxt", 200, "content of hello.txt"},
		{"/hello.txt/", 200, "ran index.php"},
		{"/hello.txt/more", 200, "ran index.php"},
		{"/missing", 200, "ran index.php"},
		{"/missing.php", 200, "ran index.php"},
		{"/empty/", 200, "ran index.php"},
		{"/s.php", 200, "ran s.php"},
		{"/s.php/info", 200, "ran s.php"},
		{"/dir/", 200, "content of dir/index.html"},
		{"/dir", 301, "301 Moved Permanently\n"},
		{"/dir.php/in.txt", 200, "content of dir.php/in.txt"},
		{"/deep/x.php/y.php/z", 200, "ran y.php"},
		{"/a.PHP", 404, "404 Not Found\n"},
		{"/%C8%BA%C8%BA%C8%BA%C8%BAshell.php.txt.php", 200, "ran ȺȺȺȺshell.php.txt.php"},
		{"/shell%EF%B9%92php", 200, "content of shell\ufe52php"},
		{"/.env", 403, "403 Forbidden\n"},
		{"/.well-known/x.txt", 200, "content of .well-known/x.txt"},
		{"/a%2fb", 400, "400 Bad Request\n"},
		{"/../x", 400, "400 Bad Request\n"},
		{"/%00", 400, "400 Bad Request\n"},
		{"http://x/hello.txt", 200, "content of hello.txt"},
		{"/_ephpm/health", 200, "{\"status\":\"ok\"}\n"},
		{"/_ephpm/ready", 200, "{\"status\":\"ready\"}\n"},
	}
	for _, tt := range tests {
		r := get(s, tt.target)
		if body := text(t, r); r.StatusCode != tt.status || body != tt.body {
			t.Errorf("GET %s: %d %q, want %d %q", tt.target, r.StatusCode, body, tt.status, tt.body)
		}
	}
}

func TestFallbackList(t *testing.T) {
	root := files(t, "index.php", "app.php", "page.html", "maintenance.html", "dir/index.html")
	tests := []struct {
		fallback []string
		target   string
		status   int
		body     string
		query    string
	}{
		{[]string{"$uri", "=404"}, "/none", 404, "404 Not Found\n", ""},
		{[]string{"$uri", "=503"}, "/none", 503, "503 Service Unavailable\n", ""},
		{[]string{"$uri", "=404"}, "/dir/", 404, "404 Not Found\n", ""},
		{nil, "/page.html", 404, "404 Not Found\n", ""},
		{[]string{"/app.php"}, "/page.html?a=1", 200, "ran app.php", "a=1"},
		{[]string{"/app.php?$query_string"}, "/x?a=1", 200, "ran app.php", "a=1"},
		{[]string{"/app.php?q=$uri&$query_string"}, "/x%26y=z?a=$uri", 200, "ran app.php", "q=%2Fx%26y%3Dz&a=$uri"},
		{[]string{"/app.php?q=$uri&$query_string"}, "/x", 200, "ran app.php", "q=%2Fx"},
		{[]string{"$uri", "$uri.html", "/index.php"}, "/page", 200, "content of page.html", ""},
		{[]string{"/maintenance.html"}, "/page.html", 200, "content of maintenance.html", ""},
		{[]string{"/gone.php"}, "/page.html", 404, "404 Not Found\n", ""},
		{[]string{"$uri", "/"}, "/none", 200, "ran index.php", ""},
	}
	for _, tt := range tests {
		pool := &fakePool{}
		s := newTest(t, root, pool, func(c *Config) { c.Server.Fallback = tt.fallback })
		r := get(s, tt.target)
		if body := text(t, r); r.StatusCode != tt.status || body != tt.body || pool.vars["QUERY_STRING"] != tt.query {
			t.Errorf("%q, GET %s: %d %q, query %q; want %d %q, query %q",
				tt.fallback, tt.target, r.StatusCode, body, pool.vars["QUERY_STRING"], tt.status, tt.body, tt.query)
		}
	}
}

func TestDirectoryRedirectStaysOnThisHost(t *testing.T) {
	s := newTest(t, files(t, "evil.com/index.html", "index.php"), &fakePool{})
	r := get(s, "//evil.com?a=1#b")
	if got := r.Header.Get("Location"); r.StatusCode != 301 || got != "/evil.com/?a=1#b" {
		t.Errorf("GET //evil.com: %d to %q, want 301 to /evil.com/?a=1#b", r.StatusCode, got)
	}
	s = newTest(t, files(t, "form/index.php"), &fakePool{})
	if r := do(s, "POST", "/form", nil); r.StatusCode != 200 {
		t.Errorf("POST to a directory: %d, want its index script to run", r.StatusCode)
	}
}

func TestHiddenFilesModes(t *testing.T) {
	root := files(t, ".env", "index.php")
	for mode, want := range map[string]int{HiddenDeny: 403, HiddenIgnore: 404, HiddenAllow: 200} {
		s := newTest(t, root, &fakePool{}, func(c *Config) { c.Server.Static.HiddenFiles = mode })
		if r := get(s, "/.env"); r.StatusCode != want {
			t.Errorf("hidden_files = %q: %d, want %d", mode, r.StatusCode, want)
		}
	}
}

// Whatever a client sends as a target: what is found lies below the root, and is
// neither hidden, nor source, nor outside.
func FuzzRoutingStaysBelowTheRoot(f *testing.F) {
	for _, seed := range []string{
		"/", "/a.txt", "/a.php/x", "/dir", "/dir/", "//dir//./b.txt", "/out/secret.txt", "/link.txt", "/.env", "/%2e%2e/secret.txt",
		"/upper.PHP", "/a.php%00", "http://x/a.txt", "/dir/../a.txt", "/loop", "/a.txt/", "/%252e%252e/secret.txt", "/..;/a", "/a.txt?x#y",
	} {
		f.Add(seed)
	}
	above := f.TempDir()
	root := filepath.Join(above, "root")
	for name, content := range map[string]string{
		"secret.txt": "SECRET", "root/a.txt": "public", "root/a.php": "SECRET source", "root/upper.PHP": "SECRET source", "root/.env": "SECRET", "root/dir/b.txt": "public", "root/dir/.c": "SECRET",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(above, name)), 0o755); err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(above, name), []byte(content), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	for link, target := range map[string]string{"out": "..", "link.txt": "../secret.txt", "loop": "loop", "abs": above} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			f.Fatal(err)
		}
	}
	c := DefaultConfig()
	c.Server.DocumentRoot = root
	c.Server.Static.Autoindex = true
	c.Server.Security.BlockedPaths = []string{"/dir/b*"}
	s, err := newServer(c, &fakePool{}, testStores(f, c), quiet)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, target string) {
		r := fetchFile(s, "GET", target)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(body, []byte("SECRET")) {
			t.Errorf("GET %q shows %q", target, body)
		}
		if to := r.Header.Get("Location"); strings.HasPrefix(to, "//") || to != "" && to[0] != '/' {
			t.Errorf("GET %q leads to %q", target, to)
		}
		if r.StatusCode == 200 && len(body) == len("public") && strings.HasSuffix(strings.TrimRight(firstPart(target), "/."), "b.txt") {
			t.Errorf("GET %q passed the blocked path", target)
		}
	})
}

// firstPart is a target without its query.
func firstPart(target string) string {
	part, _, _ := strings.Cut(target, "?")
	return part
}
