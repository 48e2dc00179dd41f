package server

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

func payloads(messages []remembered) string {
	var all []string
	for _, m := range messages {
		all = append(all, string(m.payload))
	}
	return strings.Join(all, " ")
}

// remember adds a message to a channel that remembers at least depth.
func (a *histories) remember(channel string, depth int, payload []byte) {
	t := a.joining(channel, depth)
	defer t.end()
	t.add(remembered{payload: payload})
}

// recall returns the last n messages of a channel.
func (a *histories) recall(channel string, n int) []remembered {
	t := a.joining(channel, 1)
	defer t.end()
	return t.last(n)
}

func TestHistoryRemembersTheNewest(t *testing.T) {
	a := newHistories(1 << 20)
	for i := range 5 {
		a.remember("chat", 3, fmt.Append(nil, i))
	}
	for n, want := range map[int]string{0: "", 1: "4", 3: "2 3 4", 100: "2 3 4"} {
		if got := payloads(a.recall("chat", n)); got != want {
			t.Errorf("the last %d are %q, want %q", n, got, want)
		}
	}
	a.remember("chat", 1, []byte("5"))
	if got := payloads(a.recall("chat", 100)); got != "3 4 5" {
		t.Errorf("after somebody asked for less it remembers %q, want 3 4 5", got)
	}
	a.remember("chat", 4, []byte("6"))
	if got := payloads(a.recall("chat", 100)); got != "3 4 5 6" {
		t.Errorf("after somebody asked for more it remembers %q, want 3 4 5 6", got)
	}
	if got := payloads(a.recall("other", 100)); got != "" {
		t.Errorf("another channel remembers %q", got)
	}
}

func TestNothingIsKeptOfChannelsThatRememberNothing(t *testing.T) {
	a := newHistories(1 << 20)
	first := a.broadcasting("chat")
	second := a.broadcasting("chat") // does not wait
	if first.remembers() || second.remembers() {
		t.Error("a channel remembers without being asked")
	}
	first.end()
	second.end()
	if len(a.of) != 0 || a.bytes != 0 {
		t.Errorf("%d bytes are left in %d histories", a.bytes, len(a.of))
	}
	a.recall("chat", 1)
	if last := a.broadcasting("chat"); !last.remembers() {
		t.Error("a channel does not remember when it was asked")
	}
}

func TestHistoriesAreBounded(t *testing.T) {
	const most = 10_000
	a := newHistories(most)
	a.remember("old", 10, []byte("x"))
	for i := range 1000 {
		a.remember(fmt.Sprint("channel ", i), 10, make([]byte, 300))
		if a.bytes > most || len(a.of) != a.used.Len() {
			t.Fatalf("%d bytes in %d histories (%d in order), want at most %d", a.bytes, len(a.of), a.used.Len(), most)
		}
	}
	if a.of["old"] != nil || a.of["channel 999"] == nil {
		t.Error("not the ones used least recently were forgotten")
	}

	// One channel gives up its own past before it is forgotten.
	for range 100 {
		a.remember("crowded", 100, make([]byte, 2000))
	}
	if n := len(a.recall("crowded", 100)); n != 4 || a.bytes > most {
		t.Errorf("%d messages of 2200 bytes are remembered in %d bytes, want 4", n, a.bytes)
	}
	a.remember("crowded", 100, make([]byte, most))
	if n := len(a.recall("crowded", 100)); n != 4 {
		t.Errorf("%d messages after one that is too large, want 4", n)
	}
}

func TestNoHistoryWithoutMemory(t *testing.T) {
	a := newHistories(0)
	a.remember("chat", 10, []byte("x"))
	if len(a.recall("chat", 10)) != 0 || a.bytes != 0 || len(a.of) != 0 {
		t.Errorf("%d bytes in %d histories, want none", a.bytes, len(a.of))
	}
}

// A history that is forgotten while somebody broadcasts stays the channel's, or the
// next newcomer would not wait for the end of that broadcast.
func TestForgottenHistoryKeepsItsUsers(t *testing.T) {
	a := newHistories(2000)
	a.remember("chat", 10, []byte("0"))
	late := a.broadcasting("chat")
	for i := range 10 {
		a.remember(fmt.Sprint("channel ", i), 10, make([]byte, 300))
	}
	if late.place != nil {
		t.Fatal("nothing was forgotten")
	}
	late.add(remembered{payload: []byte("1")})
	if a.of["chat"] != late.history {
		t.Error("a channel has two histories")
	}
	late.end()
	if got := payloads(a.recall("chat", 10)); got != "1" {
		t.Errorf("it remembers %q, want what came after it was forgotten", got)
	}
}

// Whatever is broadcast, remembered and forgotten at the same time: what a newcomer
// gets of the past and what comes then is without a gap and in the order of all.
func TestPastAndPresentHaveNoGap(t *testing.T) {
	a := newHistories(3000)
	a.use("chat", 8)  // or the order is anybody's while nothing is remembered
	var mu sync.Mutex // guards members and what they got
	var members []*[]string
	broadcast := func(payload string) {
		p := a.broadcasting("chat")
		defer p.end()
		if p.remembers() {
			p.add(remembered{payload: []byte(payload)})
		}
		mu.Lock()
		there := slices.Clone(members)
		mu.Unlock()
		runtime.Gosched()
		for _, m := range there {
			mu.Lock()
			*m = append(*m, payload)
			mu.Unlock()
		}
	}
	join := func() {
		p := a.joining("chat", 8)
		defer p.end()
		var got []string
		for _, m := range p.last(8) {
			got = append(got, string(m.payload))
		}
		mu.Lock()
		defer mu.Unlock()
		members = append(members, &got)
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 100 {
				broadcast(fmt.Sprintf("%d.%d", i, j))
			}
		})
		all.Go(func() {
			for j := range 50 {
				a.remember(fmt.Sprint(i, j), 5, make([]byte, 500)) // for which others are forgotten
			}
		})
		all.Go(func() {
			for range 10 {
				join()
				runtime.Gosched()
			}
		})
	}
	all.Wait()
	order := *slices.MaxFunc(members, func(a, b *[]string) int { return len(*a) - len(*b) })
	for _, m := range members {
		if got := *m; !slices.Equal(got, order[len(order)-len(got):]) {
			t.Fatalf("one member got %v, another %v", got, order[len(order)-len(got):])
		}
	}
}
