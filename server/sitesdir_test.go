package server

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"ephpm/phpbridge"
)

// withSitesDir gives a configuration a directory of sites, as Derive leaves it.
func withSitesDir(t *testing.T, dir string) func(*Config) {
	return func(c *Config) {
		c.Server.DocumentRoot = ""
		c.Server.SitesDir = dir
		c.Server.SitesStateDir = filepath.Join(t.TempDir(), "state")
	}
}

func TestDirectoriesAreSites(t *testing.T) {
	dir := files(t, "a.example/a.txt", "b/b.txt", ".git/x.txt", "Upper/x.txt", "a b/x.txt", "file.example")
	if err := os.Symlink("b", filepath.Join(dir, "link.example")); err != nil {
		t.Fatal(err)
	}
	s := newTest(t, "", &fakePool{}, withSitesDir(t, dir), func(c *Config) {
		c.Server.SitesDomainSuffix = ".localhost"
		c.Sites = []SiteConfig{{Names: []string{"a.example"}, Root: files(t, "table.txt")}, {Names: []string{"*.example"}, Root: files(t, "wild.txt")}}
	})
	for _, test := range []struct {
		host, target string
		want         int
	}{
		{"a.example", "/table.txt", 200}, // a table's own name comes first
		{"link.example", "/b.txt", 200},  // then a directory
		{"c.example", "/wild.txt", 200},  // then a wildcard
		{"b", "/b.txt", 200},
		{"b.localhost", "/b.txt", 200},
		{"a.example.localhost", "/a.txt", 200},
		{"localhost", "/b.txt", 404},
		{".localhost", "/b.txt", 400},
		{".git", "/x.txt", 400},
		{"Upper", "/x.txt", 404},
		{"upper", "/x.txt", 404},
		{"file.example", "/", 404},
		{"..", "/b.txt", 400},
	} {
		if r := getHost(s, test.host, test.target); r.StatusCode != test.want {
			t.Errorf("Host %q, GET %s: %d, want %d", test.host, test.target, r.StatusCode, test.want)
		}
	}
}

func TestSitesComeAndGoWithTheirDirectories(t *testing.T) {
	dir := files(t, "a.example/index.html")
	s := newTest(t, "", &fakePool{}, withSitesDir(t, dir))
	status := func(host string, want int) {
		t.Helper()
		if r := getHost(s, host, "/"); r.StatusCode != want {
			t.Errorf("%s: %d, want %d", host, r.StatusCode, want)
		}
	}
	status("a.example", 200)
	status("b.example", 404)

	writeFile(t, dir, "b.example/index.html")
	now := time.Now()
	refresh := func() {
		t.Helper()
		now = now.Add(listAgain)
		if err := s.sites.dir.refresh(now); err != nil {
			t.Error(err)
		}
	}
	refresh()
	status("b.example", 200)

	if err := os.RemoveAll(filepath.Join(dir, "a.example")); err != nil {
		t.Fatal(err)
	}
	refresh()
	status("a.example", 404)
	status("b.example", 200)
	s.sites.dir.closing.Wait()

	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := s.sites.dir.refresh(now.Add(time.Hour)); err == nil {
		t.Error("a directory of sites that is away was listed")
	}
	status("b.example", 200) // as long as nobody knows better
}

func TestAListIsOldWhenTheDirectoryChanged(t *testing.T) {
	dir := files(t, "a/index.html")
	s := newTest(t, "", &fakePool{}, withSitesDir(t, dir))
	d := s.sites.dir
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	touch := func(at time.Time) {
		t.Helper()
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
	}
	relisted := func(at time.Time) bool {
		t.Helper()
		before := d.index.Load()
		if err := d.refresh(at); err != nil {
			t.Fatal(err)
		}
		return d.index.Load() != before
	}
	touch(old)
	at := time.Now()
	if !relisted(at) {
		t.Error("another time of the directory was not noticed")
	}
	if relisted(at.Add(listAgain)) {
		t.Error("a directory that did not change was listed again")
	}
	if !relisted(at.Add(listAnyway)) {
		t.Errorf("a directory was not listed again after %v", listAnyway)
	}
	touch(at.Add(listAnyway)) // changed when it was listed: the next change may have the same time
	at = at.Add(listAnyway)
	if !relisted(at) || !relisted(at.Add(listAgain)) || !relisted(at.Add(2*listAgain)) {
		t.Error("a directory that changed a moment ago was not listed again")
	}
}

// The sockets of a site that is gone are closed as at a stop.
func TestARemovedSiteClosesItsSockets(t *testing.T) {
	var mu sync.Mutex
	var causes []string
	pool := &fakePool{run: func(_ context.Context, w http.ResponseWriter, r *phpbridge.Request) error {
		mu.Lock()
		defer mu.Unlock()
		for name, value := range r.Vars.All() {
			if name == "WS_CLOSE_CAUSE" {
				causes = append(causes, value)
			}
		}
		return nil
	}}
	dir := files(t, "a.example/websocket.php", "b.example/websocket.php")
	s := newTest(t, "", pool, withSitesDir(t, dir), func(c *Config) { c.Server.WebSocket.Enabled = true })
	ts := httptest.NewServer(s)
	defer ts.Close()
	connect := func(host string) *bufio.Reader {
		t.Helper()
		c := dial(t, ts.Listener.Addr())
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n", host)
		in := bufio.NewReader(c)
		if r, err := http.ReadResponse(in, nil); err != nil || r.StatusCode != 101 {
			t.Fatalf("upgrade at %s: %v, %v", host, r, err)
		}
		return in
	}
	a := connect("a.example")
	connect("b.example")
	if err := os.RemoveAll(filepath.Join(dir, "a.example")); err != nil {
		t.Fatal(err)
	}
	if err := s.sites.dir.refresh(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 4)
	if _, err := a.Read(frame); err != nil || frame[0] != 0x88 || int(frame[2])<<8|int(frame[3]) != 1001 {
		t.Errorf("the removed site's socket got % x, %v; want a close frame with 1001", frame, err)
	}
	s.sites.dir.closing.Wait()
	mu.Lock()
	if len(causes) != 1 || causes[0] != "shutdown" {
		t.Errorf("disconnect events ran for %q, want one, shutdown", causes)
	}
	mu.Unlock()
	if b, err := s.sites.find("b.example"); err != nil || b.sockets.members.Len() != 1 {
		t.Errorf("the other site has lost its socket: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.sites.shutdown(ctx)
	s.sites.wait()
}

func TestInventedHostsLeaveNothing(t *testing.T) {
	dir := files(t, "a.example/index.html")
	s := newTest(t, files(t, "index.html"), &fakePool{}, func(c *Config) { c.Server.Metrics.Enabled = true },
		func(c *Config) { c.Server.SitesDir, c.Server.SitesStateDir = dir, filepath.Join(t.TempDir(), "state") })
	ask := func(n int) {
		for i := range n {
			if r := getHost(s, fmt.Sprintf("invented-%d.example", i), "/"); r.StatusCode != 200 {
				t.Fatalf("an invented host: %d", r.StatusCode)
			}
		}
	}
	series := func() int {
		families, err := s.metrics.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, f := range families {
			n += len(f.Metric)
		}
		return n
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapObjects
	}
	ask(10)
	before, objects := series(), heap()
	ask(1000)
	if got := series(); got != before {
		t.Errorf("%d metric series after 1000 invented hosts, %d before", got, before)
	}
	if grown := int64(heap()) - int64(objects); grown > 500 {
		t.Errorf("1000 invented hosts left %d objects", grown)
	}
}
