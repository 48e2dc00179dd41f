package e2e

import (
	"testing"
	"time"
)

func TestServerPings(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nping_interval_secs = \"100ms\"\nidle_timeout_secs = \"600ms\"\n")
	f := a.dialWire("/")
	// The pongs are all that keeps it open, for more than twice the limit.
	for range 15 {
		f.want(framePing, "")
		f.say(framePong, "")
	}
	// Then they stop.
	for {
		op, payload := f.next()
		if op == framePing {
			continue
		}
		if op != frameClose || payload != closePayload(1001, "") {
			t.Errorf("frame %#x %q, want close 1001", op, payload)
		}
		break
	}
	f.say(frameClose, closePayload(1001, ""))
	a.wantTrail(`["1001","","idle"]`)
	a.wantMetric(`ephpm_ws_closed_total{cause="idle"}`, 1)
	a.wantMetric("ephpm_ws_frames_sent_total", 0) // data only
	a.wantMetric("ephpm_ws_frames_received_total", 0)
}

// A client that answers pings by itself, as every library does, stays.
func TestClientOfALibraryStaysOpen(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nping_interval_secs = \"100ms\"\nidle_timeout_secs = \"1s\"\n")
	listener, sender := a.join(`ephpm_ws_subscribe('news');`, ""), a.dialWire("/")
	for range 25 { // two and a half times the limit
		sender.want(framePing, "")
		sender.say(framePong, "")
		a.wantPage(`return ephpm_ws_broadcast('news', 'x');`, `1`)
		listener.recv()
	}
}

func TestIdleClientIsClosed(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nping_interval_secs = 0\nidle_timeout_secs = \"300ms\"\n")
	f := a.dialWire("/")
	f.wantClose(1001, "") // without a ping before
	a.wantTrail(`["1001","","idle"]`)
}

// Every frame of the client counts, whatever it is.
func TestEveryFrameCountsAsLife(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nping_interval_secs = 0\nidle_timeout_secs = \"1s\"\n")
	sockets := map[string]*frames{"data": a.dialWire("/"), "ping": a.dialWire("/"), "pong": a.dialWire("/"), "trickle": a.dialWire("/")}
	trickle := masked(frameFin|frameText, `return 'whole';`)
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	for range len(trickle) { // more than twice the limit
		<-pace.C
		sockets["data"].say(frameText, `return 1;`)
		sockets["data"].want(frameText, `1`)
		sockets["ping"].say(framePing, "x")
		sockets["ping"].want(framePong, "x")
		sockets["pong"].say(framePong, "")
		sockets["trickle"].send(trickle[:1])
		trickle = trickle[1:]
	}
	sockets["trickle"].want(frameText, `"whole"`)
	for name, f := range sockets {
		if got := f.run(`return 'open';`); got != `"open"` {
			t.Errorf("%s: received %s", name, got)
		}
	}
}

// The time in which a message is handled is not the client's.
func TestLongHandlerIsNotIdle(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nping_interval_secs = 0\nidle_timeout_secs = \"500ms\"\n")
	f := a.dialWire("/")
	f.send(masked(frameFin|frameText, `usleep(1200000); return 'done';`) + masked(frameFin|frameText, `return 'and the next';`))
	f.want(frameText, `"done"`)
	f.want(frameText, `"and the next"`)
	if got := f.run(`return 'open';`); got != `"open"` {
		t.Errorf("received %s", got)
	}
}

// Pings go out while a handler runs.
func TestServerPingsWhileAHandlerRuns(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nping_interval_secs = \"50ms\"\n")
	f, g := a.dialWire("/"), newGate(t)
	f.say(frameText, `file_get_contents('`+g.path+`');`)
	g.wait()
	for range 5 {
		f.want(framePing, "")
	}
	g.open()
}

func TestClientPingsAreAnswered(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	f := a.dialWire("/")
	for _, payload := range []string{"", "x", repeat(125)} {
		f.say(framePing, payload)
		f.want(framePong, payload)
	}
}
