package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// Every way in which a connection ends, and what the disconnect event is told.
func TestDisconnectKnowsWhy(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nmax_message_size = 1000\n[server.timeouts]\nrequest = \"2s\"\n")
	ended := 0
	for _, c := range []struct {
		what string
		end  func(f *frames)
		want string
	}{
		{"the client closes", func(f *frames) { f.say(frameClose, closePayload(4001, "bye")) }, `["4001","bye","client"]`},
		{"the client closes without a code", func(f *frames) { f.say(frameClose, "") }, `["1005","","client"]`},
		{"the client is lost", func(f *frames) { _ = f.Close() }, `["1006","","gone"]`},
		{"the client is lost in a frame", func(f *frames) { f.send("\x81\xff"); _ = f.Close() }, `["1006","","gone"]`},
		{"the script closes", func(f *frames) { f.say(frameText, `ephpm_ws_close(4002, 'enough');`) }, `["4002","enough","server"]`},
		{"a message too big", func(f *frames) { f.say(frameText, repeat(1001)) }, `["1009","message over the limit","limit"]`},
		{"a reserved bit", func(f *frames) { f.send(masked(frameFin|0x40|frameText, "x")) }, `["1002","","protocol"]`},
		{"no UTF-8", func(f *frames) { f.say(frameText, "\xff") }, `["1007","text is not UTF-8","protocol"]`},
		{"a handler that hangs", func(f *frames) { f.say(frameText, `sleep(600);`) }, `["1011","","timeout"]`},
	} {
		f := a.joinUnless(504, "", "")
		c.end(f)
		for op := byte(0); op != frameClose; { // so that the server need not wait for us
			var err error
			if op, _, err = f.tryNext(); err != nil {
				break
			}
		}
		_ = f.Close() // may be closed already
		ended++
		if notes := a.trail(ended); notes[ended-1] != c.want {
			t.Errorf("%s: disconnect was told %s, want %s", c.what, notes[ended-1], c.want)
		}
	}
	a.waitMetric("ephpm_ws_connections_active", 0)
	a.wantMetric(`ephpm_ws_events_total{event="disconnect"}`, float64(ended))
	for cause, n := range map[string]float64{"client": 2, "gone": 2, "server": 1, "limit": 1, "protocol": 2, "timeout": 1, "idle": 0, "slow": 0, "shutdown": 0} {
		a.waitMetric(`ephpm_ws_closed_total{cause="`+cause+`"}`, n)
	}
	for code, n := range map[string]float64{"4xxx": 2, "1005": 1, "1006": 2, "1009": 1, "1002": 1, "1007": 1, "1011": 1} {
		a.waitMetric(`ephpm_ws_close_codes_total{code="`+code+`"}`, n)
	}
}

func TestDisconnectComesAfterTheEnd(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	const calls = `return [ephpm_ws_send('x'), ephpm_ws_connection_send($id, 'x'), ephpm_ws_subscribe('late'), ephpm_ws_unsubscribe('lobby'),
		ephpm_ws_close(), ephpm_ws_connection_close($id), ephpm_ws_broadcast('lobby', 'gone'), ephpm_ws_count(), ephpm_ws_count('lobby'), ephpm_ws_members('lobby'),
		isset($_SERVER['WS_OPCODE']), file_get_contents('php://input')];`
	stays := a.join(`ephpm_ws_subscribe('lobby');`, "")
	leaves := a.join(`ephpm_ws_subscribe('lobby');`, calls)
	id := stays.id()
	leaves.close()
	a.wantTrail(`[false,false,false,false,false,false,1,1,1,["` + id + `"],false,""]`)
	if got := stays.recv(); got != "gone" {
		t.Errorf("the one who stays received %q", got)
	}
}

// A slow disconnect event does not keep the socket.
func TestDisconnectHoldsNoSocket(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	g := newGate(t)
	f := a.dialWire(events("", `file_get_contents('`+g.path+`'); return 'done';`))
	f.say(frameClose, closePayload(1000, ""))
	f.wantEnd(1000, "")
	g.wait()
	a.wantMetric("ephpm_ws_connections_active", 0)
	g.open()
	a.wantTrail(`"done"`)
}

func TestDisconnectRunsOnce(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	s := a.join("", "")
	s.send(`trail([ephpm_ws_close(4000, 'first'), ephpm_ws_close(4001, 'second'), ephpm_ws_connection_close($id, 4002)]);`)
	if code, reason, _ := s.recvClose(); code != 4000 || reason != "first" {
		t.Errorf("close %d %q, want the first one", code, reason)
	}
	a.wantTrail(`[true,true,true]`, `["4000","first","server"]`)
	a.waitMetric(`ephpm_ws_events_total{event="disconnect"}`, 1)
}

func TestDisconnectOverTheTimeLimitIsKilled(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.timeouts]\nrequest = \"1s\"\nrequest_grace = 0\n")
	hung := 0.0
	for there := error(os.ErrNotExist); there != nil && hung < 20; { // on a busy machine the time may be over before the script is there
		f := a.joinUnless(504, "", `trail(getmypid()); sleep(600);`)
		f.say(frameClose, closePayload(1000, ""))
		f.wantEnd(1000, "")
		hung++
		a.waitMetric(`ephpm_ws_event_failures_total{event="disconnect",reason="timeout"}`, hung)
		_, there = os.Stat(a.notes)
	}
	a.wantGone(fromJSON[int](t, a.trail(1)[0]))
}

// More sockets end at once than the pool takes: every disconnect event runs.
func TestNoDisconnectIsLost(t *testing.T) {
	t.Parallel()
	a := startPlay(t, waitLong+"workers = 1\nworker_backlog = 3\n")
	const n = 100
	var sockets []*frames
	for i := range n {
		sockets = append(sockets, a.dialWire(events("", fmt.Sprintf("return %d;", i))))
	}
	for _, f := range sockets {
		_ = f.Close() // they only vanish
	}
	seen := map[string]bool{}
	for _, note := range a.trail(n) {
		seen[note] = true
	}
	if len(seen) != n {
		t.Errorf("%d disconnect events, want %d", len(seen), n)
	}
	a.waitMetric("ephpm_ws_connections_active", 0)
	for _, reason := range strings.Fields("busy canceled other") {
		a.wantMetric(`ephpm_ws_event_failures_total{event="disconnect",reason="`+reason+`"}`, 0)
	}
}

func TestDisconnectKnowsHowLongItWas(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	const least = 50 * time.Millisecond
	asked := time.Now()
	s := a.join("", `return (int) $_SERVER['WS_DURATION_MS'];`)
	opened := time.Now()
	for time.Since(opened) < least {
		s.wantRun(`return 1;`, `1`)
	}
	s.close()
	got := time.Duration(fromJSON[int](t, a.trail(1)[0])) * time.Millisecond
	if most := time.Since(asked); got < least-time.Millisecond || got > most {
		t.Errorf("disconnect was told %v, want %v to %v", got, least, most)
	}
}
