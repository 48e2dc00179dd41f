package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
)

// Random comings and goings of connections of a few users: what each member was told
// makes sense at any time, and is true in the end.
func TestPresenceUnderRaces(t *testing.T) {
	const scripts, steps, connections, channels = 8, 400, 12, 2
	p := newParty(t, 1<<20)
	slots := make([]struct {
		sync.Mutex
		now *guest
	}, connections)
	var all []*guest
	var mu sync.Mutex // guards all
	fresh := func() *guest {
		g := p.guest()
		mu.Lock()
		defer mu.Unlock()
		all = append(all, g)
		return g
	}
	for i := range slots {
		slots[i].now = fresh()
	}
	var wg sync.WaitGroup
	for script := range scripts {
		random := rand.New(rand.NewPCG(uint64(script), 7))
		wg.Go(func() {
			for range steps {
				s := &slots[random.IntN(connections)]
				s.Lock()
				g := s.now
				s.Unlock()
				channel := fmt.Sprint("channel ", random.IntN(channels))
				switch random.IntN(10) {
				case 0, 1, 2, 3:
					p.join(g, channel, "user", fmt.Sprint(random.IntN(4)), "info", fmt.Sprint(random.IntN(2)))
				case 4:
					p.join(g, channel, "list", "100")
				case 5, 6:
					p.part(g, channel)
				case 7:
					p.begin(channel).end()
				case 8:
					_, _ = p.count(channel), p.users(channel, 10)
				case 9:
					p.leave(g.id)
					s.Lock()
					if s.now == g {
						s.now = fresh()
					}
					s.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for i := range channels {
		p.settle(fmt.Sprint("channel ", i))
	}
	p.quiet()
	compared := 0
	for _, g := range all {
		lists := g.lists(t)
		for i := range channels {
			channel := fmt.Sprint("channel ", i)
			list := lists[channel]
			if list == nil || !p.members.In(g.id, channel) {
				continue
			}
			compared++
			if !maps.Equal(list, p.truth(channel)) {
				t.Errorf("a member believes that %v are there, not %v", list, p.truth(channel))
			}
		}
	}
	if compared == 0 {
		t.Error("in the end no member has a list")
	}
	for _, g := range all {
		p.leave(g.id)
	}
	p.wantEmpty()
}

// lists are what a guest believes of the channels of which it got a list.
func (g *guest) lists(t *testing.T) map[string]map[string]string {
	t.Helper()
	lists := map[string]map[string]string{}
	for _, text := range g.read() {
		var f presenceText
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Fatal(err)
		}
		list := lists[f.Channel]
		if f.Event == presenceList {
			list = map[string]string{}
			lists[f.Channel] = list
		}
		if list == nil { // it is a plain member yet
			continue
		}
		for _, u := range f.Users {
			if _, known := list[u.User]; known == (f.Event == presenceJoin || f.Event == presenceList) {
				t.Errorf("%s of %s, who is there: %v", f.Event, u.User, known)
			}
			if list[u.User] = string(u.Info); f.Event == presenceLeave {
				delete(list, u.User)
			}
		}
	}
	return lists
}

// truth is who is there, and the info.
func (p *party) truth(channel string) map[string]string {
	p.t.Helper()
	var users []struct {
		User string
		Info json.RawMessage
	}
	if err := json.Unmarshal(p.users(channel, 1000), &users); err != nil {
		p.t.Fatal(err)
	}
	truth := map[string]string{}
	for _, u := range users {
		truth[u.User] = string(u.Info)
	}
	return truth
}
