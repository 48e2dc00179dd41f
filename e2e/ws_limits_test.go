package e2e

import (
	"strings"
	"testing"
)

func TestMessageAndFrameLimits(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nmax_message_size = 3000\nmax_frame_size = 1000\n")
	f := a.dialWire("/")
	pad := func(code string, n int) string { return code + strings.Repeat(" ", n-len(code)) }

	f.say(frameText, pad(`return 'a frame of the size';`, 1000))
	f.want(frameText, `"a frame of the size"`)
	message := pad(`return 'a message of the size';`, 3000)
	f.send(masked(frameText, message[:1000]) + masked(frameCont, message[1000:2000]) + masked(frameCont|frameFin, message[2000:]))
	f.want(frameText, `"a message of the size"`)
	f.say(frameText, `ephpm_ws_send(str_repeat('x', 3000)); if (ephpm_ws_send(str_repeat('x', 3001))) trail('sent');`)
	f.want(frameText, strings.Repeat("x", 3000)) // the frame limit is the client's

	f.send(masked(frameText, message[:1000]) + masked(frameCont, message[1000:2000]) + masked(frameCont, message[2000:]) + masked(frameCont|frameFin, " "))
	f.wantEnd(1009, "message over the limit")
	_ = f.Close()
	a.wantTrail(`["1009","message over the limit","limit"]`)
	g := a.dialWire("/")
	g.say(frameText, pad(`return 0;`, 1001))
	g.wantEnd(1009, "frame over the limit")
	_ = g.Close()
	a.wantTrail(`["1009","message over the limit","limit"]`, `["1009","frame over the limit","limit"]`)
}

// Zero is no limit, in and out.
func TestNoMessageLimit(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nmax_message_size = 0\nmax_frame_size = 0\n")
	f := a.dialWire("/")
	f.say(frameText, `ephpm_ws_send(file_get_contents('php://input')); // `+repeat(3<<20))
	f.want(frameText, `ephpm_ws_send(file_get_contents('php://input')); // `+repeat(3<<20))
}

// A flood of connections costs an idle socket's memory, not a worker.
func TestIdleSocketsHoldNoWorker(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[php]\nworkers = 1\n")
	for range 50 {
		a.dialWire("/")
	}
	a.wantPage(`return ephpm_ws_count();`, `50`)
}
