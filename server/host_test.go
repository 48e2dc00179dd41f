package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"ephpm/phpbridge"
	"ephpm/registry"
	ws "ephpm/websocket"
)

// page returns a Host as a page has it, without the switch of HostCall.
func (b *bench) page() *host { return b.s.host(registry.ID{}).(*host) }

func (b *bench) idOf(i int) registry.ID { return b.seen(eventConnect)[i].id }

func TestPagesReachConnections(t *testing.T) {
	b := newBench(t, nil)
	cl, h := b.dial(nil), b.page()
	id := b.idOf(0)
	if ok, err := h.send(t.Context(), id, []byte("pushed"), false); !ok || err != nil {
		t.Errorf("send = %v, %v", ok, err)
	}
	if got := read(t, cl); got != "pushed" {
		t.Errorf("read %q", got)
	}
	if ok, err := h.send(t.Context(), registry.ID{1}, nil, false); ok || err != nil {
		t.Errorf("send to nobody = %v, %v, want false", ok, err)
	}
	if ok, err := h.close(id, 3000, "go"); !ok || err != nil {
		t.Errorf("close = %v, %v", ok, err)
	}
	wantClose(t, cl, 3000, "go")
	if ok, _ := h.close(registry.ID{1}, 1000, ""); ok {
		t.Error("closing nobody is true")
	}
	if end := b.ended(); end.vars["WS_CLOSE_CAUSE"] != "server" || end.vars["WS_CLOSE_REASON"] != "go" {
		t.Errorf("disconnect: %v", end.vars)
	}
}

func TestBroadcast(t *testing.T) {
	b := newBench(t, func(_ context.Context, _ http.ResponseWriter, e ran) error {
		if e.event == eventConnect {
			e.host.s.members.Subscribe(e.id, "lobby")
		}
		return nil
	})
	one, two, h := b.dial(nil), b.dial(nil), b.page()
	for _, c := range []struct {
		channel string
		except  registry.ID
		want    int
	}{{"lobby", registry.ID{}, 2}, {"lobby", b.idOf(0), 1}, {"nobody", registry.ID{}, 0}, {"", registry.ID{}, 0}} {
		if n, err := h.broadcast(t.Context(), c.channel, []byte("all"), false, c.except); n != c.want || err != nil {
			t.Errorf("broadcast to %q but %v = %d, %v, want %d", c.channel, c.except, n, err, c.want)
		}
	}
	read(t, one)
	read(t, two)
	read(t, two)
	if got := h.members("lobby", 1000); len(got) != 2 || len(got[0]) != 32 {
		t.Errorf("members = %q", got)
	}
	for limit, want := range map[int64]int{1: 1, 0: 0, -5: 0, 1 << 40: 2} {
		if got := h.members("lobby", limit); len(got) != want {
			t.Errorf("members with limit %d = %d, want %d", limit, len(got), want)
		}
	}
}

func TestImpossibleArgumentsThrow(t *testing.T) {
	b := newBench(t, nil)
	b.dial(nil)
	h, id := b.page(), b.idOf(0)
	_, notUTF8 := h.send(t.Context(), id, []byte("\xff"), false)
	_, broadcast := h.broadcast(t.Context(), "lobby", []byte("\xff"), false, registry.ID{})
	failures := []error{notUTF8, broadcast}
	for _, code := range []int64{0, -1, 999, 1004, 1005, 1006, 1015, 2000, 5000, 1 << 32, 1<<32 + 1000} {
		_, err := h.close(id, code, "")
		failures = append(failures, err)
	}
	for _, reason := range []string{strings.Repeat("x", 124), "\xff"} {
		_, err := h.close(id, 1000, reason)
		failures = append(failures, err)
	}
	for i, err := range failures {
		var m *misuse
		if !errors.As(err, &m) || m.class != phpbridge.ThrowValueError {
			t.Errorf("case %d: %v, want a ValueError", i, err)
		}
	}
	var m *misuse
	if errors.As(failures[len(failures)-1], &m) {
		want := "ephpm_ws_connection_close(): Argument #3 ($reason) must be at most 123 bytes of valid UTF-8"
		if got := m.says(phpbridge.WSConnectionClose, 1); got != want {
			t.Errorf("the exception says %q, want %q", got, want)
		}
	}
	if ok, err := h.send(t.Context(), id, []byte("\xff"), true); !ok || err != nil {
		t.Errorf("binary send = %v, %v", ok, err)
	}
	b.wantCount(`ephpm_ws_frames_rejected_total{reason="invalid_utf8"}`, 2)
}

func TestPayloadOverTheLimitIsFalse(t *testing.T) {
	b := newBench(t, nil, func(o *socketOptions) { o.maxMessage = 10 })
	b.dial(nil)
	h := b.page()
	for n, want := range map[int]bool{10: true, 11: false} {
		if ok, err := h.send(t.Context(), b.idOf(0), make([]byte, n), true); ok != want || err != nil {
			t.Errorf("send of %d bytes = %v, %v, want %v", n, ok, err, want)
		}
	}
	b.wantCount(`ephpm_ws_frames_rejected_total{reason="too_large"}`, 1)
	b.wantLog("level=WARN", "outbound payload over the limit", "bytes=11", "max=10")
}

func TestBurstFromOneHandlerReachesAHealthyClient(t *testing.T) {
	b := newBench(t, func(ctx context.Context, _ http.ResponseWriter, e ran) error {
		if e.event == eventMessage {
			for i := range 500 {
				mustSend(t, ctx, e, fmt.Sprint(i))
			}
		}
		return nil
	})
	cl := b.dial(nil)
	write(t, cl, "go")
	for i := range 500 {
		if got := read(t, cl); got != fmt.Sprint(i) {
			t.Fatalf("read %q, want %d", got, i)
		}
	}
}

func TestQueueOverflowInConnectCloses(t *testing.T) {
	b := newBench(t, func(ctx context.Context, _ http.ResponseWriter, e ran) error {
		for i := range 4 {
			if ok, _ := e.host.send(ctx, e.id, []byte("x"), false); e.event == eventConnect && ok != (i < 3) {
				t.Errorf("frame %d: send = %v", i, ok)
			}
		}
		return nil
	}, func(o *socketOptions) { o.conn.QueueFrames = 3 })
	wantClose(t, b.dial(nil), 1013, "")
	b.wantCount("ephpm_ws_send_queue_overflow_total", 1)
}

// A client that never reads costs its event some of the budget once, and the
// others nothing.
func TestSlowMemberIsShedAndHealthyOnesAreNot(t *testing.T) {
	b := newBench(t, func(_ context.Context, _ http.ResponseWriter, e ran) error {
		if e.event == eventConnect {
			e.host.s.members.Subscribe(e.id, "lobby")
		}
		return nil
	}, func(o *socketOptions) { o.conn = ws.DefaultOptions(); o.conn.WriteTimeout = patience })
	if r := b.raw(); r.StatusCode != 101 { // never reads
		t.Fatalf("status %d", r.StatusCode)
	}
	const rounds = 500
	healthy := b.dial(nil)
	healthy.SetReadLimit(-1)
	got := make(chan int)
	go func() {
		n := 0
		for n < rounds {
			if _, _, err := healthy.Read(t.Context()); err != nil {
				break
			}
			n++
		}
		got <- n
	}()
	h, big := b.page(), newPush(make([]byte, 60<<10), true)
	stuck, _ := b.s.members.Lookup(b.idOf(0))
	for big.try(stuck) { // until the kernel and the queue are full
	}
	for range rounds {
		if _, err := h.broadcast(t.Context(), "lobby", []byte("small"), true, registry.ID{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := <-got; n != rounds {
		t.Errorf("the healthy client got %d of %d", n, rounds)
	}
	b.wantCount("ephpm_ws_send_queue_overflow_total", 1)
	b.wantLog("level=WARN", "outbound queue full")
}

func TestPublicTextsOfExceptions(t *testing.T) {
	// Applications compare them.
	for text, want := range map[string]string{
		textDisabled:  "ephpm_ws: native websockets are not enabled on this server (set [server.websocket] enabled = true)",
		textNoCurrent: "ephpm_ws: no current websocket connection. The implicit form is only valid inside a websocket event; from an ordinary HTTP request use the ephpm_ws_connection_*() form with an explicit connection id",
	} {
		if text != want {
			t.Errorf("text is %q, want %q", text, want)
		}
	}
	if !strings.HasPrefix(textNoSite, "ephpm_ws: no websocket context for this request") {
		t.Errorf("text is %q", textNoSite)
	}
}
