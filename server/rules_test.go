package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

func TestPathGlobs(t *testing.T) {
	for _, test := range []struct {
		glob, path string
		want       bool
	}{
		{"/a", "/a", true}, {"/a", "/a/", true}, {"/a", "/a/b", true}, {"/a", "/ab", false}, {"/a/", "/a", true}, {"/a/", "/a/b", true},
		{"/", "/", true}, {"/", "/x", true}, {"/a", "/", false},
		{"/a/*", "/a", true}, {"/a/*", "/a/", true}, {"/a/*", "/a/b/c", true}, {"/a/*", "/ab", false},
		{"*.bak", "/x/y.bak", true}, {"*.bak", "/x/y.bak2", false}, {"/?.txt", "/a.txt", true}, {"/?.txt", "/ab.txt", false},
		{"/a*b*c", "/axxbyyc", true}, {"/a*b*c", "/axxbyy", false}, {"/uploads/*.php", "/uploads/x.php/y", true},
		{"/uploads/*.php", "/uploads/x.phpx", false}, {"*", "/any/thing", true}, {"/a.php", "/a.php/info", true},
	} {
		if got := fitsAny([]pathGlob{pathGlob(test.glob)}, test.path, extensions{".php"}); got != test.want {
			t.Errorf("%s fits %s: %v, want %v", test.glob, test.path, got, test.want)
		}
	}
}

func FuzzMatchGlob(f *testing.F) {
	f.Add("/a/*.php", "/a/b.php")
	f.Add("*?*", "/")
	f.Fuzz(func(t *testing.T, glob, path string) {
		got := matchGlob(glob, path)
		// By the definition, one byte at a time.
		if want := slowGlob(glob, path, 2000); want >= 0 && got != (want == 1) {
			t.Errorf("%q fits %q: %v", glob, path, got)
		}
	})
}

// slowGlob returns 1 or 0, or less when it takes more than so many steps.
func slowGlob(glob, path string, steps int) int {
	type state struct{ glob, path string }
	for queue := []state{{glob, path}}; len(queue) > 0; queue = queue[1:] {
		if steps--; steps < 0 {
			return -1
		}
		g, p := queue[0].glob, queue[0].path
		switch {
		case g == "" && p == "":
			return 1
		case g == "":
		case g[0] == '*':
			queue = append(queue, state{g[1:], p})
			if p != "" {
				queue = append(queue, state{g, p[1:]})
			}
		case p != "" && (g[0] == '?' || g[0] == p[0]):
			queue = append(queue, state{g[1:], p[1:]})
		}
	}
	return 0
}

func TestRedirects(t *testing.T) {
	all := newRedirects([]RedirectConfig{
		{Path: "/old", To: "/new", Status: 301},
		{Path: "/blog/*", To: "/articles/$1"},
		{Path: "/q", To: "/s?from=$uri&$query_string"},
		{Regexp: "/user/([0-9]+)/(.*)", To: "https://users.example/$2?id=$1", Status: 308},
		{Path: "/host/*", To: "https://$host$uri"},
		{Path: "/any/*", To: "/$1"},
		{Path: "/a", To: "/b"}, {Path: "/b", To: "/c"}, {Path: "/c", To: "/a"},
		{Path: "/one", To: "/two"}, {Path: "/two", To: "/three"},
		{Regexp: "(.*)/", To: "$1"},
		{Regexp: "/grow(.*)", To: "/growing$1"},
		{Path: "/same", To: "$uri"},
	})
	for _, test := range []struct {
		path, query, want string
		status            int
	}{
		{"/old", "", "/new", 301},
		{"/old", "a=1&b", "/new?a=1&b", 301},
		{"/older", "", "", 0},
		{"/blog/a b/ü?#%", "x", "/articles/a%20b/%C3%BC%3F%23%25?x", 302},
		{"/blog/\r\nX: 1", "", "/articles/%0D%0AX:%201", 302},
		{"/q", "", "/s?from=%2Fq", 302},
		{"/q", "a=1", "/s?from=%2Fq&a=1", 302},
		{"/user/7/x/y", "ignored", "https://users.example/x/y?id=7", 308},
		{"/user/7a/x", "", "", 0},
		{"/host/x", "q", "https://me.example/host/x?q", 302},
		{"/any//evil.example", "", "/evil.example", 302},
		{"/any/\\evil.example", "", "/%5Cevil.example", 302},
		{"/a", "", "", 0}, {"/b", "", "", 0}, {"/c", "", "", 0}, // a circle
		{"/one", "", "/two", 302},
		{"/x/", "", "/x", 302},
		{"/x//", "", "/x/", 302},
		{"/grow", "", "", 0},
		{"/same", "", "", 0},
	} {
		if got, status := all.find(test.path, test.query, "me.example"); got != test.want || status != test.status {
			t.Errorf("%q?%s: %d to %q, want %d to %q", test.path, test.query, status, got, test.status, test.want)
		}
	}
}

func FuzzRedirectsStayOnTheirHost(f *testing.F) {
	f.Add("/a//evil.example", "q")
	f.Add("/b/\\\\evil", "a=\r\nb")
	all := newRedirects([]RedirectConfig{
		{Path: "/a/*", To: "/$1"}, {Path: "/b*", To: "https://example.org/$1?$query_string"}, {Regexp: "/c(.*)", To: "$1"}, {Path: "/d/*", To: "https://$host$uri"},
	})
	f.Fuzz(func(t *testing.T, path, query string) {
		if u, ok := parseTarget("/" + path + "?" + query); ok {
			if decoded, ok := decodePath(u.path); ok {
				location, _ := all.find(decoded, u.query, "example.org")
				name, _, _ := strings.Cut(location, "?")
				if strings.ContainsAny(name, "\r\n\\ \x00") || strings.HasPrefix(name, "//") {
					t.Errorf("%q leads to %q", decoded, location)
				}
				if rest, ok := strings.CutPrefix(name, "https://"); ok && !strings.HasPrefix(rest, "example.org/") {
					t.Errorf("%q leads to another host: %q", decoded, location)
				}
			}
		}
	})
}

func TestRulesThatCannotBeMeant(t *testing.T) {
	for _, test := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Redirects = []RedirectConfig{{To: "/x"}} }, "redirect[1].path: is empty"},
		{func(c *Config) { c.Redirects = []RedirectConfig{{Path: "/x", Regexp: "/x", To: "/y"}} }, "redirect[1].regexp: there is path already"},
		{func(c *Config) { c.Redirects = []RedirectConfig{{Path: "/ok", To: "/x"}, {Path: "x", To: "/y"}} }, `redirect[2].path: "x" is not a path`},
		{func(c *Config) { c.Redirects = []RedirectConfig{{Path: "/*/*", To: "/y"}} }, "with one \"*\" at most"},
		{func(c *Config) { c.Redirects = []RedirectConfig{{Regexp: "(", To: "/y"}} }, `redirect[1].regexp: "(" is not a regular expression`},
		{func(c *Config) { c.Redirects = []RedirectConfig{{Path: "/x", To: "y"}} }, "redirect[1].to: "},
		{func(c *Config) { c.Redirects = []RedirectConfig{{Path: "/x*", To: "https://example.org$1"}} }, "redirect[1].to: "},
		{func(c *Config) { c.Redirects = []RedirectConfig{{Path: "/x*", To: "javascript:$1"}} }, "redirect[1].to: "},
		{func(c *Config) { c.Redirects = []RedirectConfig{{Path: "/x", To: "/$1"}} }, "there is no $1"},
		{func(c *Config) { c.Redirects = []RedirectConfig{{Regexp: "/(.)", To: "/$2"}} }, "there is no $2"},
		{func(c *Config) { c.Redirects = []RedirectConfig{{Path: "/x", To: "/y", Status: 200}} }, "redirect[1].status: 200"},
		{func(c *Config) { c.Redirects = []RedirectConfig{{Path: "/*", To: "/new/$1"}} }, "it would never end"},
		{func(c *Config) { c.Redirects = []RedirectConfig{{Path: "/x", To: "/x"}} }, "it would never end"},
		{func(c *Config) { c.Rewrites = []RewriteConfig{{Path: "/x", To: "https://example.org/"}} }, "rewrite[1].to: "},
		{func(c *Config) { c.Rewrites = []RewriteConfig{{Path: "/x", To: "/../y"}} }, "rewrite[1].to: "},
		{func(c *Config) { c.Auth = []AuthConfig{{Path: "/x"}} }, "auth[1].users: is empty"},
		{func(c *Config) { c.Auth = []AuthConfig{{Path: "/x", Users: []string{"a:secret"}}} }, "auth[1].users: line 1: the hash of a is not bcrypt"},
		{func(c *Config) {
			c.Auth = []AuthConfig{{Path: "/x", Users: []string{"a:$2y$20$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234"}}}
		}, "has cost 20"},
		{func(c *Config) { c.Auth = []AuthConfig{{Path: "/x", File: "/nothing/there"}} }, "auth[1].file: "},
		{func(c *Config) { c.Access = []AccessConfig{{Path: "/x"}} }, "access[1].allow: is empty"},
		{func(c *Config) { c.Access = []AccessConfig{{Path: "x", Deny: []string{"10.0.0.0/8"}}} }, "access[1].path: "},
		{func(c *Config) { c.Access = []AccessConfig{{Path: "/x", Deny: []string{"10.0.0.0/33"}}} }, "access[1].deny: "},
		{func(c *Config) { c.Server.Security.BlockedPaths = []string{"wp-config.php"} }, "server.security.blocked_paths: "},
		{func(c *Config) { c.Server.Security.AllowedPHPPaths = []string{"/[a-z]"} }, "server.security.allowed_php_paths: "},
		{func(c *Config) { c.Server.Response.CompressionLevel = 10 }, "server.response.compression_level: 10"},
		{func(c *Config) { c.Server.Response.Headers = []HeaderField{{"Content-Length", "1"}} }, "server.response.headers: entry 1: Content-Length"},
		{func(c *Config) { c.Server.Response.Headers = []HeaderField{{"X", "a\nb"}} }, "server.response.headers: entry 1: "},
		{func(c *Config) { c.Server.Response.RemoveHeaders = []string{"A B"} }, "server.response.remove_headers: entry 1: "},
		{func(c *Config) { c.Server.ErrorPages = ErrorPages{"200": "/x"} }, `server.error_pages: "200"`},
		{func(c *Config) { c.Server.ErrorPages = ErrorPages{"404": "x.html"} }, "server.error_pages: 404: "},
		{func(c *Config) { c.Server.Static.CacheRules = []CacheRule{{"x", "y"}} }, "server.static.cache_rules: entry 1: "},
		{func(c *Config) { c.Server.Static.MIMETypes = MIMETypes{".x": "text"} }, "server.static.mime_types: .x: "},
		{func(c *Config) {
			c.Sites = []SiteConfig{{Names: []string{"a"}, Root: c.Server.DocumentRoot, Rewrites: []RewriteConfig{{Path: "/x", To: "y"}}}}
		}, "site[1].rewrite[1].to: "},
	} {
		c := DefaultConfig()
		c.Server.DocumentRoot = t.TempDir()
		test.change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

func hashOf(t *testing.T, password string) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(hash)
}

func TestRightPasswordIsHashedOnce(t *testing.T) {
	p := newPasswords()
	hash := []byte(hashOf(t, "open sesame"))
	for range cap(p.turns) { // nobody else has a turn
		p.turns <- struct{}{}
	}
	if ok, err := p.check(canceled(), hash, "open sesame"); ok || err == nil {
		t.Errorf("checked without a turn: %v, %v", ok, err)
	}
	<-p.turns
	if ok, _ := p.check(t.Context(), hash, "open sesame"); !ok {
		t.Error("the right password is refused")
	}
	p.turns <- struct{}{}
	if ok, _ := p.check(canceled(), hash, "open sesame"); !ok {
		t.Error("a password that was right once is hashed again")
	}
	if ok, err := p.check(canceled(), hash, "another"); ok || err == nil {
		t.Error("another password passed")
	}
	if ok, err := p.check(canceled(), []byte(hashOf(t, "open sesame")), "open sesame"); ok || err == nil {
		t.Error("a password that was right for another hash passed")
	}
}

func TestPasswordFileIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "htpasswd")
	put := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("# a comment\n\nalice:" + hashOf(t, "one") + "\n")
	a := newAuth(AuthConfig{Path: "/", File: file, Users: []string{"root:" + hashOf(t, "r")}}, newPasswords())
	s, now := &site{log: quiet}, time.Now()
	if u := a.users(s, now); u["alice"] == nil || u["root"] == nil || u["bob"] != nil {
		t.Errorf("users are %v", u)
	}
	put("bobby:" + hashOf(t, "three") + "\n")
	if u := a.users(s, now.Add(lookAgain)); u["alice"] != nil || u["bobby"] == nil {
		t.Errorf("behind a change the users are %v", u)
	}
	put("bobby:plain\n")
	if u := a.users(s, now.Add(2*lookAgain)); u["bobby"] == nil {
		t.Errorf("behind a mistake the users are %v, want those before it", u)
	}
}

func TestRulesOfAPath(t *testing.T) {
	pool := &fakePool{}
	root := files(t, "index.php", "a.txt", "admin/index.php", "admin/x.txt", "uploads/evil.php", "uploads/index.php", "uploads/ok.txt", "vendor/lib.php", "api.php", "dir/index.html", "secret/x.txt", "desk/index.php", "local/index.html")
	s := newTest(t, root, pool, func(c *Config) {
		c.Server.Fallback = []string{"$uri", "$uri/", "=404"}
		c.Server.Security.BlockedPaths = []string{"/vendor", "/uploads/*.php"}
		c.Server.Security.AllowedPHPPaths = []string{"/index.php", "/admin/*", "/api.php", "/uploads/*", "/desk/*"}
		c.Access = []AccessConfig{{Path: "/secret", Allow: []string{"10.0.0.0/8", "::1"}, Deny: []string{"10.0.0.13"}}, {Path: "/local/*.html", Allow: []string{"10.0.0.0/8"}}}
		staff := []string{"alice:" + hashOf(t, "pass")}
		c.Auth = []AuthConfig{{Path: "/admin", Realm: "Staff", Users: staff}, {Path: "/desk/index.php", Realm: "Staff", Users: staff}}
		c.Redirects = []RedirectConfig{{Path: "/old/*", To: "/$1", Status: 301}}
		c.Rewrites = []RewriteConfig{
			{Path: "/api/*", To: "/api.php?call=$1&$query_string"}, {Path: "/hide/*", To: "/.$1"}, {Path: "/in/*", To: "/admin/$1"},
			{Path: "/s/*", To: "/secret/$1"}, {Path: "/d", To: "/dir"}, {Path: "/api.php", To: "/a.txt"},
		}
	})
	ask := func(target, addr, user, password string) *http.Response {
		r := httptest.NewRequest("GET", "/", nil)
		r.RequestURI, r.RemoteAddr = target, addr+":1"
		if user != "" {
			r.SetBasicAuth(user, password)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Result()
	}
	for _, test := range []struct {
		target, addr, user string
		want               int
	}{
		{"/vendor/lib.php", "", "", 403}, {"/vendor", "", "", 403}, {"//vendor/./lib.php", "", "", 403}, {"/%76endor/lib.php", "", "", 403}, {"/vendor/lib.php/x", "", "", 403},
		{"/uploads/evil.php", "", "", 403}, {"/uploads/evil.php/x", "", "", 403}, {"/uploads/", "", "", 403}, {"/uploads/ok.txt", "", "", 200},
		{"/admin/", "", "", 401}, {"/admin", "", "", 401}, {"//admin/x.txt", "", "", 401}, {"/admin/x.txt", "", "bob", 401}, {"/admin/x.txt", "", "alice", 200}, {"/admin/", "", "alice", 200},
		{"/secret/x.txt", "192.0.2.1", "", 403}, {"/secret/x.txt", "10.1.2.3", "", 200}, {"/secret/x.txt", "10.0.0.13", "", 403},
		{"/desk/", "", "", 401}, {"/desk/", "", "alice", 200}, {"/local/", "192.0.2.1", "", 403}, {"/local/", "10.1.2.3", "", 200},
		{"/old/a.txt", "", "", 301}, {"/api/x", "", "", 200}, {"/hide/env", "", "", 403}, {"/in/x.txt", "", "", 401}, {"/in/x.txt", "", "alice", 200},
		{"/s/x.txt", "192.0.2.1", "", 403}, {"/d", "", "", 200}, {"/d/", "", "", 404}, {"/a.txt", "", "", 200},
	} {
		addr := test.addr
		if addr == "" {
			addr = "192.0.2.1"
		}
		r := ask(test.target, addr, test.user, "pass")
		if r.StatusCode != test.want {
			t.Errorf("%s from %s by %q: %d, want %d", test.target, addr, test.user, r.StatusCode, test.want)
		}
		if r.StatusCode == 401 && r.Header.Get("WWW-Authenticate") != `Basic realm="Staff", charset="UTF-8"` {
			t.Errorf("%s: the challenge is %q", test.target, r.Header.Get("WWW-Authenticate"))
		}
	}
	if r := ask("/admin/", "192.0.2.1", "alice", "wrong"); r.StatusCode != 401 {
		t.Errorf("a wrong password: %d, want 401", r.StatusCode)
	}
	if ask("/admin/", "192.0.2.1", "alice", "pass"); pool.vars["REMOTE_USER"] != "alice" || pool.vars["AUTH_TYPE"] != "Basic" {
		t.Errorf("the script got user %q, type %q", pool.vars["REMOTE_USER"], pool.vars["AUTH_TYPE"])
	}
	if ask("/api/a%26b?x=1", "192.0.2.1", "", ""); pool.vars["QUERY_STRING"] != "call=a%26b&x=1" || pool.vars["REQUEST_URI"] != "/api/a%26b?x=1" || pool.vars["SCRIPT_NAME"] != "/api.php" {
		t.Errorf("a rewritten request: %q", pool.vars)
	}
}

// canceled returns a context that has ended.
func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
