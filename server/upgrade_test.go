package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"ephpm/phpbridge"
)

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
