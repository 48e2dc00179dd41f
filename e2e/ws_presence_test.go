package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// here joins the lobby as a user; see events.
func (p *play) here(user, disconnect string) *socket {
	p.t.Helper()
	return p.join(`ephpm_ws_subscribe('lobby', ['user' => '`+user+`', 'info' => ['name' => ucfirst('`+user+`')]]);`, disconnect)
}

// presence is what the server says of some users of the lobby, whose info is their
// name.
func presence(event string, count int, users ...string) string {
	for i, u := range users {
		users[i] = fmt.Sprintf(`{"user":%q,"info":{"name":%q}}`, u, strings.ToUpper(u[:1])+u[1:])
	}
	return fmt.Sprintf(`{"event":%q,"channel":"lobby","count":%d,"users":[%s]}`, event, count, strings.Join(users, ","))
}

func (s *socket) want(texts ...string) {
	s.t.Helper()
	for _, want := range texts {
		if got := s.recv(); got != want {
			s.t.Fatalf("received\n%s\nwant\n%s", got, want)
		}
	}
}

func TestPresenceOfUsersWithTabs(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	bob := a.here("bob", "")
	bob.want(presence("present", 1, "bob"))
	alice1 := a.here("alice", "")
	alice1.want(presence("present", 2, "bob", "alice"))
	bob.want(presence("join", 2, "alice"))
	alice2 := a.here("alice", "")
	alice2.want(presence("present", 2, "bob", "alice"))
	bob.wantRun(`return 'nobody new';`, `"nobody new"`)

	a.wantPage(`return ephpm_ws_members('lobby', users: true);`,
		`[{"user":"bob","info":{"name":"Bob"},"connections":1},{"user":"alice","info":{"name":"Alice"},"connections":2}]`)
	a.wantPage(`return ephpm_ws_members('lobby', 1, true)[0]['info']['name'];`, `"Bob"`)
	a.wantPage(`return [ephpm_ws_members('lobby', 0, true), ephpm_ws_members('other', users: true), count(ephpm_ws_members('lobby'))];`, `[[],[],3]`)
	a.wantPage(`return [ephpm_ws_count(), ephpm_ws_count('lobby'), ephpm_ws_count('lobby', true), ephpm_ws_count('other', users: true)];`, `[3,3,2,0]`)
	a.wantPage(`return ephpm_ws_count(users: true);`, `["ValueError","ephpm_ws_count(): Argument #2 ($users) must be false without a channel",0]`)
	a.wantMetric("ephpm_ws_presence_users", 2)

	_ = alice1.conn.CloseNow() // it only vanishes
	a.trail(1)
	bob.wantRun(`return 'nobody left';`, `"nobody left"`)
	alice2.wantRun(`return ephpm_ws_subscribe('lobby', ['user' => 'alice', 'info' => 'Al']);`, `{"event":"update","channel":"lobby","count":2,"users":[{"user":"alice","info":"Al"}]}`)
	alice2.want(`true`)
	alice2.close()
	bob.want(`{"event":"update","channel":"lobby","count":2,"users":[{"user":"alice","info":"Al"}]}`)
	bob.want(`{"event":"leave","channel":"lobby","count":1,"users":[{"user":"alice","info":"Al"}]}`)
	bob.wantRun(`return ephpm_ws_unsubscribe('lobby');`, `true`)
	a.wantPage(`return [ephpm_ws_count('lobby', true), ephpm_ws_members('lobby', 9, true)];`, `[0,[]]`)
	for series, want := range map[string]float64{"users": 0, "joins_total": 2, "leaves_total": 2, "refused_total": 0} {
		a.wantMetric("ephpm_ws_presence_"+series, want)
	}
}

// However a connection ends, the others are told once.
func TestLeaveIsToldHoweverAConnectionEnds(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nwrite_timeout_secs = \"500ms\"\n[server.timeouts]\nrequest = \"500ms\"\n")
	bob := a.here("bob", "return null;")
	bob.want(presence("present", 1, "bob"))
	for _, c := range []struct {
		how string
		end func(alice *socket, id string)
	}{
		{"it closes", func(alice *socket, _ string) { alice.close() }},
		{"it vanishes", func(alice *socket, _ string) { _ = alice.conn.CloseNow() }},
		{"a script closes it", func(alice *socket, _ string) {
			alice.send(`ephpm_ws_close(4001, 'bye');`)
			alice.recvClose()
		}},
		{"a page closes it, and it does not answer", func(_ *socket, id string) {
			a.wantPage(`return ephpm_ws_connection_close('`+id+`');`, `true`)
		}},
		{"it unsubscribes", func(alice *socket, _ string) { alice.wantRun(`return ephpm_ws_unsubscribe('lobby');`, `true`) }},
		{"a page unsubscribes it", func(_ *socket, id string) {
			a.wantPage(`return ephpm_ws_connection_unsubscribe('`+id+`', 'lobby');`, `true`)
		}},
		{"it becomes somebody else", func(alice *socket, _ string) {
			alice.send(`return ephpm_ws_subscribe('lobby', ['user' => 'carol', 'info' => ['name' => 'Carol']]);`)
			alice.want(presence("leave", 1, "alice"), presence("join", 2, "carol"), `true`)
			alice.close()
		}},
		{"its handler hangs", func(alice *socket, _ string) {
			alice.send(`sleep(60);`)
			alice.recvClose()
		}},
		{"its message is too large", func(alice *socket, _ string) {
			alice.send(strings.Repeat("x", 1<<20+1))
			alice.recvClose()
		}},
	} {
		alice := a.here("alice", "return null;")
		alice.want(presence("present", 2, "bob", "alice"))
		bob.want(presence("join", 2, "alice"))
		c.end(alice, alice.id())
		if got := bob.recv(); got != presence("leave", 1, "alice") {
			t.Errorf("%s: received %s", c.how, got)
		}
		if strings.Contains(c.how, "else") {
			bob.want(presence("join", 2, "carol"), presence("leave", 1, "carol"))
		}
	}

	// A connection that connect refuses was there for a moment; one that crashes PHP stays.
	a.refusal(events(`ephpm_ws_subscribe('lobby', ['user' => 'alice', 'info' => ['name' => 'Alice']]); http_response_code(403);`, ""), nil)
	bob.want(presence("join", 2, "alice"), presence("leave", 1, "alice"))
	alice := a.here("alice", "return null;")
	alice.want(presence("present", 2, "bob", "alice"))
	bob.want(presence("join", 2, "alice"))
	alice.send(`posix_kill(getmypid(), SIGKILL);`)
	alice.wantRun(`return ephpm_ws_count('lobby', users: true);`, `2`)
	bob.wantRun(`return 'nothing';`, `"nothing"`)
}

// Nobody reads a user before the user is there, or after.
func TestPresenceIsInOrderWithBroadcasts(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	bob := a.here("bob", "")
	bob.want(presence("present", 1, "bob"))
	for i := range 20 {
		alice := a.join(`ephpm_ws_subscribe('lobby', ['user' => 'alice', 'info' => ['name' => 'Alice']]); ephpm_ws_broadcast('lobby', 'hi'); ephpm_ws_send('welcome');`,
			`return ephpm_ws_broadcast('lobby', 'bye') - 1;`)
		alice.want(presence("present", 2, "bob", "alice"), "hi", "welcome")
		if i%2 == 0 {
			alice.close()
		} else {
			_ = alice.conn.CloseNow()
		}
		bob.want(presence("join", 2, "alice"), "hi", presence("leave", 1, "alice"), "bye")
	}
}

func TestPresenceAndHistoryOfOneChannel(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	const both = `ephpm_ws_subscribe('lobby', ['history' => 10, 'user' => 'bob', 'info' => ['name' => 'Bob']]);`
	bob := a.join(both, "")
	bob.want(presence("present", 1, "bob"))
	a.wantPage(`return ephpm_ws_broadcast('lobby', 'one') + ephpm_ws_broadcast('lobby', 'two');`, `2`)
	bob.want("one", "two")
	alice := a.join(strings.NewReplacer("bob", "alice", "Bob", "Alice").Replace(both), "")
	alice.want("one", "two", presence("present", 2, "bob", "alice"))
	bob.want(presence("join", 2, "alice"))
	bob.wantRun(`return ephpm_ws_broadcast('lobby', 'three');`, "three")
	bob.want("2")
	alice.want("three")
	alice.close()
	bob.want(presence("leave", 1, "alice")) // which is not remembered
	watcher := a.join(`ephpm_ws_subscribe('lobby', ['history' => 1, 'list' => 5]);`, "")
	watcher.want("three", presence("present", 1, "bob"))
	a.wantPage(`return [ephpm_ws_count('lobby'), ephpm_ws_count('lobby', true)];`, `[2,1]`)
	bob.wantRun(`return 'a watcher is not there';`, `"a watcher is not there"`)
}

func TestPresenceOptionsAreChecked(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\npresence_memory = 25000\n")
	s := a.join("", "")
	const class = `["ValueError","ephpm_ws_subscribe(): Argument #2 ($options) must have `
	for options, want := range map[string]string{
		`['user' => '']`:                                 class + `a string of 1 to 256 bytes or an int as \"user\", \"\" given",0]`,
		`['user' => null]`:                               class + `a string of 1 to 256 bytes or an int as \"user\", null given",0]`,
		`['user' => str_repeat('x', 257)]`:               class + `a string of 1 to 256 bytes or an int as \"user\", \"` + strings.Repeat("x", 39) + ` given",0]`,
		`['user' => "\xff"]`:                             class + `as \"user\" what json_encode() takes",0]`,
		`['user' => 1, 'info' => NAN]`:                   class + `as \"info\" what json_encode() takes",0]`,
		`['user' => 1, 'info' => str_repeat('x', 4095)]`: class + `\"info\" of at most 4096 bytes in JSON, 4097 given",0]`,
		`['info' => 'x']`:                                class + `\"user\" where there is \"info\"",0]`,
		`['list' => -1]`:                                 class + `0 to 10000 as \"list\", -1 given",0]`,
		`[['user' => 1]]`:                                `["ValueError","ephpm_ws_subscribe(): Argument #2 ($options) must not have \"0\"; there are \"history\", \"user\", \"info\" and \"list\"",0]`,
		`['user' => 1, 'info' => str_repeat('x', 4094)] + [false]`: `["ValueError","ephpm_ws_subscribe(): Argument #2 ($options) must not have \"0\"; there are \"history\", \"user\", \"info\" and \"list\"",0]`,
	} {
		s.wantRun(`return ephpm_ws_subscribe('chat', `+options+`);`, want)
	}
	s.wantRun(`return [ephpm_ws_subscribe('', ['user' => 1]), ephpm_ws_connection_subscribe('x', 'chat', ['user' => 1]), ephpm_ws_count('chat')];`, `[false,false,0]`)
	for _, info := range []string{`null`, `-0.5`, `true`, `"ü/€</\u2028"`, `[]`, `[[1,{"a":{"b":[]}}]]`, `{"a":1,"7":null}`} {
		got := s.run(`ephpm_ws_subscribe('chat', ['user' => 7, 'list' => 9, 'info' => json_decode('` + strings.ReplaceAll(info, `\`, `\\`) + `')]); return null;`)
		if want := `{"event":"present","channel":"chat","count":1,"users":[{"user":"7","info":` + info + `}]}`; got != want {
			t.Errorf("info %s came as %s", info, got)
		}
		s.wantRun(`$m = ephpm_ws_members('chat', 1, true)[0]; return [$m['user'], $m['connections'], $m['info'] == json_decode('`+strings.ReplaceAll(info, `\`, `\\`)+`', true)];`, `["7",1,true]`)
		s.wantRun(`return ephpm_ws_unsubscribe('chat');`, `true`)
	}

	// Memory for some users only, and again when they have gone.
	s.wantRun(`for ($i = 0; ephpm_ws_connection_subscribe($id, "c$i", ['user' => 'u', 'info' => str_repeat('x', 4000), 'list' => 0]); $i++); return null;`,
		`{"event":"present","channel":"c0","count":1,"users":[]}`)
	for range 3 {
		s.recv()
	}
	s.wantRun(`return [ephpm_ws_count('c3'), ephpm_ws_count('c4')];`, `[1,0]`)
	a.wantMetric("ephpm_ws_presence_refused_total", 1)
	if n := a.countLines("no room for more users", "presence_memory", "site=default"); n != 1 {
		t.Errorf("%d log lines say that there is no room, want one", n)
	}
	s.wantRun(`ephpm_ws_unsubscribe('c0'); return ephpm_ws_subscribe('c4', ['user' => 'u', 'info' => str_repeat('x', 4000), 'list' => 0]);`,
		`{"event":"present","channel":"c4","count":1,"users":[]}`)
	s.want(`true`)
}

// lobbyList is what a client knows of who is in the lobby.
type lobbyList map[string]string

// learn applies a frame of presence. It reports what cannot be.
func (l lobbyList) learn(text string) error {
	var f struct {
		Event string
		Count int
		Users []struct {
			User string
			Info json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return err
	}
	if f.Event == "present" {
		clear(l)
	}
	for _, u := range f.Users {
		if _, known := l[u.User]; known != (f.Event == "leave" || f.Event == "update") {
			return fmt.Errorf("%s of %s, who is there: %v", f.Event, u.User, known)
		}
		if l[u.User] = string(u.Info); f.Event == "leave" {
			delete(l, u.User)
		}
	}
	if len(l) != f.Count { // the lists of these tests are whole
		return fmt.Errorf("%d users after %.200s", len(l), text)
	}
	return nil
}

// Clients come, go, break and become others at random, and pages move them: what a
// member was told makes sense at any time, and is true in the end.
func TestPresenceUnderRandomComingsAndGoings(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	watcher := a.join(`ephpm_ws_subscribe('lobby', ['list' => 100]);`, "return null;")
	var all sync.WaitGroup
	for client := range 6 {
		random := rand.New(rand.NewPCG(uint64(client), 1))
		all.Go(func() {
			var f *frames
			for range 25 {
				user := fmt.Sprintf("['user' => %d, 'info' => %d]", random.IntN(4), random.IntN(2))
				if f == nil {
					var err error
					if f, err = a.dialWireFrom("127.0.0.9", events("ephpm_ws_subscribe('lobby', "+user+");", "return null;")); err != nil {
						t.Error(err)
						return
					}
				}
				var err error
				switch random.IntN(6) {
				case 0:
					err = f.trySend("ephpm_ws_unsubscribe('lobby');")
				case 1, 2:
					err = f.trySend("ephpm_ws_subscribe('lobby', " + user + ");")
				case 3:
					err = f.trySend("posix_kill(getmypid(), SIGKILL);")
				case 4:
					_, err = f.Write([]byte(masked(frameFin|frameClose, closePayload(1000, ""))))
					reset(f.tcp())
					f = nil
				case 5:
					reset(f.tcp())
					f = nil
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
			if f != nil {
				reset(f.tcp())
			}
		})
	}
	all.Wait()
	a.wantMetric("ephpm_ws_connections_active", 1)
	a.wantMetric("ephpm_ws_presence_users", 0)
	a.wantPage(`return ephpm_ws_broadcast('lobby', 'end');`, `1`)
	list := lobbyList{}
	for {
		text := watcher.recv()
		if text == "end" {
			break
		}
		if err := list.learn(text); err != nil {
			t.Fatal(err)
		}
	}
	if len(list) != 0 {
		t.Errorf("the watcher believes that %v are there", list)
	}
}

// trySend sends a text for any goroutine.
func (f *frames) trySend(text string) error {
	_, err := f.Write([]byte(masked(frameFin|frameText, text)))
	return err
}

// A crowd of users breaks away at once. The one who stays is told of each of them, in
// a few frames.
func TestCrowdThatLeavesAPresenceChannel(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	stays := a.here("bob", "return null;")
	stays.want(presence("present", 1, "bob"))
	sockets := a.crowd(few(600), func(i int) string { return fmt.Sprintf(`ephpm_ws_subscribe('lobby', ['user' => %d]);`, i) })
	crowd := len(sockets)
	a.wantPage(`return [ephpm_ws_count('lobby', true), count(ephpm_ws_members('lobby', 1000, true))];`, fmt.Sprintf("[%d,%d]", crowd+1, crowd+1))
	list := lobbyList{"bob": ""}
	learn := func(text string) {
		if err := list.learn(text); err != nil {
			t.Fatal(err)
		}
	}
	for len(list) <= crowd {
		learn(stays.recv())
	}
	for _, f := range sockets {
		reset(f.tcp())
	}
	a.wantMetric("ephpm_ws_presence_users", 1)
	a.wantPage(`return ephpm_ws_broadcast('lobby', 'end');`, `1`)
	texts := 0
	for text := stays.recv(); text != "end"; text = stays.recv() {
		learn(text)
		texts++
	}
	if got := slices.Collect(maps.Keys(list)); !slices.Equal(got, []string{"bob"}) {
		t.Errorf("in the end %v are there", got)
	}
	if texts >= crowd {
		t.Errorf("%d messages about %d who left at once", texts, crowd)
	}
	a.wantMetric("ephpm_ws_presence_leaves_total", float64(crowd))
}
