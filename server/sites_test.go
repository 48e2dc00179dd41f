package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ephpm/phpbridge"
)

// getHost asks for a path of a host.
func getHost(s http.Handler, host, target string) *http.Response {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/", nil)
	r.RequestURI, r.Host = target, host
	s.ServeHTTP(w, r)
	return w.Result()
}

// withSites gives a configuration two sites, and a document root only if root is
// not empty.
func withSites(root string, roots ...string) func(*Config) {
	return func(c *Config) {
		c.Server.DocumentRoot = root
		for i, root := range roots {
			name := string(rune('a' + i))
			c.Sites = append(c.Sites, SiteConfig{Names: []string{name + ".example", "*." + name + ".example"}, Root: root})
		}
	}
}

func TestHostChoosesTheSite(t *testing.T) {
	rootA, rootB, other := files(t, "a.txt"), files(t, "b.txt"), files(t, "other.txt")
	s := newTest(t, "", &fakePool{}, withSites(other, rootA, rootB))
	for _, test := range []struct {
		host, target string
		want         int
	}{
		{"a.example", "/a.txt", 200},
		{"A.Example.:8080", "/a.txt", 200},
		{"www.a.example", "/a.txt", 200},
		{"a.example", "/b.txt", 404},
		{"b.example", "/b.txt", 200},
		{"b.example", "/other.txt", 404},
		{"c.example", "/other.txt", 200},
		{"", "/other.txt", 200},
		{"[::1]", "/other.txt", 200},
		{"a.example/", "/a.txt", 400},
		{"../a", "/a.txt", 400},
		{"a.example:x", "/a.txt", 400},
	} {
		if r := getHost(s, test.host, test.target); r.StatusCode != test.want {
			t.Errorf("Host %q, GET %s: %d, want %d", test.host, test.target, r.StatusCode, test.want)
		}
	}
}

func TestUnknownHostsGet404WithoutADocumentRoot(t *testing.T) {
	s := newTest(t, "", &fakePool{}, withSites("", files(t, "index.html")))
	if r := getHost(s, "c.example", "/"); r.StatusCode != 404 {
		t.Errorf("an unknown host got %d, want 404", r.StatusCode)
	}
	if r := getHost(s, "c.example", "/_ephpm/health"); r.StatusCode != 200 {
		t.Errorf("health under an unknown host is %d, want 200", r.StatusCode)
	}
}

func TestUntrustedHostsGet421(t *testing.T) {
	s := newTest(t, files(t, "index.html"), &fakePool{}, func(c *Config) {
		c.Server.Request.TrustedHosts = []string{"example.org", "*.example.net"}
	})
	for host, want := range map[string]int{
		"example.org": 200, "EXAMPLE.org:80": 200, "www.example.net": 200, "example.net": 421, "www.example.org": 421, "": 421, "evil": 421, "a b": 400,
	} {
		if r := getHost(s, host, "/"); r.StatusCode != want {
			t.Errorf("Host %q: %d, want %d", host, r.StatusCode, want)
		}
	}
	if r := getHost(s, "evil", "/_ephpm/ready"); r.StatusCode != 200 {
		t.Errorf("ready under a host that is not trusted is %d, want 200", r.StatusCode)
	}
}

func TestASiteHasItsOwnSettings(t *testing.T) {
	var timeout string
	pool := &fakePool{run: func(_ context.Context, w http.ResponseWriter, r *phpbridge.Request) error {
		timeout = fmt.Sprint(r.Timeout, " ", r.Site)
		_, err := io.WriteString(w, filepath.Base(r.Script))
		return err
	}}
	seven, few := Duration(7e9), Size(3)
	s := newTest(t, "", pool, func(c *Config) {
		c.Server.DocumentRoot = files(t, "index.php", "home.php")
		c.Sites = []SiteConfig{{
			Names: []string{"a.example"}, Root: files(t, "index.php", "home.php"), IndexFiles: []string{"home.php"},
			Fallback: []string{"$uri", "$uri/", "=410"},
			Timeouts: SiteTimeoutsConfig{Request: &seven}, Request: SiteRequestConfig{MaxBodySize: &few},
		}}
	})
	if got := text(t, getHost(s, "a.example", "/")); got != "home.php" || timeout != "7s a.example" {
		t.Errorf("ran %q with %q, want home.php with the site's limit", got, timeout)
	}
	if r := getHost(s, "a.example", "/none"); r.StatusCode != 410 {
		t.Errorf("the site's fallback gave %d, want 410", r.StatusCode)
	}
	if got := text(t, getHost(s, "other", "/")); got != "index.php" || timeout != "5m0s -" {
		t.Errorf("ran %q with %q, want index.php with the server's limit", got, timeout)
	}
	r := httptest.NewRequest("POST", "/", strings.NewReader("four"))
	r.RequestURI, r.Host = "/", "a.example"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != 413 {
		t.Errorf("a body over the site's limit gave %d, want 413", w.Code)
	}
}

func TestUnknownHostsHaveNoSockets(t *testing.T) {
	ran := ""
	pool := &fakePool{run: func(_ context.Context, w http.ResponseWriter, r *phpbridge.Request) error {
		ran = r.Site
		if _, ok := r.Host.(*pageHost); !ok && r.Class == phpbridge.Page {
			t.Error("the functions of a host without a site do not throw")
		}
		w.WriteHeader(http.StatusUnauthorized)
		return nil
	}}
	s := newTest(t, "", pool, withSites(files(t, "websocket.php", "page.php"), files(t, "websocket.php")),
		func(c *Config) { c.Server.WebSocket.Enabled = true })
	ts := httptest.NewServer(s)
	defer ts.Close()
	for host, want := range map[string]int{"a.example": 401, "unknown.example": 404} {
		c := dial(t, ts.Listener.Addr())
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n", host)
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || r.StatusCode != want {
			t.Errorf("upgrade at %s: %v, %v; want %d", host, r, err, want)
		}
	}
	if ran != "a.example" {
		t.Errorf("the connect event ran for %q, want a.example alone", ran)
	}
	if r := getHost(s, "unknown.example", "/page.php"); r.StatusCode != 401 {
		t.Errorf("a page under an unknown host: %d, want the script's 401", r.StatusCode)
	}
}

func TestDocumentRootMayStayTheLink(t *testing.T) {
	base := files(t, "v1/index.php")
	if err := os.Symlink("v1", filepath.Join(base, "current")); err != nil {
		t.Fatal(err)
	}
	for _, resolve := range []bool{true, false} {
		pool := &fakePool{}
		s := newTest(t, filepath.Join(base, "current"), pool, func(c *Config) { c.Server.ResolveRoot = resolve })
		want := "current"
		if resolve {
			want = "v1"
		}
		get(s, "/")
		if got := filepath.Base(pool.vars["DOCUMENT_ROOT"]); got != want {
			t.Errorf("resolve_root = %v: DOCUMENT_ROOT ends in %q, want %q", resolve, got, want)
		}
		if got := filepath.Base(filepath.Dir(pool.script)); got != want {
			t.Errorf("resolve_root = %v: the script is below %q, want %q", resolve, got, want)
		}
	}
}
