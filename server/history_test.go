package server

import (
	"fmt"
	"strings"
	"testing"
)

func payloads(messages []remembered) string {
	var all []string
	for _, m := range messages {
		all = append(all, string(m.payload))
	}
	return strings.Join(all, " ")
}

func TestHistoryRemembersTheNewest(t *testing.T) {
	a := newHistories(1 << 20)
	p := a.open("chat", 3)
	for i := range 5 {
		a.add(p, remembered{payload: fmt.Append(nil, i)})
	}
	for n, want := range map[int]string{0: "", 1: "4", 3: "2 3 4", 100: "2 3 4"} {
		if got := payloads(a.last(p, n)); got != want {
			t.Errorf("the last %d are %q, want %q", n, got, want)
		}
	}
	if a.open("chat", 1) != p || a.find("chat") != p || a.find("other") != nil {
		t.Error("a channel has not the one history")
	}
	a.add(p, remembered{payload: []byte("5")})
	if got := payloads(a.last(p, 100)); got != "3 4 5" {
		t.Errorf("after somebody asked for less it remembers %q, want 3 4 5", got)
	}
	a.open("chat", 4)
	a.add(p, remembered{payload: []byte("6")})
	if got := payloads(a.last(p, 100)); got != "3 4 5 6" {
		t.Errorf("after somebody asked for more it remembers %q, want 3 4 5 6", got)
	}
}

func TestHistoriesAreBounded(t *testing.T) {
	const most = 10_000
	a := newHistories(most)
	old := a.open("old", 10)
	a.add(old, remembered{payload: []byte("x")})
	for i := range 1000 {
		p := a.open(fmt.Sprint("channel ", i), 10)
		a.add(p, remembered{payload: make([]byte, 300)})
		if a.bytes > most || len(a.of) != a.used.Len() {
			t.Fatalf("%d bytes in %d histories (%d in order), want at most %d", a.bytes, len(a.of), a.used.Len(), most)
		}
	}
	if a.find("old") != nil || a.find("channel 999") == nil {
		t.Error("not the ones used least recently were forgotten")
	}
	a.add(old, remembered{payload: []byte("y")}) // by somebody who had found it
	if got := a.last(old, 10); len(got) != 0 {
		t.Errorf("a forgotten history has %d messages", len(got))
	}

	// One channel gives up its own past before it is forgotten.
	p := a.open("crowded", 100)
	for range 100 {
		a.add(p, remembered{payload: make([]byte, 2000)})
	}
	if n := len(a.last(p, 100)); n != 4 || a.bytes > most {
		t.Errorf("%d messages of 2200 bytes are remembered in %d bytes, want 4", n, a.bytes)
	}
	a.add(p, remembered{payload: make([]byte, most)})
	if n := len(a.last(p, 100)); n != 4 {
		t.Errorf("%d messages after one that is too large, want 4", n)
	}
}

func TestNoHistoryWithoutMemory(t *testing.T) {
	a := newHistories(0)
	p := a.open("chat", 10)
	a.add(p, remembered{payload: []byte("x")})
	if len(a.last(p, 10)) != 0 || a.bytes != 0 || len(a.of) != 0 {
		t.Errorf("%d bytes in %d histories, want none", a.bytes, len(a.of))
	}
}

func TestParseSubscription(t *testing.T) {
	parse := func(options ...string) (subscription, error) {
		var b [][]byte
		for _, o := range options {
			b = append(b, []byte(o))
		}
		return parseSubscription(b)
	}
	if o, err := parse(); err != nil || o != (subscription{}) {
		t.Errorf("no options: %+v, %v", o, err)
	}
	if o, err := parse("history", "100"); err != nil || o.history != 100 {
		t.Errorf("history of 100: %+v, %v", o, err)
	}
	for _, bad := range [][]string{
		{"history", "101"}, {"history", "-1"}, {"history", "1.5"}, {"history", `"1"`}, {"history", "null"},
		{"history", "true"}, {"history", "[]"}, {"History", "1"}, {"0", "1"}, {"history"},
	} {
		if _, err := parse(bad...); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
