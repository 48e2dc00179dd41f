package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"ephpm/phpbridge"
	"github.com/coder/websocket"
)

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

// A connection that nobody can take over makes no socket.
func TestUpgradeOfWhatCannotBeTakenOver(t *testing.T) {
	b := newBench(t, nil)
	r := httptest.NewRequest("GET", "/", nil)
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
	} {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder() // is no Hijacker
	b.s.upgrade(&response{ResponseWriter: w}, r, nil, "r1")
	if w.Code != 400 || w.Body.String() != "400 Bad WebSocket Handshake\n" || w.Header().Get("Sec-WebSocket-Version") != "13" {
		t.Errorf("%d %q %v, want 400", w.Code, w.Body, w.Header())
	}
	b.wantCount(`ephpm_ws_handshake_rejected_total{reason="transport"}`, 1)
	b.wantCount("ephpm_ws_connections_total", 0)
	b.wantLog("upgrade refused", "site=default", "status=400")
}
