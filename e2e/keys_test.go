package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A keyTest is a request whose answer shows what a key does. Without a name the body is
// what counts.
type keyTest struct {
	host, path string
	header     []string
	status     int
	name, want string
}

func (k keyTest) check(a *app) {
	a.t.Helper()
	req := a.request("GET", k.path, "", k.header...)
	req.Host = k.host
	resp, got := a.do(req)
	what := "body"
	if k.name != "" {
		what, got = k.name, resp.Header.Get(k.name)
	}
	if resp.StatusCode != k.status || got != k.want {
		a.t.Errorf("%s%s %q: %s, %s %.60q; want %d, %.60q", k.host, k.path, k.header, resp.Status, what, got, k.status, k.want)
	}
}

// A site's own keys are in place of the server's, and another site's stay as they are.
func TestKeysOfASite(t *testing.T) {
	t.Parallel()
	own, other := t.TempDir(), t.TempDir()
	for _, root := range []string{own, other} {
		writeFiles(t, root, map[string]string{
			"index.php": `<?php header('X-Script: 1'); header('X-Frame-Options: DENY'); echo strlen(file_get_contents('php://input'));`,
			"fails.php": `<?php http_response_code(500); echo "words of the script";`,
			"a.own":     "own", "long.txt": strings.Repeat("a line of text\n", 400), ".hidden": "hidden", "list/a.txt": "a", "sorry.html": "sorry",
		})
	}
	a := startApp(t, appOptions{TOML: fmt.Sprintf(`
[server]
fallback = ["$uri", "$uri/", "=404"]
[[site]]
names = ["own.test"]
root = %q
error_pages = { 500 = "/sorry.html" }
request.max_body_size = 5
[site.response]
compression = false
set_headers = [["X-Frame-Options", "SAMEORIGIN"]]
remove_headers = ["X-Script"]
intercept_errors = true
[site.static]
cache_control = "no-cache"
cache_rules = [["*.own", "max-age=7"]]
mime_types = { own = "application/x-own" }
autoindex = true
hidden_files = "allow"
[[site]]
names = ["other.test"]
root = %q
`, own, other)})
	gzip := []string{"Accept-Encoding", "gzip"}
	for _, k := range []keyTest{
		{"own.test", "/index.php", nil, 200, "X-Frame-Options", "SAMEORIGIN"}, {"other.test", "/index.php", nil, 200, "X-Frame-Options", "DENY"},
		{"own.test", "/index.php", nil, 200, "X-Script", ""}, {"other.test", "/index.php", nil, 200, "X-Script", "1"},
		{"own.test", "/fails.php", nil, 500, "", "sorry"}, {"other.test", "/fails.php", nil, 500, "", "words of the script"},
		{"own.test", "/a.own", nil, 200, "Content-Type", "application/x-own"}, {"other.test", "/a.own", nil, 200, "Content-Type", "application/octet-stream"},
		{"own.test", "/a.own", nil, 200, "Cache-Control", "max-age=7"}, {"other.test", "/a.own", nil, 200, "Cache-Control", ""},
		{"own.test", "/long.txt", nil, 200, "Cache-Control", "no-cache"},
		{"own.test", "/long.txt", gzip, 200, "Content-Encoding", ""}, {"other.test", "/long.txt", gzip, 200, "Content-Encoding", "gzip"},
		{"own.test", "/.hidden", nil, 200, "", "hidden"}, {"other.test", "/.hidden", nil, 403, "", "403 Forbidden\n"},
		{"own.test", "/list/", nil, 200, "Content-Type", "text/html; charset=utf-8"}, {"other.test", "/list/", nil, 404, "", "404 Not Found\n"},
	} {
		k.check(a)
	}
	for host, want := range map[string]int{"own.test": 413, "other.test": 200} {
		req := a.request("POST", "/index.php", "six...")
		req.Host = host
		if resp, body := a.do(req); resp.StatusCode != want || want == 200 && body != "6" {
			t.Errorf("six bytes to %s: %s %q, want %d", host, resp.Status, body, want)
		}
	}
}

// What the keys of files and answers change.
func TestKeysOfFiles(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a line of text\n", 100)
	a := startApp(t, appOptions{
		TOML: `[server.response]
compression_min_size = 1000
[server.static]
precompressed = false
mime_types = { txt = "text/x-own; charset=utf-8", own = "application/x-own" }
`,
		Files: map[string]string{
			"short.txt": long[:990], "long.txt": long, "a.own": "own", "none": "no extension",
			"b.bin": "the plain form", "b.bin.gz": "no gzip at all",
			"short.php": `<?php header('Content-Type: text/plain'); echo str_repeat('word ', 190);`,
			"long.php":  `<?php header('Content-Type: text/plain'); echo str_repeat('word ', 210);`,
		}})
	gzip := []string{"Accept-Encoding", "gzip"}
	for _, k := range []keyTest{
		{"x", "/short.txt", gzip, 200, "Content-Encoding", ""}, {"x", "/long.txt", gzip, 200, "Content-Encoding", "gzip"},
		{"x", "/short.php", gzip, 200, "Content-Encoding", ""}, {"x", "/long.php", gzip, 200, "Content-Encoding", "gzip"},
		{"x", "/b.bin", gzip, 200, "", "the plain form"},
		{"x", "/long.txt", nil, 200, "Content-Type", "text/x-own; charset=utf-8"}, {"x", "/a.own", nil, 200, "Content-Type", "application/x-own"},
		{"x", "/none", nil, 200, "Content-Type", "application/octet-stream"},
	} {
		k.check(a)
	}
}

// Which of a proxy's headers count is said by proxy_headers and proxy_host.
func TestKeysOfProxies(t *testing.T) {
	t.Parallel()
	const page = `<?php echo $_SERVER['REMOTE_ADDR'], ' ', $_SERVER['HTTPS'] ?? 'off', ' ', $_SERVER['HTTP_HOST'];`
	x := []string{"X-Forwarded-For: 203.0.113.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: x.test"}
	forwarded := []string{"Forwarded: for=203.0.113.2;proto=https;host=f.test"}
	for key, want := range map[string][3]string{ // with the first, the second, both
		"":                              {"203.0.113.1 on x", "203.0.113.2 on x", "203.0.113.1 on x"},
		`proxy_headers = "x-forwarded"`: {"203.0.113.1 on x", "127.0.0.1 off x", "203.0.113.1 on x"},
		`proxy_headers = "forwarded"`:   {"127.0.0.1 off x", "203.0.113.2 on x", "203.0.113.2 on x"},
		`proxy_host = true`:             {"203.0.113.1 on x.test", "203.0.113.2 on f.test", "203.0.113.1 on x.test"},
	} {
		a := startApp(t, appOptions{TOML: trustLoopback + key + "\n", Files: map[string]string{"index.php": page}})
		for i, header := range [][]string{x, forwarded, append(append([]string{}, x...), forwarded...)} {
			if _, body := a.getExactly("/", header...); body != want[i] {
				t.Errorf("%s, %q: %q, want %q", key, header, body, want[i])
			}
		}
	}
}

func TestDisableShellExec(t *testing.T) {
	t.Parallel()
	for _, disabled := range []bool{true, false} {
		a := startApp(t, appOptions{
			TOML:  fmt.Sprintf("[server.security]\ndisable_shell_exec = %v\n[php]\nini_overrides = [[\"disable_functions\", \"strrev\"]]\n", disabled),
			Files: map[string]string{"index.php": `<?php foreach (['exec', 'system', 'shell_exec', 'passthru', 'popen', 'proc_open', 'strrev', 'strlen'] as $f) echo function_exists($f) ? 1 : 0;`},
		})
		want := map[bool]string{true: "00000001", false: "11111101"}[disabled]
		if _, body := a.get("/"); body != want {
			t.Errorf("disable_shell_exec = %v: %s, want %s", disabled, body, want)
		}
	}
}

// Sites of a directory may have processes of their own, which end when nobody asks.
func TestSitesIsolationAndPoolIdle(t *testing.T) {
	t.Parallel()
	const page = `<?php echo posix_getppid();`
	s := startSites(t, sitesDirTOML+"sites_isolation = \"process\"\nsites_pool_idle = \"1s\"\n[server.security]\nmulti_tenant_hardening = false\nopen_basedir = false\n",
		map[string]string{"a.example/index.php": page, "b.example/index.php": page})
	_, a := s.ask("a.example", "/")
	_, b := s.ask("b.example", "/")
	if !regexp.MustCompile(`^\d+$`).MatchString(a) || a == b {
		t.Fatalf("the zygotes of two sites are %q and %q", a, b)
	}
	if err := eventually(func() error {
		if _, err := os.Stat(filepath.Join("/proc", a)); err == nil {
			return fmt.Errorf("the zygote of an idle site, %s, is still there", a)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if resp, again := s.ask("a.example", "/"); resp.StatusCode != http.StatusOK || again == a {
		t.Errorf("then %s by zygote %q, want another than %s", resp.Status, again, a)
	}
}
