package server

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ephpm/registry"
)

// Until the round, nobody knows; what was undone until then is no news.
func TestComingAndGoingBetweenRounds(t *testing.T) {
	p := newParty(t, 1<<20)
	a, b, c := p.guest(), p.guest(), p.guest()
	p.join(a, "lobby", "user", `"bob"`)
	p.join(b, "lobby", "user", `"alice"`)
	a.read()
	b.read()

	carol, dave, alice := subscription{user: "carol", body: `{"user":"carol"}`, list: 5}, subscription{user: "dave", body: `{"user":"dave"}`, list: 5},
		subscription{user: "alice", body: `{"user":"alice"}`, list: notAsked}
	p.enter(c.id, "lobby", &carol)
	p.exit(c.id, "lobby")
	p.exit(b.id, "lobby")
	p.enter(b.id, "lobby", &alice)
	p.enter(a.id, "lobby", &dave)
	a.want(t)
	if got := string(p.users("lobby", 9)); got != `[{"user":"alice","connections":1},{"user":"dave","connections":1}]` {
		t.Errorf("users are %s", got)
	}
	p.settle("lobby")
	c.want(t) // it left
	b.want(t, told("present", 2, `{"user":"alice"}`, `{"user":"dave"}`))
	a.want(t, told("leave", 1, bob), told("join", 2, `{"user":"dave"}`), told("present", 2, `{"user":"alice"}`, `{"user":"dave"}`))
	for _, g := range []*guest{a, b, c} {
		p.gone(g)
	}
	p.wantEmpty()
}

// crowd has n users come into the lobby.
func (p *party) crowd(n int, options ...string) []*guest {
	guests := make([]*guest, n)
	for i := range guests {
		guests[i] = p.guest()
		p.join(guests[i], "lobby", append([]string{"user", fmt.Sprint(i)}, options...)...)
	}
	return guests
}

// The members of a crowd are told in a few frames, however many come, and each knows in
// the end who is there.
func TestCrowdComesInAFewFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd = 350
		p := newParty(t, 64<<20)
		guests := p.crowd(crowd, "list", fmt.Sprint(maxList))
		time.Sleep(time.Second)
		truth, total := p.truth("lobby"), 0
		for i, g := range guests {
			g.mu.Lock()
			total += len(g.texts)
			g.mu.Unlock()
			if list := g.lists(t)["lobby"]; len(list) != crowd || !maps.Equal(list, truth) {
				t.Fatalf("guest %d knows %d users, want %d", i, len(list), crowd)
			}
		}
		if total > 120*crowd {
			t.Errorf("%d frames for all, which is more than a few for each", total)
		}
		for _, g := range guests {
			p.leave(g.id)
		}
		time.Sleep(time.Second)
		p.wantEmpty()
		p.stop()
	})
}

// The members of a crowd are told in a few frames, however many leave.
func TestCrowdLeavesInAFewFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd = 2000
		p := newParty(t, 64<<20)
		guests := p.crowd(crowd)
		stays := guests[0]
		time.Sleep(time.Second)
		stays.read()

		for _, g := range guests[1:] {
			p.leave(g.id)
		}
		time.Sleep(time.Second)
		texts := stays.read()
		left := map[string]bool{}
		for _, text := range texts {
			var f presenceText
			if err := json.Unmarshal([]byte(text), &f); err != nil || f.Event != "leave" {
				t.Fatalf("%.100s: %v", text, err)
			}
			for _, u := range f.Users {
				left[u.User] = true
			}
		}
		if len(left) != crowd-1 || len(texts) > 3*presenceSplit {
			t.Errorf("%d leaves in %d frames", len(left), len(texts))
		}
		total := 0
		for _, g := range guests {
			total += len(g.read())
		}
		if total > 200*crowd {
			t.Errorf("%d frames for all, which is more than a few for each", total)
		}
		p.gone(stays)
		p.wantEmpty()
		p.stop()
	})
}

// A broadcast is preceded by what happened before, also in a crowd.
func TestBroadcastComesBehindTheNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t, 64<<20)
		for i := range smallCrowd + 1 {
			p.join(p.guest(), "lobby", "user", fmt.Sprint(i))
		}
		time.Sleep(time.Second)
		a, b := p.guest(), p.guest()
		p.join(a, "lobby", "user", `"alice"`)
		synctest.Wait()
		a.read() // the list, and now the pump pauses
		p.join(b, "lobby", "user", `"bob"`)
		synctest.Wait()
		a.want(t)
		there := p.begin("lobby")
		a.want(t, told("join", smallCrowd+3, bob))
		if got := b.read(); len(got) != 1 || !strings.HasPrefix(got[0], `{"event":"present","channel":"lobby","count":103,`) {
			t.Errorf("the newcomer read %.100q", got)
		}
		there.end()
		p.begin("nowhere").end()
		p.stop()
	})
}

func BenchmarkPresenceCrowdLeaves(b *testing.B) {
	for _, crowd := range []int{500, 5000} {
		b.Run(fmt.Sprint(crowd), func(b *testing.B) {
			for b.Loop() {
				frames := 0
				members := registry.New[int](registry.Options{})
				p := newPresences(64<<20, members, newSocketMetrics(nil), slog.New(slog.NewTextHandler(io.Discard, nil)),
					func(to []int, _ []byte) { frames += len(to) })
				ids := make([]registry.ID, crowd)
				for i := range ids {
					ids[i], _ = registry.NewID()
					_ = members.Add(ids[i], i)
					p.enter(ids[i], "lobby", &subscription{user: fmt.Sprint(i), body: fmt.Sprintf(`{"user":"%d"}`, i), list: 0})
				}
				p.begin("lobby").end()
				for _, id := range ids {
					p.leave(id)
				}
				p.stop()
				b.ReportMetric(float64(frames)/float64(crowd), "frames/member")
			}
		})
	}
}
