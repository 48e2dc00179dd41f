package server

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ephpm/registry"
)

// presenceText is what a client reads.
type presenceText struct {
	Event   string
	Channel string
	Count   int
	Users   []struct {
		User string
		Info json.RawMessage
	}
}

// A guest is a connection that reads what it is told.
type guest struct {
	id registry.ID

	mu    sync.Mutex // guards the following
	texts []string
}

// read returns what came since the last call.
func (g *guest) read() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	texts := g.texts
	g.texts = nil
	return texts
}

func (g *guest) want(t *testing.T, texts ...string) {
	t.Helper()
	if got := g.read(); !slices.Equal(got, texts) {
		t.Errorf("read\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(texts, "\n"))
	}
}

// A party is the presences of a site with guests.
type party struct {
	*presences[*guest]
	t   *testing.T
	log *syncBuffer
}

func newParty(t *testing.T, most int64) *party {
	p := &party{t: t, log: &syncBuffer{}}
	p.presences = newPresences(most, registry.New[*guest](registry.Options{}), newSocketMetrics(nil),
		slog.New(slog.NewTextHandler(p.log, nil)), func(to []*guest, text []byte) {
			for _, g := range to {
				g.mu.Lock()
				g.texts = append(g.texts, string(text))
				g.mu.Unlock()
			}
		})
	return p
}

func (p *party) guest() *guest {
	p.t.Helper()
	id, err := registry.NewID()
	if err != nil {
		p.t.Fatal(err)
	}
	g := &guest{id: id}
	if err := p.members.Add(id, g); err != nil {
		p.t.Fatal(err)
	}
	return g
}

// join subscribes as a script does.
func (p *party) join(g *guest, channel string, options ...string) bool {
	p.t.Helper()
	o, err := parse(options...)
	if err != nil {
		p.t.Fatal(err)
	}
	ok := p.enter(g.id, channel, &o)
	p.settle(channel)
	return ok
}

// part unsubscribes as a script does.
func (p *party) part(g *guest, channel string) bool {
	ok := p.exit(g.id, channel)
	p.settle(channel)
	return ok
}

// gone has a connection end, and waits until that is told.
func (p *party) gone(g *guest) {
	p.leave(g.id)
	p.quiet()
}

// quiet waits until nothing is left to tell.
func (p *party) quiet() {
	for busy := true; busy; time.Sleep(time.Microsecond) {
		p.mu.Lock()
		busy = p.pumping
		p.mu.Unlock()
	}
}

// wantEmpty checks that nothing is left of a party.
func (p *party) wantEmpty() {
	p.t.Helper()
	p.quiet()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes != 0 || len(p.of) != 0 || len(p.stays) != 0 || len(p.late) != 0 || p.metrics.presenceUsers.Load() != 0 {
		p.t.Errorf("%d bytes in %d channels, %d connections, %d late, %d users: want none",
			p.bytes, len(p.of), len(p.stays), len(p.late), p.metrics.presenceUsers.Load())
	}
}

func told(event string, count int, users ...string) string {
	return fmt.Sprintf(`{"event":%q,"channel":"lobby","count":%d,"users":[%s]}`, event, count, strings.Join(users, ","))
}

const (
	alice = `{"user":"alice","info":{"name":"Alice"}}`
	bob   = `{"user":"bob"}`
)

func TestTwoTabsAreOneUser(t *testing.T) {
	p := newParty(t, 1<<20)
	bob1, alice1, alice2 := p.guest(), p.guest(), p.guest()
	p.join(bob1, "lobby", "user", `"bob"`)
	bob1.want(t, told("present", 1, bob))

	p.join(alice1, "lobby", "user", `"alice"`, "info", `{"name":"Alice"}`)
	alice1.want(t, told("present", 2, bob, alice))
	bob1.want(t, told("join", 2, alice))
	p.join(alice2, "lobby", "user", `"alice"`, "info", `{"name":"Alice"}`)
	alice2.want(t, told("present", 2, bob, alice))
	if got := string(p.users("lobby", 9)); got != `[{"user":"bob","connections":1},{"user":"alice","info":{"name":"Alice"},"connections":2}]` || p.count("lobby") != 2 {
		t.Errorf("users are %d: %s", p.count("lobby"), got)
	}
	if got := string(p.users("lobby", 1)); got != `[{"user":"bob","connections":1}]` {
		t.Errorf("the first user is %s", got)
	}

	p.gone(alice1)
	alice2.want(t)
	bob1.want(t)
	p.part(alice2, "lobby")
	bob1.want(t, told("leave", 1, alice))
	alice2.want(t)
	p.gone(bob1)
	if got := string(p.users("lobby", 9)); got != `[]` || p.count("lobby") != 0 {
		t.Errorf("users are %d: %s", p.count("lobby"), got)
	}
	p.gone(alice2)
	p.wantEmpty()
}

func TestPresenceFollowsWhatIsAsked(t *testing.T) {
	p := newParty(t, 1<<20)
	first, plain, watcher := p.guest(), p.guest(), p.guest()
	p.join(first, "lobby", "user", `"bob"`)
	first.read()

	// A plain member is told, and not there.
	if !p.members.Subscribe(plain.id, "lobby") {
		t.Fatal("no plain subscription")
	}
	p.join(watcher, "lobby", "list", "10")
	watcher.want(t, told("present", 1, bob))
	first.want(t)
	plain.want(t)

	// Who was in the channel reads the news and then the list.
	p.join(plain, "lobby", "user", `"alice"`, "list", "1")
	plain.want(t, told("join", 2, `{"user":"alice"}`), told("present", 2, bob))
	watcher.want(t, told("join", 2, `{"user":"alice"}`))
	first.want(t, told("join", 2, `{"user":"alice"}`))

	// Other info, and again the same; then another user.
	p.join(plain, "lobby", "user", `"alice"`, "info", `{"name":"Alice"}`)
	p.join(plain, "lobby", "user", `"alice"`, "info", `{"name":"Alice"}`)
	p.join(plain, "lobby", "user", `"carol"`)
	plain.want(t, told("update", 2, alice), told("leave", 1, alice), told("join", 2, `{"user":"carol"}`))

	p.join(plain, "lobby", "list", "0")
	plain.want(t, told("present", 2))
	if p.part(first, "elsewhere") || p.join(first, "", "user", "1") || p.join(first, "", "list", "1") || p.join(&guest{}, "lobby", "user", "1") {
		t.Error("what cannot be is true")
	}
	p.gone(watcher)
	p.gone(first)
	p.gone(plain)
	p.wantEmpty()
}

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

func TestPresenceMemoryIsBounded(t *testing.T) {
	p := newParty(t, 10_000)
	var in []*guest
	for i := 0; ; i++ {
		g := p.guest()
		if !p.join(g, "lobby", "user", fmt.Sprint(i), "info", `"`+strings.Repeat("x", 400)+`"`) {
			break
		}
		in = append(in, g)
	}
	if len(in) < 5 || len(in) > 11 || p.bytes > 10_000 || p.members.Count("lobby") != len(in) {
		t.Errorf("%d users of 900 bytes in %d bytes, %d members", len(in), p.bytes, p.members.Count("lobby"))
	}
	for range 3 {
		if p.join(p.guest(), "lobby", "user", `"late"`, "info", `"`+strings.Repeat("x", 4000)+`"`) {
			t.Error("one too many")
		}
	}
	if !p.join(in[0], "lobby", "user", "0", "info", `"`+strings.Repeat("x", 400)+`"`) {
		t.Error("who is there already is refused")
	}
	if n := strings.Count(p.log.String(), "presence_memory"); n != 1 {
		t.Errorf("%d log lines, want one:\n%s", n, p.log)
	}
	for _, g := range in {
		p.gone(g)
	}
	p.wantEmpty()
}

// The members of a crowd are told in a few frames, however many leave.
func TestCrowdLeavesInAFewFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd = 2000
		p := newParty(t, 64<<20)
		var guests []*guest
		for i := range crowd {
			g := p.guest()
			guests = append(guests, g)
			p.join(g, "lobby", "user", fmt.Sprint(i))
		}
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
	for _, g := range all {
		lists := g.lists(t)
		for i := range channels {
			channel := fmt.Sprint("channel ", i)
			if list := lists[channel]; list != nil && p.members.In(g.id, channel) && !maps.Equal(list, p.truth(channel)) {
				t.Errorf("a member believes that %v are there, not %v", list, p.truth(channel))
			}
		}
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
