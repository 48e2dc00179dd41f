package kv

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func TestSubscribersGetMessages(t *testing.T) {
	s := newStore(t, Options{})
	addr := serve(t, ServerOptions{
		Default:       s,
		PublishPrefix: "ws:",
		Publish: func(to *Store, channel string, payload []byte) int {
			if to != s || channel != "lobby" || string(payload) != "hi" {
				t.Errorf("Publish got %q, %q", channel, payload)
			}
			return 40
		},
	})
	p, sub, sub3 := dial(t, addr), dial(t, addr), dial(t, addr)
	for _, step := range []struct {
		who        *peer
		line, want string
	}{
		{sub, "subscribe a ws:lobby", `["subscribe" "a" 1]`},
		{sub, "", `["subscribe" "ws:lobby" 2]`},
		{sub3, "hello 3", ""},
		{sub3, "psubscribe a*", `>["psubscribe" "a*" 1]`},
		{p, "publish a hello", "2"},
		{sub, "", `["message" "a" "hello"]`},
		{sub3, "", `>["pmessage" "a*" "a" "hello"]`},
		{p, "publish ws:lobby hi", "41"},
		{sub, "", `["message" "ws:lobby" "hi"]`},
		{p, "pubsub channels", `["a" "ws:lobby"]`},
		{p, "pubsub numsub a b", `["a" 1 "b" 0]`},
		{p, "pubsub numpat", "1"},
		{sub, "get k", "-ERR Can't execute 'get': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"},
		{sub, "ping", `["pong" ""]`},
		{sub3, "get k", "nil"},
		{sub, "unsubscribe a", `["unsubscribe" "a" 1]`},
		{sub, "unsubscribe", `["unsubscribe" "ws:lobby" 0]`},
		{sub, "get k", "nil"},
		{p, "publish a hello", "1"},
		{sub, "quit", "+OK"},
	} {
		var got string
		if step.line != "" {
			got = step.who.do(step.line)
		} else {
			got = step.who.read()
		}
		if step.want != "" && got != step.want {
			t.Errorf("%q: %s, want %s", step.line, got, step.want)
		}
	}
}

// Who does not read is cut when too much waits for it, and holds up nobody.
func TestASubscriberWhoDoesNotReadIsCut(t *testing.T) {
	addr := serve(t, ServerOptions{Default: newStore(t, Options{}), MaxOutput: 1 << 20})
	sub, p := dial(t, addr), dial(t, addr)
	if got := sub.do("subscribe c"); got != `["subscribe" "c" 1]` {
		t.Fatal(got)
	}
	message := strings.Repeat("x", 60_000)
	for i := 0; ; i++ {
		got := p.do("publish c " + message)
		if got == "0" {
			break
		}
		if i > 2000 {
			t.Fatalf("it still takes messages after %d of 60 kB", i)
		}
	}
	if got := p.do("ping"); got != "+PONG" {
		t.Error(got)
	}
}

func TestNamesOfSubscriptionsAreBounded(t *testing.T) {
	t.Parallel()
	p := dial(t, serve(t, ServerOptions{Default: newStore(t, Options{MemoryLimit: 1 << 20})}))
	name := func(i int) string { return strings.Repeat("x", 60_000) + strconv.Itoa(i) }
	const fit = maxSubscriptionNames / 60_002
	for i := range fit {
		if got := p.do("subscribe " + name(10+i)); !strings.HasSuffix(got, fmt.Sprintf(" %d]", i+1)) {
			t.Fatalf("subscription %d answers …%s", i, got[max(0, len(got)-40):])
		}
	}
	const tooMany = "-ERR too many subscriptions"
	if got := p.do("subscribe " + name(99)); got != tooMany {
		t.Errorf("one more answers …%s, want %s", got[max(0, len(got)-40):], tooMany)
	}
	if got := p.do("unsubscribe " + name(10)); !strings.HasSuffix(got, fmt.Sprintf(" %d]", fit-1)) {
		t.Errorf("unsubscribe answers …%s", got[max(0, len(got)-40):])
	}
	if got := p.do("subscribe " + name(99)); got == tooMany {
		t.Error("there is no room after one has gone")
	}
}
