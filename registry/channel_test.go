package registry

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestBroadcastCountsOnlyWhoTookIt(t *testing.T) {
	r := New[*fakeSink](Options{})
	_, fast := join(t, r, "lobby")
	_, full := join(t, r, "lobby")
	_, outside := join(t, r, "other")
	full.full.Store(true)

	queued, missed := r.Broadcast("lobby", ID{}, (*fakeSink).take, nil)
	if queued != 1 || !slices.Equal(missed, []*fakeSink{full}) {
		t.Errorf("Broadcast = %d, %v, want 1 and the full sink", queued, missed)
	}
	if fast.frames.Load() != 1 || outside.frames.Load() != 0 {
		t.Errorf("fast got %d frames, a stranger %d, want 1 and 0", fast.frames.Load(), outside.frames.Load())
	}
}

func TestBroadcastAppendsToMissed(t *testing.T) {
	r := New[*fakeSink](Options{})
	_, full := join(t, r, "lobby")
	full.full.Store(true)
	before := &fakeSink{}
	if _, missed := r.Broadcast("lobby", ID{}, (*fakeSink).take, []*fakeSink{before}); !slices.Equal(missed, []*fakeSink{before, full}) {
		t.Errorf("missed = %v, want the given one and the full one", missed)
	}
}

func TestBroadcastSparesTheExcepted(t *testing.T) {
	r := New[*fakeSink](Options{})
	sender, own := join(t, r, "lobby")
	_, other := join(t, r, "lobby")
	if queued, _ := r.Broadcast("lobby", sender, (*fakeSink).take, nil); queued != 1 {
		t.Errorf("Broadcast = %d, want 1", queued)
	}
	if own.frames.Load() != 0 || other.frames.Load() != 1 {
		t.Errorf("sender got %d frames, other %d, want 0 and 1", own.frames.Load(), other.frames.Load())
	}
}

func TestBroadcastToNobodyIsZero(t *testing.T) {
	r := New[*fakeSink](Options{})
	join(t, r)
	for _, name := range []string{"lobby", "", "\xff"} {
		if queued, missed := r.Broadcast(name, ID{}, (*fakeSink).take, nil); queued != 0 || len(missed) != 0 {
			t.Errorf("Broadcast(%q) = %d, %v, want nothing", name, queued, missed)
		}
	}
}

// A sink that calls back would deadlock if a lock were held while sending.
func TestBroadcastHoldsNoLockWhileItSends(t *testing.T) {
	r := New[*fakeSink](Options{})
	id, sink := join(t, r, "lobby")
	sink.hook = func() {
		r.Subscribe(id, "second")
		r.Broadcast("second", id, (*fakeSink).take, nil)
		r.Remove(id)
	}
	if queued, _ := r.Broadcast("lobby", ID{}, (*fakeSink).take, nil); queued != 1 {
		t.Errorf("Broadcast = %d, want 1", queued)
	}
	if r.Len() != 0 || r.Channels() != 0 {
		t.Errorf("%d connections and %d channels left, want none", r.Len(), r.Channels())
	}
}

func TestSubscribeWantsAPlausibleName(t *testing.T) {
	r := New[*fakeSink](Options{})
	id, _ := join(t, r)
	for _, test := range []struct {
		what, name string
		want       bool
	}{
		{"empty", "", false},
		{"one byte", "a", true},
		{"256 bytes", strings.Repeat("a", 256), true},
		{"257 bytes", strings.Repeat("a", 257), false},
		{"256 bytes of two-byte letters", strings.Repeat("é", 128), true},
		{"258 bytes of two-byte letters", strings.Repeat("é", 129), false},
		{"not UTF-8", "lobby\xff", false},
		{"a NUL", "lobby\x00", true},
	} {
		if got := r.Subscribe(id, test.name); got != test.want {
			t.Errorf("Subscribe to a name of %s = %v, want %v", test.what, got, test.want)
		}
	}
}

func TestSubscribeEndsAtTheLimit(t *testing.T) {
	r := New[*fakeSink](Options{})
	id, _ := join(t, r)
	for i := range 64 {
		if !r.Subscribe(id, fmt.Sprint(i)) {
			t.Fatalf("channel %d refused, want 64", i+1)
		}
	}
	if r.Subscribe(id, "one more") {
		t.Error("the 65th channel was accepted")
	}
	if r.Channels() != 64 {
		t.Errorf("Channels() = %d, want 64: the refused one must not exist", r.Channels())
	}
	if !r.Subscribe(id, "7") {
		t.Error("Subscribe to a channel held = false at the limit, want true")
	}
	if !r.Unsubscribe(id, "7") || !r.Subscribe(id, "one more") {
		t.Error("no place for a channel after another was left")
	}
}

func TestSubscribingTwiceCountsOnce(t *testing.T) {
	r := New[*fakeSink](Options{})
	id, sink := join(t, r, "lobby", "lobby")
	if got, all := r.Count("lobby"), r.Subscriptions(); got != 1 || all != 1 {
		t.Errorf("Count = %d, Subscriptions = %d, want 1 and 1", got, all)
	}
	r.Broadcast("lobby", ID{}, (*fakeSink).take, nil)
	if got := sink.frames.Load(); got != 1 {
		t.Errorf("one broadcast arrived %d times", got)
	}
	r.Unsubscribe(id, "lobby")
	if got := r.Channels(); got != 0 {
		t.Errorf("Channels() = %d after one Unsubscribe, want 0", got)
	}
}

func TestUnsubscribeOfWhatIsNotHeldIsFalse(t *testing.T) {
	r := New[*fakeSink](Options{})
	id, _ := join(t, r)
	other, _ := join(t, r, "lobby", "second")
	left := r.Unsubscribe(other, "second")
	for what, got := range map[string]bool{
		"a channel that is not there":    r.Unsubscribe(id, "nowhere"),
		"somebody else's channel":        r.Unsubscribe(id, "lobby"),
		"an unknown connection":          r.Unsubscribe(newID(t), "lobby"),
		"a channel that was left before": !left || r.Unsubscribe(other, "second"),
	} {
		if got {
			t.Errorf("Unsubscribe of %s = true, want false", what)
		}
	}
}

func TestMembersAreAtMostTheLimit(t *testing.T) {
	r := New[*fakeSink](Options{})
	want := map[ID]bool{}
	for range 5 {
		id, _ := join(t, r, "lobby")
		want[id] = true
	}
	for limit, n := range map[int]int{-1: 0, 0: 0, 1: 1, 4: 4, 5: 5, 1000: 5} {
		ids := r.Members("lobby", limit)
		if len(ids) != n {
			t.Errorf("Members(limit %d) = %d IDs, want %d", limit, len(ids), n)
		}
		for i, id := range ids {
			if !want[id] || slices.Contains(ids[:i], id) {
				t.Errorf("Members(limit %d) holds %v, a stranger or twice", limit, id)
			}
		}
	}
	if ids := r.Members("nowhere", 10); len(ids) != 0 {
		t.Errorf("Members of no channel = %v, want none", ids)
	}
}

func TestSinksAreThoseOfTheMembers(t *testing.T) {
	r := New[*fakeSink](Options{})
	id, first := join(t, r, "lobby")
	_, second := join(t, r, "lobby", "other")
	if got := r.Sinks("lobby"); len(got) != 2 || !slices.Contains(got, first) || !slices.Contains(got, second) {
		t.Errorf("Sinks = %v, want both members", got)
	}
	if got := r.Sinks("nowhere"); len(got) != 0 {
		t.Errorf("Sinks of no channel = %v, want none", got)
	}
	if !r.In(id, "lobby") || r.In(id, "other") || r.In(id, "nowhere") || r.In(newID(t), "lobby") {
		t.Error("In does not say who is in which channel")
	}
}

func TestRemoveLeavesEveryChannel(t *testing.T) {
	r := New[*fakeSink](Options{})
	id, gone := join(t, r, "a", "b", "c")
	_, stays := join(t, r, "b")
	r.Remove(id)
	if r.Channels() != 1 || r.Count("b") != 1 || r.Subscriptions() != 1 {
		t.Errorf("%d channels, %d in b, %d in all, want 1, 1 and 1", r.Channels(), r.Count("b"), r.Subscriptions())
	}
	r.Broadcast("b", ID{}, (*fakeSink).take, nil)
	if gone.frames.Load() != 0 || stays.frames.Load() != 1 {
		t.Errorf("the one who left got %d frames, the other %d, want 0 and 1", gone.frames.Load(), stays.frames.Load())
	}
	if r.Subscribe(id, "a") {
		t.Error("Subscribe after Remove = true, want false")
	}
}

func TestSubscribeRacingRemoveLeavesNobody(t *testing.T) {
	r := New[*fakeSink](Options{})
	for range 300 {
		id, _ := join(t, r)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { r.Subscribe(id, fmt.Sprint("channel ", i)) })
		}
		wg.Go(func() { r.Remove(id) })
		wg.Wait()
		if n := r.Channels(); n != 0 {
			t.Fatalf("%d channels left behind by a connection that has gone", n)
		}
	}
}

func BenchmarkBroadcast(b *testing.B) {
	for _, members := range []int{10, 1000, 15000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			r := New[*fakeSink](Options{})
			for range members {
				join(b, r, "lobby")
			}
			b.ReportAllocs()
			for b.Loop() {
				r.Broadcast("lobby", ID{}, (*fakeSink).take, nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*members), "ns/member")
		})
	}
}

// Leaving must not cost more in a crowded channel.
func BenchmarkJoinAndLeave(b *testing.B) {
	for _, members := range []int{10, 15000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			r := New[*fakeSink](Options{})
			for range members {
				join(b, r, "lobby")
			}
			id, sink := newID(b), &fakeSink{}
			for b.Loop() {
				if err := r.Add(id, sink); err != nil {
					b.Fatal(err)
				}
				r.Subscribe(id, "lobby")
				r.Remove(id)
			}
		})
	}
}
