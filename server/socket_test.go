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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"ephpm/phpbridge"
	"ephpm/registry"
	ws "ephpm/websocket"
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

func TestLifeOfASocket(t *testing.T) {
	b := newBench(t, func(ctx context.Context, w http.ResponseWriter, e ran) error {
		switch e.event {
		case eventConnect:
			w.Header().Add("Set-Cookie", "a=1")
			w.Header().Add("Set-Cookie", "b=2")
			w.Header().Set("X-Own", "yes")
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Length", "5")
			w.WriteHeader(http.StatusNoContent)
			mustSend(t, ctx, e, "welcome")
			mustSend(t, ctx, e, "here are the rules")
		case eventMessage:
			_, _ = io.WriteString(w, "goes nowhere")
			mustSend(t, ctx, e, "you said "+e.body)
		}
		return nil
	})
	c, r, err := websocket.Dial(t.Context(), b.url+"/room?x=1", &websocket.DialOptions{
		HTTPHeader: http.Header{"Cookie": {"sid=7"}, "Origin": {b.url}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Header.Values("Set-Cookie"); len(got) != 2 || r.Header.Get("X-Own") != "yes" ||
		r.Header.Get("Content-Type") != "" || r.Header.Get("Content-Length") != "" {
		t.Errorf("headers of the 101: %v", r.Header)
	}
	for _, want := range []string{"welcome", "here are the rules"} {
		if got := read(t, c); got != want {
			t.Errorf("read %q, want %q", got, want)
		}
	}
	write(t, c, "hi")
	if got := read(t, c); got != "you said hi" {
		t.Errorf("read %q", got)
	}
	if err := c.Write(t.Context(), websocket.MessageBinary, []byte{1}); err != nil {
		t.Fatal(err)
	}
	read(t, c)
	if err := c.Close(4001, "done here"); err != nil {
		t.Errorf("the close was not echoed: %v", err)
	}

	end := b.ended()
	for name, want := range map[string]string{
		"WS_CLOSE_CODE": "4001", "WS_CLOSE_REASON": "done here", "WS_CLOSE_CAUSE": "client",
	} {
		if end.vars[name] != want {
			t.Errorf("disconnect has %s=%q, want %q", name, end.vars[name], want)
		}
	}
	if _, err := strconv.Atoi(end.vars["WS_DURATION_MS"]); err != nil {
		t.Errorf("WS_DURATION_MS: %v", err)
	}
	connect, message := b.seen(eventConnect)[0], b.seen(eventMessage)
	if len(message) != 2 {
		t.Fatalf("%d message events, want 2", len(message))
	}
	for _, e := range []ran{connect, message[0], message[1], end} {
		if e.vars["WS_SAME_ORIGIN"] != "1" || e.vars["HTTP_COOKIE"] != "sid=7" || e.vars["QUERY_STRING"] != "x=1" ||
			e.vars["REQUEST_METHOD"] != "GET" || e.id != connect.id || len(e.vars["WS_CONNECTION_ID"]) != 32 ||
			e.request.Script != "/site/websocket.php" || e.request.Timeout != 7*time.Second {
			t.Errorf("%s event: %v", e.event, e.vars)
		}
	}
	if connect.vars["HTTP_UPGRADE"] != "websocket" || connect.vars["HTTP_SEC_WEBSOCKET_VERSION"] != "13" {
		t.Errorf("connect has not the headers of the upgrade: %v", connect.vars)
	}
	for _, name := range []string{"HTTP_CONNECTION", "HTTP_UPGRADE", "HTTP_SEC_WEBSOCKET_KEY", "CONTENT_LENGTH"} {
		if _, there := message[0].vars[name]; there {
			t.Errorf("%s is replayed", name)
		}
	}
	if _, there := end.vars["CONTENT_TYPE"]; there {
		t.Error("disconnect has a CONTENT_TYPE")
	}
	if m := message[0]; m.vars["WS_OPCODE"] != "text" || m.vars["CONTENT_TYPE"] != "text/plain; charset=utf-8" || m.body != "hi" {
		t.Errorf("text message: %q %v", m.body, m.vars)
	}
	if m := message[1]; m.vars["WS_OPCODE"] != "binary" || m.vars["CONTENT_TYPE"] != "application/octet-stream" {
		t.Errorf("binary message: %v", m.vars)
	}
	b.wantLog("socket established", "site=default")
	b.wantLog("socket closed", "code=4001", "cause=client")
	for series, want := range map[string]float64{
		"ephpm_ws_connections_total": 1, "ephpm_ws_connections_active": 0, `ephpm_ws_events_total{event="message"}`: 2,
		"ephpm_ws_frames_received_total": 2, "ephpm_ws_frames_queued_total": 4, "ephpm_ws_frames_sent_total": 4,
		`ephpm_ws_closed_total{cause="client"}`: 1, `ephpm_ws_close_codes_total{code="4xxx"}`: 1,
		"ephpm_ws_received_bytes_total": 3,
	} {
		b.wantCount(series, want)
	}
}

func TestRefusals(t *testing.T) {
	full := func(o *socketOptions) { o.maxOpen = 1; o.open.Store(1) }
	for name, c := range map[string]struct {
		change func(*socketOptions)
		edit   []string
		status int
		body   string
		series string
	}{
		"no entrypoint": {func(o *socketOptions) { o.entrypoint = func() (string, bool) { return "", false } }, nil,
			404, "404 Not Found", `ephpm_ws_handshake_rejected_total{reason="entrypoint"}`},
		"no key": {nil, []string{"Sec-WebSocket-Key", "X"}, 400, "400 Bad WebSocket Handshake",
			`ephpm_ws_handshake_rejected_total{reason="handshake"}`},
		"version 8": {nil, []string{"Version: 13", "Version: 8"}, 400, "400 Bad WebSocket Handshake",
			`ephpm_ws_handshake_rejected_total{reason="handshake"}`},
		"body too large": {nil, with("Content-Length: 100000000"), 400, "400 Bad WebSocket Handshake",
			`ephpm_ws_handshake_rejected_total{reason="handshake"}`},
		"other origin": {func(o *socketOptions) { o.allowedOrigins = []string{SameOrigin, "https://app.example"} },
			with("Origin: https://evil.example"), 403, "403 origin not allowed", `ephpm_ws_handshake_rejected_total{reason="origin"}`},
		"server full": {full, nil, 503, "503 websocket connection limit reached", `ephpm_ws_connections_rejected_total{reason="server_full"}`},
	} {
		t.Run(name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = func(*socketOptions) {}
			}
			b := newBench(t, nil, change)
			if c.series == `ephpm_ws_connections_rejected_total{reason="server_full"}` {
				defer b.s.open.Store(0)
			}
			b.wantCount(c.series, 0)
			if name == "body too large" {
				c.edit = append(c.edit, "==\r\n\r\n", "==\r\n\r\n"+strings.Repeat("x", maxUpgradeBody+1))
			}
			r := b.raw(c.edit...)
			body, _ := io.ReadAll(r.Body)
			if r.StatusCode != c.status || string(body) != c.body+"\n" {
				t.Errorf("answer %d %q, want %d %q", r.StatusCode, body, c.status, c.body)
			}
			if got := r.Header.Get("Sec-WebSocket-Version"); (got == "13") != (c.status == 400) {
				t.Errorf("Sec-WebSocket-Version: %q", got)
			}
			b.wantCount(c.series, 1)
			b.wantLog("level=INFO", "upgrade refused", "site=default", "addr=127.0.0.1", "status="+strconv.Itoa(c.status), "reason=")
			if len(b.events) != 0 {
				t.Errorf("PHP saw it: %v", b.events)
			}
		})
	}
}

func TestSiteLimit(t *testing.T) {
	b := newBench(t, nil, func(o *socketOptions) { o.maxSite = 2 })
	b.dial(nil)
	b.dial(nil)
	r := b.raw()
	body, _ := io.ReadAll(r.Body)
	if want := "503 websocket connection limit reached for this site\n"; r.StatusCode != 503 || string(body) != want {
		t.Errorf("answer %d %q, want %q", r.StatusCode, body, want)
	}
	b.wantCount(`ephpm_ws_connections_rejected_total{reason="site_full"}`, 1)
	b.wantCount(`ephpm_ws_handshake_rejected_total{reason="capacity"}`, 1)
}

func TestAllowedOriginsLetIn(t *testing.T) {
	for _, origin := range []string{"", "http://example.org", "https://example.org", "https://APP.example"} {
		b := newBench(t, nil, func(o *socketOptions) { o.allowedOrigins = []string{SameOrigin, "https://app.example"} })
		var edit []string
		if origin != "" {
			edit = with("Origin: " + origin)
		}
		if r := b.raw(edit...); r.StatusCode != 101 {
			t.Errorf("origin %q: status %d, want 101", origin, r.StatusCode)
		}
	}
}

func TestSameOrigin(t *testing.T) {
	for origin, want := range map[string]bool{
		"": true, "http://example.org": true, "https://EXAMPLE.org": true, "https://example.org:443": true, "null": false,
		"https://example.org:8443": false, "https://other.org": false, "example.org": false, "http://example.org.evil": false,
	} {
		r := httptest.NewRequest("GET", "http://example.org/", nil)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		if got := sameOrigin(r); got != want {
			t.Errorf("origin %q: sameOrigin = %v, want %v", origin, got, want)
		}
	}
}

func TestConnectRefusesVerbatim(t *testing.T) {
	b := newBench(t, func(ctx context.Context, w http.ResponseWriter, e ran) error {
		b := e.host.s.members
		b.Subscribe(e.id, "lobby")
		mustSend(t, ctx, e, "never seen")
		w.Header().Set("WWW-Authenticate", "Basic")
		w.Header().Set("Content-Type", "text/x-own")
		w.WriteHeader(401)
		_, err := io.WriteString(w, "log in first")
		return err
	})
	r := b.raw()
	body, _ := io.ReadAll(r.Body)
	if r.StatusCode != 401 || string(body) != "log in first" || r.Header.Get("WWW-Authenticate") != "Basic" || r.Header.Get("Content-Type") != "text/x-own" {
		t.Errorf("answer %d %q %v", r.StatusCode, body, r.Header)
	}
	b.wantCount("ephpm_ws_connect_rejected_total", 1)
	b.wantLog("level=INFO", "upgrade refused", "site=default", "addr=127.0.0.1", "status=401", "refused by connect")
	if len(b.seen(eventDisconnect)) != 0 {
		t.Error("disconnect ran for a refused socket")
	}
}

func TestConnectThatDoesNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		reason string
	}{
		"timeout": {phpbridge.ErrTimeout, 504, failedTimeout},
		"busy":    {phpbridge.ErrBusy, 503, failedBusy},
		"crash":   {&phpbridge.CrashError{Reason: "signal 11"}, 502, failedCrash},
		"large":   {phpbridge.ErrTooLarge, 431, failedOther},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(_ context.Context, w http.ResponseWriter, _ ran) error {
				w.WriteHeader(200) // flushed before it broke
				return c.err
			})
			r := b.raw()
			if r.StatusCode != c.status || (r.Header.Get("Retry-After") == "1") != (c.status == 503) {
				t.Errorf("status %d, headers %v, want %d", r.StatusCode, r.Header, c.status)
			}
			b.wantCount(fmt.Sprintf(`ephpm_ws_event_failures_total{event="connect",reason=%q}`, c.reason), 1)
			b.wantLog("level=INFO", "upgrade refused", "status="+strconv.Itoa(c.status))
		})
	}
}

func TestClientThatLeavesDuringConnectLeaksNothing(t *testing.T) {
	entered := make(chan struct{})
	b := newBench(t, func(ctx context.Context, _ http.ResponseWriter, e ran) error {
		e.host.s.members.Subscribe(e.id, "lobby")
		close(entered)
		<-ctx.Done() // the script runs to its end and accepts
		return nil
	})
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	<-entered
	c.Close()
	b.shutdown(t.Context()) // the rest is checked for every test
	if len(b.seen(eventDisconnect)) != 0 {
		t.Error("disconnect ran for a socket that never was")
	}
}

func TestSubprotocol(t *testing.T) {
	for _, c := range []struct{ offered, script, config, want string }{
		{"v1, v2", "v2", "v1", "v2"},
		{"v1, v2", "v9", "v2", "v2"},
		{"v1, v2", "", "v3,v2,v1", "v2"},
		{"v1", "", "", ""},
		{"", "v1", "v1", ""},
	} {
		b := newBench(t, func(_ context.Context, w http.ResponseWriter, e ran) error {
			if c.script != "" && e.event == eventConnect {
				w.Header().Set("Sec-WebSocket-Protocol", c.script)
			}
			return nil
		}, func(o *socketOptions) { o.subprotocols = strings.Split(c.config, ",") })
		var edit []string
		if c.offered != "" {
			edit = with("Sec-WebSocket-Protocol: " + c.offered)
		}
		r := b.raw(edit...)
		if got := r.Header.Get("Sec-WebSocket-Protocol"); r.StatusCode != 101 || got != c.want {
			t.Errorf("offered %q, script %q, configured %q: status %d, got %q, want %q",
				c.offered, c.script, c.config, r.StatusCode, got, c.want)
		}
	}
}

func TestMessageThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		code  int // 0: stays open
		cause string
	}{
		"timeout": {phpbridge.ErrTimeout, 1011, "timeout"},
		"busy":    {phpbridge.ErrBusy, 1013, "server"},
		"closed":  {phpbridge.ErrClosed, 1001, "shutdown"},
		"crash":   {&phpbridge.CrashError{Reason: "signal 9"}, 0, ""},
		"fatal":   {nil, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(ctx context.Context, w http.ResponseWriter, e ran) error {
				switch {
				case e.body == "break" && c.err == nil:
					w.WriteHeader(500)
				case e.body == "break":
					return c.err
				case e.event == eventMessage:
					mustSend(t, ctx, e, "still here")
				}
				return nil
			})
			cl := b.dial(nil)
			write(t, cl, "break")
			if c.code != 0 {
				wantClose(t, cl, c.code, "")
				if end := b.ended(); end.vars["WS_CLOSE_CODE"] != strconv.Itoa(c.code) || end.vars["WS_CLOSE_CAUSE"] != c.cause {
					t.Errorf("disconnect: %v", end.vars)
				}
				return
			}
			write(t, cl, "next")
			if got := read(t, cl); got != "still here" {
				t.Errorf("read %q", got)
			}
			b.wantLog("level=WARN", "event failed", "event=message", "reason="+name)
			b.wantCount(fmt.Sprintf(`ephpm_ws_event_failures_total{event="message",reason=%q}`, name), 1)
		})
	}
}

func TestShutdownTellsEverybody(t *testing.T) {
	b := newBench(t, nil)
	cl := b.dial(nil)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		wantClose(t, cl, 1001, "")
	}()
	if end := b.ended(); end.vars["WS_CLOSE_CAUSE"] != "shutdown" || end.vars["WS_CLOSE_CODE"] != "1001" {
		t.Errorf("disconnect: %v", end.vars)
	}
	<-closed
	if r := b.raw(); r.StatusCode != 503 {
		t.Errorf("upgrade after shutdown: status %d, want 503", r.StatusCode)
	}
}

func TestShutdownReturnsWhenItsTimeIsOver(t *testing.T) {
	release, entered := make(chan struct{}), make(chan struct{})
	b := newBench(t, func(_ context.Context, _ http.ResponseWriter, e ran) error {
		if e.event == eventMessage {
			close(entered)
			<-release
		}
		return nil
	})
	write(t, b.dial(nil), "work")
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b.s.shutdown(ctx) // returns although the script runs
	close(release)
	b.s.wait()
	b.wantLog("level=WARN", "cut the sockets")
}

func TestDisconnectComesAfterTheRegistryForgot(t *testing.T) {
	disconnected := make(chan struct{})
	b := newBench(t, func(ctx context.Context, _ http.ResponseWriter, e ran) error {
		members := e.host.s.members
		switch e.event {
		case eventConnect:
			if !members.Subscribe(e.id, "lobby") {
				t.Error("connect cannot subscribe")
			}
		case eventDisconnect:
			defer close(disconnected)
			if ok, err := e.host.send(ctx, e.id, []byte("x"), false); ok || err != nil || members.Len() != 0 || members.Count("lobby") != 0 {
				t.Errorf("in disconnect: send %v %v, %d connections, %d members", ok, err, members.Len(), members.Count("lobby"))
			}
		}
		return nil
	})
	_ = b.dial(nil).CloseNow()
	<-disconnected
	if end := b.ended(); end.vars["WS_CLOSE_CODE"] != "1006" || end.vars["WS_CLOSE_CAUSE"] != "gone" {
		t.Errorf("disconnect: %v", end.vars)
	}
}

func TestEventsBeyondThePoolWaitTheirTurn(t *testing.T) {
	var atOnce, most atomic.Int32
	step := make(chan struct{})
	b := newBench(t, func(_ context.Context, _ http.ResponseWriter, e ran) error {
		if e.event == eventDisconnect {
			most.Store(max(most.Load(), atOnce.Add(1)))
			<-step
			atOnce.Add(-1)
		}
		return nil
	}, func(o *socketOptions) { o.maxEvents = 2; o.eventWait = time.Nanosecond })
	conns := make([]*websocket.Conn, 10)
	for i := range conns {
		conns[i] = b.dial(nil)
	}
	for _, c := range conns {
		_ = c.CloseNow()
	}
	for range conns {
		step <- struct{}{}
	}
	b.shutdown(t.Context())
	if n := len(b.seen(eventDisconnect)); n != 10 || most.Load() > 2 {
		t.Errorf("%d disconnect events, %d at once, want 10 and at most 2", n, most.Load())
	}
}

func TestMessageWhoseTurnDoesNotComeClosesTheSocket(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	b := newBench(t, func(_ context.Context, _ http.ResponseWriter, e ran) error {
		if e.body == "long" {
			close(entered)
			<-release
		}
		return nil
	}, func(o *socketOptions) { o.maxEvents = 1; o.eventWait = time.Millisecond })
	one, two := b.dial(nil), b.dial(nil)
	write(t, one, "long")
	<-entered
	write(t, two, "short")
	wantClose(t, two, 1013, "")
	b.wantCount(`ephpm_ws_event_failures_total{event="message",reason="busy"}`, 1)
	close(release)
}
