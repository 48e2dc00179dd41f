package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestChannelNames(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	s := a.join("", "")
	for _, c := range []struct{ name, want string }{
		{`''`, `false`},
		{`'x'`, `true`},
		{`str_repeat('x', 256)`, `true`},
		{`str_repeat('x', 257)`, `false`},
		{`str_repeat('ü', 128)`, `true`},
		{`str_repeat('ü', 129)`, `false`},
		{`"\xff"`, `false`},
		{`"torn \xc3"`, `false`},
		{`"a\0b"`, `true`},
		{`' '`, `true`},
	} {
		s.wantRun(`return ephpm_ws_subscribe(`+c.name+`);`, c.want)
		s.wantRun(`return ephpm_ws_connection_subscribe($id, `+c.name+`);`, c.want)
		s.wantRun(`return ephpm_ws_unsubscribe(`+c.name+`);`, c.want)
	}
	s.wantRun(`return [ephpm_ws_subscribe("a\0b"), ephpm_ws_count("a\0b"), ephpm_ws_count('a')];`, `[true,1,0]`)
}

func TestConnectionHolds64Channels(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	s := a.join("", "")
	s.wantRun(`$n = 0; for ($i = 0; $i < 70; $i++) $n += (int) ephpm_ws_subscribe("c$i"); return $n;`, `64`)
	s.wantRun(`return [ephpm_ws_subscribe('one more'), ephpm_ws_connection_subscribe($id, 'one more'), ephpm_ws_count('one more')];`, `[false,false,0]`)
	s.wantRun(`return ephpm_ws_subscribe('c0');`, `true`) // held already
	s.wantRun(`return [ephpm_ws_unsubscribe('c0'), ephpm_ws_subscribe('one more'), ephpm_ws_subscribe('c0')];`, `[true,true,false]`)
	s.close()
	a.trail(1)
	a.wantPage(`return [ephpm_ws_count('c1'), ephpm_ws_count('one more')];`, `[0,0]`)
}

func TestBroadcastReachesEveryMemberOnce(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	var ids []string
	var sockets []*socket
	for range 20 {
		s := a.join(`ephpm_ws_subscribe('lobby'); ephpm_ws_subscribe('lobby'); ephpm_ws_subscribe('other');`, "")
		sockets, ids = append(sockets, s), append(ids, s.id())
	}
	stranger := a.join("", "")

	if got := sockets[0].run(`return ephpm_ws_broadcast('lobby', 'hello') /* itself included */;`); got != "hello" {
		t.Fatalf("the sender received %q first, want its own broadcast", got)
	}
	if got := sockets[0].recv(); got != "20" {
		t.Errorf("broadcast = %s, want 20", got)
	}
	stranger.wantRun(`return ephpm_ws_broadcast('lobby', 'but one', false, '`+ids[3]+`');`, `19`)
	stranger.wantRun(`return ephpm_ws_broadcast('lobby', 'but nobody', false, 'x');`, `20`)
	stranger.wantRun(`return ephpm_ws_broadcast('lobby', "\xff\0", true, null);`, `20`)
	stranger.wantRun(`return ephpm_ws_broadcast('LOBBY', 'another channel');`, `0`)
	for i, s := range sockets {
		want := []string{"hello", "but one", "but nobody"}
		if i == 0 {
			want = want[1:]
		}
		if i == 3 {
			want = slices.DeleteFunc(want, func(text string) bool { return text == "but one" })
		}
		for _, text := range want {
			if got := s.recv(); got != text {
				t.Errorf("member %d received %q, want %q", i, got, text)
			}
		}
		if _, data := s.recvFrame(); string(data) != "\xff\x00" {
			t.Errorf("member %d received %q", i, data)
		}
		s.wantRun(`return 'nothing more';`, `"nothing more"`)
	}
	stranger.wantRun(`return 'nothing at all';`, `"nothing at all"`)

	members := fromJSON[[]string](t, a.page(`return ephpm_ws_members('lobby');`))
	slices.Sort(members)
	slices.Sort(ids)
	if !slices.Equal(members, ids) {
		t.Errorf("members are %q, want %q", members, ids)
	}
	for limit, want := range map[string]int{"1": 1, "19": 19, "20": 20, "1000": 20, "PHP_INT_MAX": 20, "0": 0, "-1": 0} {
		a.wantPage(`return count(array_unique(ephpm_ws_members('lobby', `+limit+`)));`, fmt.Sprint(want))
	}
	a.wantPage(`return [ephpm_ws_count(), ephpm_ws_count('lobby'), ephpm_ws_count('other'), ephpm_ws_count('')];`, `[21,20,20,0]`)
}

func TestLeavingAChannel(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	stays, leaves, gone := a.join(`ephpm_ws_subscribe('lobby');`, ""), a.join(`ephpm_ws_subscribe('lobby');`, ""), a.join(`ephpm_ws_subscribe('lobby');`, "")
	leaves.wantRun(`return ephpm_ws_unsubscribe('lobby');`, `true`)
	_ = gone.conn.CloseNow() // it only vanishes
	a.trail(1)
	a.wantPage(`return [ephpm_ws_broadcast('lobby', 'x'), ephpm_ws_count('lobby'), ephpm_ws_count()];`, `[1,1,2]`)
	if got := stays.recv(); got != "x" {
		t.Errorf("received %q", got)
	}
	leaves.wantRun(`return 'nothing came';`, `"nothing came"`)
}

// Order per connection is the order of enqueueing.
func TestBroadcastPrecedesALaterSend(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	s := a.join(`ephpm_ws_subscribe('lobby');`, "")
	s.send(`for ($i = 0; $i < 30; $i += 3) { ephpm_ws_send("$i"); ephpm_ws_broadcast('lobby', '' . ($i + 1)); ephpm_ws_connection_send($id, '' . ($i + 2)); }`)
	for i := range 30 {
		if got := s.recv(); got != fmt.Sprint(i) {
			t.Fatalf("received %q, want %d", got, i)
		}
	}
}

// Frames of scripts that run at once mix, but each arrives whole and those of
// one script in its order.
func TestConcurrentSendersNeverTearAFrame(t *testing.T) {
	t.Parallel()
	a := startPlay(t, patientSends)
	s := a.join(`ephpm_ws_subscribe('lobby');`, "")
	const senders, each = 4, 50
	var pages []*late
	for i := range senders {
		pages = append(pages, a.later(a.request("POST", "/page.php",
			fmt.Sprintf(`for ($i = 0; $i < %d; $i++) if (ephpm_ws_broadcast('lobby', '%d ' . $i . ' ' . str_repeat('%d', 5000)) !== 1) return $i; return 'all';`, each, i, i))))
	}
	var next [senders]int
	for range senders * each {
		var sender, n int
		var text string
		message := s.recv()
		if _, err := fmt.Sscan(message, &sender, &n, &text); err != nil || sender >= senders {
			t.Fatalf("message %.40q: %v", message, err)
		}
		if n != next[sender] || text != strings.Repeat(fmt.Sprint(sender), 5000) {
			t.Errorf("message %d of sender %d is %.20q… of %d bytes, want number %d", n, sender, text, len(text), next[sender])
		}
		next[sender]++
	}
	for _, page := range pages {
		if _, body := page.wait(); body != `"all"` {
			t.Errorf("a page printed %s, want all", body)
		}
	}
}
