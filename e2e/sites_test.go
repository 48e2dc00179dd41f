package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// A siteTest is a server with several sites, each below a directory of its name.
type siteTest struct {
	*app
	dir string // with sites/, below which the sites are, and state/
}

// startSites starts a server for a configuration in which $dir is a new directory
// that holds files.
func startSites(t *testing.T, toml string, files map[string]string) *siteTest {
	t.Helper()
	dir := t.TempDir()
	// Another user's workers must find their scripts.
	for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sites"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, filepath.Join(dir, "sites"), files)
	toml = strings.ReplaceAll(toml, "$dir", dir)
	return &siteTest{startApp(t, appOptions{TOML: toml}), dir}
}

// sitesDirTOML, in front of what startSites gets, makes a site of each directory of
// files. [server] is open behind it.
const sitesDirTOML = "[server]\nsites_dir = \"$dir/sites\"\nsites_state_dir = \"$dir/state\"\n"

// ask fetches a path of a host; pairs of header are a name and a value.
func (s *siteTest) ask(host, path string, header ...string) (*http.Response, string) {
	s.t.Helper()
	req := s.request("GET", path, "", header...)
	req.Host = host
	return s.do(req)
}

func (s *siteTest) want(host, path string, status int, body string) {
	s.t.Helper()
	resp, got := s.ask(host, path)
	if resp.StatusCode != status || body != "" && got != body {
		s.t.Errorf("%s%s: %d %q, want %d %q", host, path, resp.StatusCode, got, status, body)
	}
}

// join opens a socket of a host.
func (s *siteTest) join(host string) *socket {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, _, err := websocket.Dial(ctx, s.URL+"/", &websocket.DialOptions{Host: host})
	if err != nil {
		s.t.Fatalf("upgrade at %s: %v", host, err)
	}
	s.t.Cleanup(func() { _ = c.CloseNow() }) // may be closed already
	return &socket{t: s.t, conn: c}
}

// sitePage tells what scripts see of their site.
const sitePage = `<?php echo json_encode([$_SERVER['SERVER_NAME'], basename($_SERVER['DOCUMENT_ROOT']), $_SERVER['OWN'] ?? null,
	getenv('OWN'), ini_get('memory_limit')], JSON_UNESCAPED_SLASHES);`

func TestHostsChooseSites(t *testing.T) {
	t.Parallel()
	s := startSites(t, `
[[site]]
names = ["a.example", "www.a.example"]
root = "$dir/sites/a"
env = { OWN = "of a" }
ini = { memory_limit = "77M" }
[[site]]
names = ["*.b.example"]
root = "$dir/sites/b"
index_files = ["home.php"]
fallback = ["$uri", "$uri/", "=410"]
`, map[string]string{"a/index.php": sitePage, "a/a.txt": "a", "b/home.php": sitePage, "b/b.txt": "b"})
	for range 3 { // on whatever worker
		s.want("a.example", "/", 200, `["a.example","a","of a","of a","77M"]`)
		s.want("WWW.A.example.", "/x", 200, `["WWW.A.example.","a","of a","of a","77M"]`)
		s.want("x.y.b.example:8080", "/", 200, `["x.y.b.example","b",null,false,"128M"]`)
	}
	s.want("x.b.example", "/none", 410, "")
	s.want("a.example", "/a.txt", 200, "a")
	s.want("a.example", "/b.txt", 200, `["a.example","a","of a","of a","77M"]`) // its fallback
	s.want("b.example", "/", 404, "")
	s.want("c.example", "/", 404, "")
	s.want("c.example", "/_ephpm/health", 200, "")
}

func TestMalformedHostsAreRefused(t *testing.T) {
	t.Parallel()
	s := startSites(t, sitesDirTOML,
		map[string]string{"a.example/index.php": `<?php echo "a";`})
	for host, want := range map[string]int{
		"a.example": 200, "A.EXAMPLE": 200, "a.example.": 200, "a.example:1": 200, "a.example:": 200,
		"": 404, "[::1]:80": 404, "127.0.0.1": 404, "a.example.evil": 404,
		"a.example..": 400, ".a.example": 400, "a..example": 400, "..": 400, "../a.example": 400, "a.example/": 400, "/a.example": 400,
		"a.example%00": 400, "a.example%2f": 400, "a.example:http": 400, "a.example:99999": 400, "a.example:80:80": 400, "::1": 400,
		"[::1": 400, "[::1]x": 400, "[fe80::1%25lo]": 400, "a@a.example": 400, "a.example,b": 400, "*.example": 400, "a b": 400, "\xc3\xa4.example": 400,
		strings.Repeat("a", 64) + ".example": 400, strings.Repeat("a.", 200) + "example": 400, "a\\b": 400,
	} {
		resp, body := s.exchange("GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n")
		if resp.StatusCode != want || strings.Contains(body, "<?php") {
			t.Errorf("Host %q: %d %q, want %d", host, resp.StatusCode, body, want)
		}
	}
	for request, want := range map[string]int{
		"GET / HTTP/1.1\r\n\r\n": 400,
		"GET / HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n": 400,
		"GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n":    200, // RFC 9112 §3.2.2
		"GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n":    404,
		"GET http://a.example:x/ HTTP/1.1\r\nHost: a.example\r\n\r\n":  400,
		"GET / HTTP/1.0\r\n\r\n":                                                   404,
		"GET / HTTP/1.0\r\nHost: a.example\r\n\r\n":                                200,
		"GET / HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-Host: b.example\r\n\r\n": 200,
	} {
		if resp, _ := s.exchange(request); resp.StatusCode != want {
			t.Errorf("%q: %d, want %d", request, resp.StatusCode, want)
		}
	}
}

func TestTrustedHostsRefuseOthers(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		Files: map[string]string{"index.php": `<?php echo "ran";`},
		TOML:  "[server]\nrequest.trusted_hosts = [\"a.example\", \"*.b.example\"]\n",
	})
	for host, want := range map[string]int{"a.example": 200, "x.b.example:80": 200, "b.example": 421, "x.a.example": 421, "": 421} {
		if resp, body := a.exchange("GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"); resp.StatusCode != want || want == 421 && strings.Contains(body, "ran") {
			t.Errorf("Host %q: %d %q, want %d", host, resp.StatusCode, body, want)
		}
	}
	if resp, _ := a.exchange("GET /_ephpm/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); resp.StatusCode != 200 {
		t.Errorf("ready under a host that is not trusted: %d", resp.StatusCode)
	}
}

// siteSocket subscribes to a channel, and says who it is.
const siteSocket = `<?php if ($_SERVER['WS_EVENT'] === 'connect') ephpm_ws_subscribe('lobby');
	if ($_SERVER['WS_EVENT'] === 'message') ephpm_ws_send($_SERVER['WS_CONNECTION_ID']);
	if ($_SERVER['WS_EVENT'] === 'disconnect') file_put_contents(__DIR__ . '/../gone', $_SERVER['WS_CLOSE_CAUSE']);`

// sitePush reaches for a connection and for the lobby.
const sitePush = `<?php try { echo json_encode([ephpm_ws_connection_send($_GET['id'], 'hi'), ephpm_ws_broadcast('lobby', 'all'), ephpm_ws_count()]); }
	catch (Exception $e) { echo $e->getMessage(); }`

func TestSocketsOfOneSiteCannotBeReachedFromAnother(t *testing.T) {
	t.Parallel()
	s := startSites(t, metricsOn+`
[server]
document_root = "$dir/sites/other"
[[site]]
names = ["a.example"]
root = "$dir/sites/a"
[[site]]
names = ["b.example"]
root = "$dir/sites/b"
`, map[string]string{
		"a/websocket.php": siteSocket, "a/push.php": sitePush, "b/websocket.php": siteSocket, "b/push.php": sitePush,
		"other/websocket.php": siteSocket, "other/push.php": sitePush,
	})
	a := s.join("a.example")
	a.send("who")
	id := a.recv()
	s.want("b.example", "/push.php?id="+id, 200, `[false,0,0]`)
	s.want("a.example", "/push.php?id="+id, 200, `[true,1,1]`)
	if got := a.recv() + " " + a.recv(); got != "hi all" {
		t.Errorf("the socket got %q, want hi and all from its own site alone", got)
	}
	s.want("unknown.example", "/push.php?id="+id, 200, "ephpm_ws: no websocket context for this request: its host matched no site")
	req := s.request("GET", "/", "", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
	req.Host = "unknown.example"
	if resp, _ := s.do(req); resp.StatusCode != 404 {
		t.Errorf("an upgrade under an unknown host: %d, want 404", resp.StatusCode)
	}
	s.waitLog(`level=INFO msg="upgrade refused" site=- addr=127.0.0.1 status=404 reason="Not Found"`)
	s.waitMetric(`ephpm_ws_handshake_rejected_total{reason="site"}`, 1)
}

func TestDirectoriesAreSitesWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	s := startSites(t, sitesDirTOML+"sites_domain_suffix = \".localhost\"\n",
		map[string]string{"a.example/index.php": `<?php echo "a";`, "a.example/websocket.php": siteSocket, "dev/index.php": `<?php echo "dev";`})
	s.want("a.example", "/", 200, "a")
	s.want("dev.localhost", "/", 200, "dev")
	s.want("b.example", "/", 404, "")
	writeFiles(t, s.dir, map[string]string{"new/index.php": `<?php echo "b";`})
	if err := os.Rename(filepath.Join(s.dir, "new"), filepath.Join(s.dir, "sites", "b.example")); err != nil {
		t.Fatal(err)
	}
	s.eventually("b.example", 200)

	socket := s.join("a.example")
	socket.send("who")
	socket.recv()
	if err := os.Rename(filepath.Join(s.dir, "sites", "a.example"), filepath.Join(s.dir, "sites", ".a")); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := socket.recvClose(); code != 1001 {
		t.Errorf("the socket of a removed site was closed with %d, want 1001", code)
	}
	s.want("a.example", "/", 404, "")
	s.waitLog(`site removed.*a\.example`)
	s.want("b.example", "/", 200, "b")
}

// Only directories with the form of a host name are sites, whatever else is there; a
// link to a directory is one, too.
func TestDirectoriesWithOddNamesAreNoSites(t *testing.T) {
	t.Parallel()
	odd := []string{
		"UPPER.example", ".hidden", "a b.example", "new\nline.example", "tab\t.example", "q?.example", "star.*", "perc%2e.example", "back\\slash", "semi;colon",
		"colon:80", "at@a.example", "two..dots", "dot.at.end.", "\xc3\xa4.example", "\xff\xfe", "[::1]", strings.Repeat("l", 64), strings.Repeat("a.", 126) + "ab",
	}
	files := map[string]string{"a.example/index.php": `<?php echo "a";`, "file.example": "a file"}
	for _, name := range odd {
		files[name+"/index.php"] = `<?php echo "odd";`
		files[name+"/secret.txt"] = "odd"
	}
	s := startSites(t, sitesDirTOML, files)
	outside := filepath.Join(s.dir, "elsewhere")
	writeFiles(t, outside, map[string]string{"index.php": `<?php echo "linked";`})
	for name, to := range map[string]string{"link.example": outside, "dangling.example": outside + "-not", "loop.example": "loop.example", "filelink.example": "file.example"} {
		if err := os.Symlink(to, filepath.Join(s.dir, "sites", name)); err != nil {
			t.Fatal(err)
		}
	}
	s.eventually("link.example", 200) // the list is a new one from here on
	s.want("link.example", "/", 200, "linked")
	for _, host := range append(odd, "upper.example", "file.example", "dangling.example", "loop.example", "filelink.example") {
		for _, path := range []string{"/", "/secret.txt"} {
			resp, body := s.exchange("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n")
			if resp.StatusCode != 400 && resp.StatusCode != 404 || strings.Contains(body, "odd") {
				t.Errorf("Host %q: %s %q, want 400 or 404", host, resp.Status, body)
			}
		}
	}
	s.want("a.example", "/", 200, "a")
}

// eventually waits until a host answers with a status.
func (s *siteTest) eventually(host string, want int) {
	s.t.Helper()
	if err := eventually(func() error {
		if resp, _ := s.ask(host, "/"); resp.StatusCode != want {
			return fmt.Errorf("%s: %d, want %d", host, resp.StatusCode, want)
		}
		return nil
	}); err != nil {
		s.t.Error(err)
	}
}

func TestASwitchedRootIsServed(t *testing.T) {
	t.Parallel()
	page := `<?php echo json_encode([basename($_SERVER['DOCUMENT_ROOT']), basename(dirname($_SERVER['SCRIPT_FILENAME'])), basename(__DIR__)]);`
	s := startSites(t, `
[[site]]
names = ["real.example"]
root = "$dir/sites/current"
[[site]]
names = ["link.example"]
root = "$dir/sites/current"
resolve_root = false
`, map[string]string{"current/index.php": `<?php echo "first";`, "v1/index.php": page, "v2/index.php": page})
	current := filepath.Join(s.dir, "sites", "current")
	point := func(to string) {
		t.Helper()
		next := filepath.Join(s.dir, "next")
		if err := os.Symlink(to, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, current); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(current, current+".old"); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1", "v2"} {
		point(version)
		for host, want := range map[string]string{
			"real.example": `["` + version + `","` + version + `","` + version + `"]`,
			"link.example": `["current","current","` + version + `"]`,
		} {
			if err := eventually(func() error {
				if _, got := s.ask(host, "/"); got != want {
					return fmt.Errorf("%s: %q, want %q", host, got, want)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		}
	}
}
