package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// By "htpasswd -nbB", the password of alice is "wonderland", that of bob "builder".
const (
	alice = `alice:$2y$05$N./jwBTAyjQgYDXN/QzvJ.R.0.dbP1lCnKCeWS6pSMQEs9xArbby.`
	bob   = `bob:$2y$05$jD5U9zRouyq3xP9BeLLUUOQQzh4bpZcpcpCyd7YrcefE55KoBnucy`
)

const rulesTOML = `
[server]
fallback = ["$uri", "$uri/", "=404"]

[server.security]
blocked_paths = ["/vendor", "*.bak"]
allowed_php_paths = ["/index.php", "/admin", "/api.php", "/show.php"]

[[redirect]]
path = "/old/*"
to = "/new/$1"
status = 301

[[redirect]]
regexp = "/user/([0-9]+)"
to = "https://users.example/$1"
status = 308

[[rewrite]]
path = "/api/*"
to = "/api.php?call=$1&$query_string"

[[auth]]
path = "/admin"
realm = "Staff"
users = ['ALICE']
file = "htpasswd"

[[access]]
path = "/office"
allow = ["10.0.0.0/8"]

[[access]]
path = "/here"
allow = ["127.0.0.0/8"]
`

func rulesFiles() map[string]string {
	show := dump("[$_SERVER['REMOTE_USER'], $_SERVER['AUTH_TYPE'], $_SERVER['PHP_AUTH_USER'] ?? null, $_SERVER['REQUEST_URI'], $_SERVER['QUERY_STRING']]")
	return map[string]string{
		"index.php": `<?php echo "index";`, "show.php": show, "api.php": show, "admin/index.php": show, "admin/a.txt": "for staff", "other.php": `<?php echo "ran";`,
		"vendor/lib.php": `<?php echo "ran";`, "vendor/readme.txt": "vendor", "index.php.bak": "source", "office/a.txt": "office", "here/a.txt": "here", "new/a.txt": "new",
		"websocket.php": `<?php`,
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"ephpm.toml": strings.Replace(rulesTOML, "ALICE", alice, 1), "htpasswd": bob + "\n"})
	root := t.TempDir()
	writeFiles(t, root, rulesFiles())
	a := startApp(t, appOptions{Config: filepath.Join(dir, "ephpm.toml"), Root: root})
	for _, test := range []struct {
		target string
		status int
		body   string // or Location
	}{
		{"/", 200, "index"},
		{"/vendor/lib.php", 403, ""}, {"/vendor/readme.txt", 403, ""}, {"/vendor", 403, ""}, {"//vendor//readme.txt", 403, ""}, {"/./vendor/readme.txt", 403, ""},
		{"/%76endor/readme.txt", 403, ""}, {"/vendor/lib.php/x", 403, ""}, {"/index.php.bak", 403, ""}, {"/index.php.bak?x", 403, ""},
		{"/other.php", 403, ""}, {"/other.php/x", 403, ""}, {"//other.php", 403, ""},
		{"/show.php/x", 200, `["","",null,"/show.php/x",""]`},
		{"/old/a.txt?x=%20y", 301, "/new/a.txt?x=%20y"}, {"/old//evil.example", 301, "/new//evil.example"}, {"/old/%0d%0aX:1", 301, "/new/%0D%0AX:1"},
		{"/user/7", 308, "https://users.example/7"}, {"/user/7/x", 404, ""},
		{"/api/a%26b?q=1", 200, `["","",null,"/api/a%26b?q=1","call=a%26b&q=1"]`},
		{"/office/a.txt", 403, ""}, {"/here/a.txt", 200, "here"},
		{"/admin/a.txt", 401, ""}, {"/admin", 401, ""}, {"//admin/a.txt", 401, ""}, {"/admin/nothing", 401, ""},
	} {
		resp, body := a.getExactly(test.target)
		if resp.StatusCode/100 == 3 {
			body = resp.Header.Get("Location")
		}
		if resp.StatusCode != test.status || test.body != "" && body != test.body {
			t.Errorf("GET %s: %s %q; want %d %q", test.target, resp.Status, body, test.status, test.body)
		}
	}
	login := func(user, password string) (*http.Response, string) {
		req := a.request("GET", "/admin/", "")
		req.SetBasicAuth(user, password)
		return a.do(req)
	}
	for _, test := range []struct {
		user, password string
		status         int
	}{{"alice", "wonderland", 200}, {"bob", "builder", 200}, {"alice", "builder", 401}, {"nobody", "wonderland", 401}, {"", "", 401}, {"alice", repeat(200), 401}} {
		resp, body := login(test.user, test.password)
		want := `["` + test.user + `","Basic","` + test.user + `","/admin/",""]`
		if resp.StatusCode != test.status || test.status == 200 && body != want {
			t.Errorf("%s with %.20q: %s %s; want %d %s", test.user, test.password, resp.Status, body, test.status, want)
		}
	}
	if resp, _ := a.get("/admin/a.txt"); resp.Header.Get("WWW-Authenticate") != `Basic realm="Staff", charset="UTF-8"` {
		t.Errorf("the challenge is %q", resp.Header.Get("WWW-Authenticate"))
	}
	// Upgrades are requests of their path.
	for path, want := range map[string]int{"/admin/": 401, "/office/": 403, "/vendor/": 403} {
		if resp, _ := a.refusal(path, nil); resp.StatusCode != want {
			t.Errorf("an upgrade of %s: %s, want %d", path, resp.Status, want)
		}
	}
	// The file is read again.
	if err := os.WriteFile(filepath.Join(dir, "htpasswd"), []byte("# nobody\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := eventually(func() error {
		req := a.request("GET", "/admin/", "")
		req.SetBasicAuth("bob", "builder")
		return wantStatusOf(req, 401)
	})
	if err != nil {
		t.Errorf("bob was taken out of the file: %v", err)
	}
}

func TestRulesOfASite(t *testing.T) {
	t.Parallel()
	one, two := t.TempDir(), t.TempDir()
	for _, root := range []string{one, two} {
		writeFiles(t, root, map[string]string{"a.txt": "a", "b.txt": "b", "index.php": `<?php echo "index";`, "404.html": "own page of " + filepath.Base(root)})
	}
	a := startApp(t, appOptions{TOML: `
[server]
fallback = ["$uri", "=404"]
[server.response]
headers = [["X-Of", "server"]]
[server.security]
blocked_paths = ["/a.txt"]
[[redirect]]
path = "/r"
to = "/of-the-server"

[[site]]
names = ["one.test"]
root = "` + one + `"

[[site]]
names = ["two.test"]
root = "` + two + `"
error_pages = { 404 = "/404.html" }
[site.response]
headers = [["X-Of", "two"]]
[site.static]
cache_control = "max-age=2"
[site.security]
blocked_paths = ["/b.txt"]
[[site.redirect]]
path = "/r"
to = "/of-two"
`})
	for _, test := range []struct {
		host, path string
		status     int
		header     string
		want       string
	}{
		{"one.test", "/a.txt", 403, "X-Of", "server"}, {"one.test", "/b.txt", 200, "Cache-Control", ""},
		{"two.test", "/a.txt", 200, "Cache-Control", "max-age=2"}, {"two.test", "/b.txt", 403, "X-Of", "two"},
		{"one.test", "/r", 302, "Location", "/of-the-server"}, {"two.test", "/r", 302, "Location", "/of-two"},
		{"one.test", "/nothing", 404, "Content-Type", "text/plain; charset=utf-8"}, {"two.test", "/nothing", 404, "Content-Type", "text/html; charset=utf-8"},
	} {
		req := a.request("GET", test.path, "")
		req.Host = test.host
		if resp, _ := a.do(req); resp.StatusCode != test.status || resp.Header.Get(test.header) != test.want {
			t.Errorf("%s%s: %s, %s %q; want %d, %q", test.host, test.path, resp.Status, test.header, resp.Header.Get(test.header), test.status, test.want)
		}
	}
}

// wantStatusOf fetches and compares the status.
func wantStatusOf(req *http.Request, want int) error {
	resp, _, err := fetch(req)
	if err == nil && resp.StatusCode != want {
		err = fmt.Errorf("%s %s: %s, want %d", req.Method, req.URL.Path, resp.Status, want)
	}
	return err
}
