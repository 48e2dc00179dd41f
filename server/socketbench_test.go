package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ephpm/phpbridge"
	"ephpm/registry"
	ws "ephpm/websocket"
	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"
)

// A ran is one event that a fake script saw.
type ran struct {
	event   string
	vars    map[string]string
	body    string
	request *phpbridge.Request
	host    *host
	id      registry.ID
}

// A fakeScript stands for the site's WebSocket script.
type fakeScript func(ctx context.Context, w http.ResponseWriter, e ran) error

// A bench is the sockets of one site under test, behind a real HTTP server.
type bench struct {
	t       *testing.T
	s       *sockets
	url     string
	addr    string
	log     *syncBuffer
	metrics *prometheus.Registry

	mu     sync.Mutex // guards the following
	events []ran
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// run returns a runner of the fake script.
func (b *bench) run(script fakeScript) runFunc {
	return func(ctx context.Context, w http.ResponseWriter, r *phpbridge.Request) (phpbridge.Result, error) {
		e := ran{vars: map[string]string{}, request: r, host: r.Host.(*host)}
		for name, value := range r.Vars.All() {
			if _, twice := e.vars[name]; twice {
				b.t.Errorf("variable %s is there twice", name)
			}
			e.vars[name] = value
		}
		body, _ := io.ReadAll(r.Body)
		e.event, e.body = e.vars["WS_EVENT"], string(body)
		e.id, _ = registry.ParseID(e.vars["WS_CONNECTION_ID"])
		if int64(len(body)) != r.BodyLen || r.Class != phpbridge.Event {
			b.t.Errorf("BodyLen %d of %d bytes, class %v", r.BodyLen, len(body), r.Class)
		}
		b.mu.Lock()
		b.events = append(b.events, e)
		b.mu.Unlock()
		if script == nil {
			return phpbridge.Result{}, nil
		}
		return phpbridge.Result{}, script(ctx, w, e)
	}
}

type runFunc func(context.Context, http.ResponseWriter, *phpbridge.Request) (phpbridge.Result, error)

func (f runFunc) Serve(ctx context.Context, w http.ResponseWriter, r *phpbridge.Request) (phpbridge.Result, error) {
	return f(ctx, w, r)
}

func newBench(t *testing.T, php fakeScript, change ...func(*socketOptions)) *bench {
	t.Helper()
	b := &bench{t: t, log: &syncBuffer{}, metrics: prometheus.NewRegistry()}
	o := socketOptions{
		site:           "default",
		log:            slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		metrics:        newSocketMetrics(b.metrics),
		open:           new(atomic.Int64),
		loop:           ws.NewLoop(),
		calm:           newCalm(),
		maxMessage:     1 << 20,
		conn:           ws.DefaultOptions(),
		sendWait:       100 * time.Millisecond,
		requestTimeout: 7 * time.Second,
		entrypoint:     func() (string, bool) { return "/site/websocket.php", true },
		php:            b.run(php),
	}
	for _, f := range change {
		f(&o)
	}
	b.s = newSockets(o)
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rw := &response{ResponseWriter: w}
		c := cgi{request: r, id: "r1", target: target{uri: r.RequestURI}, route: &route{query: r.URL.RawQuery,
			script: &script{file: "/site/websocket.php", name: "/websocket.php"}}, root: "/site", bodyLen: -1}
		b.s.upgrade(rw, r, c.appendTo(nil), "r1")
		if rw.cut {
			panic(http.ErrAbortHandler)
		}
	}))
	hs.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		b.shutdown(ctx)
		hs.Close()
		b.s.loop.Close()
		if n, m := b.s.open.Load(), b.s.members.Len(); n != 0 || m != 0 || b.s.members.Channels() != 0 {
			t.Errorf("leaked: %d open, %d registered, %d channels", n, m, b.s.members.Channels())
		}
	})
	b.url, b.addr = hs.URL, hs.Listener.Addr().String()
	return b
}

func (b *bench) shutdown(ctx context.Context) {
	b.s.mu.Lock()
	stopping := b.s.stopping
	b.s.mu.Unlock()
	if !stopping {
		b.s.shutdown(ctx)
	}
	b.s.wait()
}

func (b *bench) dial(o *websocket.DialOptions) *websocket.Conn {
	b.t.Helper()
	c, _, err := websocket.Dial(b.t.Context(), b.url+"/room?x=1", o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

// raw sends an upgrade request with more or other header lines and returns the answer.
func (b *bench) raw(edit ...string) *http.Response {
	b.t.Helper()
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close() })
	request := "GET /room HTTP/1.1\r\nHost: example.org\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	fmt.Fprint(c, strings.NewReplacer(edit...).Replace(request))
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// with adds a header line to raw's request.
func with(line string) []string { return []string{"Host: ", line + "\r\nHost: "} }

func (b *bench) seen(event string) []ran {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.events), func(e ran) bool { return e.event != event })
}

// ended closes everything and returns the only disconnect event.
func (b *bench) ended() ran {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	b.shutdown(ctx)
	if e := b.seen(eventDisconnect); len(e) == 1 {
		return e[0]
	}
	b.t.Fatalf("%d disconnect events, want one", len(b.seen(eventDisconnect)))
	return ran{}
}

// count returns the value of a series, given as name or name{label="value"}.
func (b *bench) count(series string) float64 {
	b.t.Helper()
	families, err := b.metrics.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			name := f.GetName()
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			if name == series {
				return m.Counter.GetValue() + m.Gauge.GetValue()
			}
		}
	}
	b.t.Fatalf("no series %s", series)
	return 0
}

func (b *bench) wantCount(series string, want float64) {
	b.t.Helper()
	if got := b.count(series); got != want {
		b.t.Errorf("%s = %v, want %v", series, got, want)
	}
}

func (b *bench) wantLog(parts ...string) {
	b.t.Helper()
	for line := range strings.SplitSeq(b.log.String(), "\n") {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
			return
		}
	}
	b.t.Errorf("no log line with %q in\n%s", parts, b.log)
}

func read(t *testing.T, c *websocket.Conn) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, p, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return string(p)
}

// wantClose reads up to the close frame.
func wantClose(t *testing.T, c *websocket.Conn, code int, reason string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, p, err := c.Read(ctx)
	var got websocket.CloseError
	if !errors.As(err, &got) || int(got.Code) != code || got.Reason != reason {
		t.Fatalf("read %q, %v, want close %d %q", p, err, code, reason)
	}
}

func write(t *testing.T, c *websocket.Conn, text string) {
	t.Helper()
	if err := c.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func mustSend(t *testing.T, ctx context.Context, e ran, text string) {
	t.Helper()
	if ok, err := e.host.send(ctx, e.id, []byte(text), false); !ok || err != nil {
		t.Errorf("send %q = %v, %v", text, ok, err)
	}
}
