package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ephpm/phpbridge"
)

// fakePool runs run in place of a script, and remembers the last request.
type fakePool struct {
	run   func(ctx context.Context, w http.ResponseWriter, r *phpbridge.Request) error
	close func() // called by Close; may be nil

	mu     sync.Mutex // guards the following
	calls  int
	script string
	vars   map[string]string
	body   string
	closed bool
}

func (p *fakePool) Serve(ctx context.Context, w http.ResponseWriter, r *phpbridge.Request) (phpbridge.Result, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(io.LimitReader(r.Body, r.BodyLen))
	}
	p.mu.Lock()
	p.calls++
	p.script = r.Script
	p.body = string(body)
	p.vars = map[string]string{}
	for name, value := range r.Vars.All() {
		p.vars[name] = value
	}
	p.mu.Unlock()
	if p.run != nil {
		return phpbridge.Result{}, p.run(ctx, w, r)
	}
	_, err := io.WriteString(w, "ran "+filepath.Base(r.Script))
	return phpbridge.Result{}, err
}

func (p *fakePool) Reload(context.Context) error { return nil }

func (p *fakePool) Stats() phpbridge.Stats { return phpbridge.Stats{} }

func (p *fakePool) Running() []phpbridge.Running { return nil }

func (p *fakePool) Workers() phpbridge.Crew { return phpbridge.Crew{} }

func (p *fakePool) OPcache() phpbridge.OPcache { return phpbridge.OPcache{} }

func (p *fakePool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

func (p *fakePool) Close(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.close != nil {
		p.close()
	}
	return nil
}

// discardPool and discardResponse do nothing, for benchmarks.
type discardPool struct{}

func (discardPool) Serve(_ context.Context, w http.ResponseWriter, _ *phpbridge.Request) (phpbridge.Result, error) {
	w.WriteHeader(http.StatusOK)
	return phpbridge.Result{}, nil
}

func (discardPool) Close(context.Context) error { return nil }

func (discardPool) Reload(context.Context) error { return nil }

func (discardPool) Stats() phpbridge.Stats { return phpbridge.Stats{} }

func (discardPool) Running() []phpbridge.Running { return nil }

func (discardPool) Workers() phpbridge.Crew { return phpbridge.Crew{} }

func (discardPool) OPcache() phpbridge.OPcache { return phpbridge.OPcache{} }

type discardResponse struct{}

func (discardResponse) Header() http.Header { return http.Header{} }

func (discardResponse) WriteHeader(int) {}

func (discardResponse) Write(p []byte) (int, error) { return len(p), nil }

var quiet = slog.New(slog.DiscardHandler)

// writeFile puts a file that holds its own name into a directory.
func writeFile(t testing.TB, dir, name string) {
	t.Helper()
	full := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte("content of "+name), 0o644); err != nil {
		t.Fatal(err)
	}
}

// files makes a document root. A name that ends in "/" is a directory.
func files(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if !strings.HasSuffix(name, "/") {
			writeFile(t, dir, name)
		} else if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// newTest returns a server over a fake pool.
func newTest(t *testing.T, root string, pool *fakePool, change ...func(*Config)) *Server {
	t.Helper()
	c := DefaultConfig()
	c.Server.DocumentRoot = root
	c.Server.WebSocket.Enabled = false
	for _, f := range change {
		f(&c)
	}
	s, err := newServer(c, pool, testStores(t, c), quiet)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var timeZero = time.Unix(1e9, 0)

func get(s http.Handler, target string) *http.Response { return do(s, "GET", target, nil) }

func do(s http.Handler, method, target string, body io.Reader) *http.Response {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, "/", body)
	r.RequestURI = target
	s.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// testStores makes the stores of a configuration, for the length of a test.
func testStores(t testing.TB, c Config) *stores {
	t.Helper()
	s, err := openStores(c, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}
