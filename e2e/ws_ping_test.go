package e2e

import (
	"fmt"
	"testing"
	"time"
)

// answerPings answers n pings, and does something after each.
func answerPings(p *pulse, f *frames, n int, then func() error) error {
	for i := range n {
		op, payload, err := f.tryNext()
		if err != nil || op != framePing || payload != "" {
			return fmt.Errorf("instead of ping %d came frame %#x %q, %w", i, op, payload, err)
		}
		p.beat()
		if _, err := f.Write([]byte(masked(frameFin|framePong, ""))); err != nil {
			return err
		}
		if err := then(); err != nil {
			return err
		}
	}
	return nil
}

func TestServerPings(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	a := startPlay(t, fmt.Sprintf("[server.websocket]\nping_interval_secs = \"100ms\"\nidle_timeout_secs = %q\n", limit))
	ended := 0
	retryWhenPaused(t, limit, func(p *pulse) error {
		f := a.dialWire("/")
		p.beat()
		defer func() {
			_ = f.Close() // may be closed already
			ended++
			a.trail(ended)
		}()
		// The pongs are all that keeps it open, for more than twice the limit.
		if err := answerPings(p, f, 25, func() error { return nil }); err != nil {
			return err
		}
		p.rest()
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
		return nil
	})
	if notes := a.trail(ended); notes[ended-1] != `["1001","","idle"]` {
		t.Errorf("disconnect was told %s", notes[ended-1])
	}
	a.wantMetric(`ephpm_ws_closed_total{cause="idle"}`, float64(ended))
	a.wantMetric("ephpm_ws_frames_sent_total", 0) // data only
	a.wantMetric("ephpm_ws_frames_received_total", 0)
}

// A client that answers pings by itself, as every library does, stays.
func TestClientOfALibraryStaysOpen(t *testing.T) {
	t.Parallel()
	const limit = 3 * time.Second
	a := startPlay(t, fmt.Sprintf("[server.websocket]\nping_interval_secs = \"300ms\"\nidle_timeout_secs = %q\n", limit))
	retryWhenPaused(t, limit, func(p *pulse) error {
		listener, sender := a.join(`ephpm_ws_subscribe('news');`, ""), a.dialWire("/")
		p.beat()
		defer func() {
			_, _ = listener.conn.CloseNow(), sender.Close() // may be closed already
			a.waitMetric("ephpm_ws_connections_active", 0)
		}()
		return answerPings(p, sender, 25, func() error { // for two and a half times the limit
			if n := a.page(`return ephpm_ws_broadcast('news', 'x');`); n != "1" {
				return fmt.Errorf("a broadcast reached %s, want 1", n)
			}
			_, _, err := listener.conn.Read(t.Context())
			return err
		})
	})
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
	const limit = 3 * time.Second
	a := startPlay(t, fmt.Sprintf("[server.websocket]\nping_interval_secs = 0\nidle_timeout_secs = %q\n", limit))
	retryWhenPaused(t, limit, func(p *pulse) error {
		data, ping, pong, trickle := a.dialWire("/"), a.dialWire("/"), a.dialWire("/"), a.dialWire("/")
		p.beat()
		whole := masked(frameFin|frameText, `return 'whole';`)
		pace := time.NewTicker(limit / 10)
		defer pace.Stop()
		for i := range len(whole) { // more than twice the limit
			<-pace.C
			p.beat()
			_, _ = pong.Write([]byte(masked(frameFin|framePong, ""))) // the answers at the end tell
			_, _ = trickle.Write([]byte{whole[i]})
			if err := data.ask(frameText, `return 1;`, frameText, `1`); err != nil {
				return err
			}
			if err := ping.ask(framePing, "x", framePong, "x"); err != nil {
				return err
			}
		}
		if op, got, err := trickle.tryNext(); err != nil || op != frameText || got != `"whole"` {
			return fmt.Errorf("trickle: frame %#x %q, %w", op, got, err)
		}
		for name, f := range map[string]*frames{"data": data, "ping": ping, "pong": pong, "trickle": trickle} {
			if err := f.ask(frameText, `return 'open';`, frameText, `"open"`); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}

// ask sends one whole frame and compares the next that comes.
func (f *frames) ask(op byte, payload string, wantOp byte, want string) error {
	if _, err := f.Write([]byte(masked(frameFin|op, payload))); err != nil {
		return err
	}
	gotOp, got, err := f.tryNext()
	if err == nil && (gotOp != wantOp || got != want) {
		err = fmt.Errorf("frame %#x %q, want %#x %q", gotOp, got, wantOp, want)
	}
	return err
}

// The time in which a message is handled is not the client's.
func TestLongHandlerIsNotIdle(t *testing.T) {
	t.Parallel()
	const limit = 1500 * time.Millisecond
	a := startPlay(t, fmt.Sprintf("[server.websocket]\nping_interval_secs = 0\nidle_timeout_secs = %q\n", limit))
	retryWhenPaused(t, limit, func(p *pulse) error {
		f := a.dialWire("/")
		p.beat()
		if _, err := f.Write([]byte(masked(frameFin|frameText, `usleep(1200000); return 'done';`) + masked(frameFin|frameText, `return 'and the next';`))); err != nil {
			return err
		}
		p.rest()
		for _, want := range []string{`"done"`, `"and the next"`} {
			op, got, err := f.tryNext()
			if err != nil || op != frameText || got != want {
				return fmt.Errorf("frame %#x %q, %w; want %s", op, got, err, want)
			}
			p.beat()
		}
		return f.ask(frameText, `return 'open';`, frameText, `"open"`)
	})
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
