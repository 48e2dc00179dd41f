package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
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

func TestPresenceMemoryIsBounded(t *testing.T) {
	const most = 100_000
	p := newParty(t, most)
	var in []*guest
	fill := func() {
		t.Helper()
		for i := 0; ; i++ {
			g := p.guest()
			if !p.join(g, "lobby", "user", fmt.Sprintf(`"%d.%d"`, len(in), i), "info", `"`+strings.Repeat("x", 400)+`"`) {
				break
			}
			in = append(in, g)
		}
		if len(in) < 50 || len(in) > 111 || p.bytes > most || p.members.Count("lobby") != len(in) {
			t.Errorf("%d users of 900 bytes in %d bytes, %d members", len(in), p.bytes, p.members.Count("lobby"))
		}
		if got := p.count("lobby"); got != len(in) || strings.Count(string(p.users("lobby", 1000)), `"user"`) != got {
			t.Errorf("%d users are counted, want %d: %s", got, len(in), p.users("lobby", 1000))
		}
		for range 3 {
			if p.join(p.guest(), "lobby", "user", `"late"`, "info", `"`+strings.Repeat("x", 4000)+`"`) {
				t.Error("one too many")
			}
		}
	}
	logged := func(want int) {
		t.Helper()
		if n := strings.Count(p.log.String(), "presence_memory"); n != want {
			t.Errorf("%d log lines, want %d:\n%s", n, want, p.log)
		}
	}
	fill()
	logged(1)
	p.part(in[0], "lobby")
	if !p.join(in[0], "lobby", "user", `"again"`) || !p.join(in[1], "lobby", "list", "0") {
		t.Error("who has made room, or needs none, is refused")
	}
	fill() // is no news
	logged(1)
	for _, g := range in[len(in)/2:] {
		p.gone(g)
	}
	in = in[:len(in)/2]
	fill()
	logged(2)
	for _, g := range in {
		p.gone(g)
	}
	p.wantEmpty()
}
