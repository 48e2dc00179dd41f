package e2e

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// dialWireFrom opens a WebSocket from an address of the loopback network, for more
// sockets than one address has.
func (a *app) dialWireFrom(source, target string) (*frames, error) {
	conn, err := a.dialFrom(source)
	if err != nil {
		return nil, err
	}
	w := newWire(a.t, conn)
	if _, err := w.Write([]byte(upgradeText(target))); err != nil {
		return nil, err
	}
	return w.tryAccepted()
}

// resident is the memory of the front in MiB.
func (a *app) resident() int {
	a.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.PID()))
	if err != nil {
		a.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		a.t.Fatal(err)
	}
	return kb >> 10
}

// reset ends a connection as a crash does.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0) // or it ends in good order
	_ = c.Close()      // may be closed already
}

// Sockets of abusers, forty of each kind, are closed or bounded; pages and a
// socket that behaves go on.
func TestAbuseCostsNobodyElse(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nmax_message_size = 65536\nmax_frame_size = 65536\nwrite_timeout_secs = 60\n")
	good := a.dialWire("/")
	before := a.resident()
	const each = 40
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []*frames
	abuse := func(name string, f func(f *frames) error) {
		for range each {
			all.Go(func() {
				s, err := a.dialWireFrom("127.0.0.9", "/")
				if err == nil {
					mu.Lock()
					open = append(open, s)
					mu.Unlock()
					err = f(s)
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
	write := func(f *frames, b string) error { _, err := f.Write([]byte(b)); return err }
	closes := func(f *frames, code int) error {
		op, payload, err := f.tryNext()
		if err == nil && (op != frameClose || payload[:2] != closePayload(code, "")) {
			err = fmt.Errorf("frame %#x %.20q, want close %d", op, payload, code)
		}
		return err
	}
	abuse("half a header", func(f *frames) error { return write(f, "\x81") })
	abuse("half a message", func(f *frames) error { return write(f, masked(frameText, repeat(60_000))+"\x80") })
	abuse("a huge length", func(f *frames) error {
		if err := write(f, "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x01\x02\x03\x04"); err != nil {
			return err
		}
		return closes(f, 1009)
	})
	abuse("fragments for ever", func(f *frames) error {
		go func() { // ends with the connection
			for part := masked(frameText, repeat(100)); write(f, part) == nil; part = masked(frameCont, repeat(100)) {
			}
		}()
		return closes(f, 1009)
	})
	abuse("tiny fragments", func(f *frames) error {
		code := `return 'still understood'; //` + repeat(5000)
		if err := write(f, strings.Join(fragments(frameText, code, 1), strings.Repeat(masked(frameCont, ""), 3))); err != nil {
			return err
		}
		_, got, err := f.tryNext()
		if err == nil && got != `"still understood"` {
			err = fmt.Errorf("answer %.60q", got)
		}
		return err
	})
	abuse("pings, and nothing is read", func(f *frames) error {
		flood := strings.Repeat(whole(framePing, repeat(125)), 1000)
		for range 20 {
			if err := write(f, flood); err != nil {
				return err
			}
		}
		return nil
	})
	abuse("closes, over and over", func(f *frames) error {
		_ = write(f, strings.Repeat(whole(frameClose, closePayload(1000, "")), 500)) // the server closes in the middle
		return closes(f, 1000)
	})
	for i := range 20 {
		a.wantPage(`return 'alive';`, `"alive"`)
		good.say(framePing, numeral(i))
		good.want(framePong, numeral(i))
		if got := good.run(`return 'here';`); got != `"here"` {
			t.Errorf("a socket that behaves got %q", got)
		}
	}
	all.Wait()
	if after := a.resident(); after > before+64 && !raceEnabled {
		t.Errorf("the front had %d MiB before, and has %d", before, after)
	}
	for _, f := range open {
		reset(f.tcp())
	}
	good.say(frameClose, closePayload(1000, ""))
	good.wantEnd(1000, "")
	a.wantMetric("ephpm_ws_connections_active", 0)
	a.wantPage(`return ephpm_ws_count();`, `0`)
}

func TestClientsThatLeaveHalfWayLeaveNothing(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	request := upgradeText(events(`ephpm_ws_subscribe('lobby'); ephpm_ws_send(str_repeat('x', 100000));`, "return null;"))
	const count = 400
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range count / 8 {
				conn, err := a.dialFrom("127.0.0.7")
				if err != nil {
					t.Error(err)
					return
				}
				cut := len(request) * (i % 5) / 4 // a quarter of them all of it
				_, _ = conn.Write([]byte(request[:cut]))
				if cut == len(request) && i%2 == worker%2 {
					_, _ = conn.Read(make([]byte, 20)) // of the 101
				}
				reset(conn.(*net.TCPConn))
			}
		})
	}
	a.wantPage(`return 'alive';`, `"alive"`)
	all.Wait()
	a.wantMetric("ephpm_ws_connections_active", 0)
	a.wantPage(`return [ephpm_ws_count(), ephpm_ws_count('lobby')];`, `[0,0]`)
}

// crowd opens hundreds of sockets from an address of this machine, and returns when
// all are open. connect is what the connect event of each does.
func (p *play) crowd(from string, connect func(i int) string) []*frames {
	p.t.Helper()
	sockets := make([]*frames, 600)
	if raceEnabled {
		sockets = sockets[:200]
	}
	const dialers = 8
	var all sync.WaitGroup
	for first := range dialers {
		all.Go(func() {
			for i := first; i < len(sockets); i += dialers {
				var err error
				if sockets[i], err = p.dialWireFrom(from, events(connect(i), "return null;")); err != nil {
					p.t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if p.t.Failed() {
		p.t.FailNow()
	}
	return sockets
}

// All sockets break at once, as when a network does: each has its disconnect event,
// pages go on meanwhile, and the memory comes back.
func TestCrowdThatIsDroppedAtOnce(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	sockets := a.crowd("127.0.0.8", func(int) string { return `ephpm_ws_subscribe('lobby');` })
	crowd := len(sockets)
	a.wantPage(`return [ephpm_ws_count('lobby'), ephpm_ws_broadcast('lobby', 'hello')];`, fmt.Sprintf("[%d,%d]", crowd, crowd))
	for _, f := range sockets {
		f.want(frameText, "hello")
	}
	for _, f := range sockets {
		reset(f.tcp())
	}
	a.wantPage(`return 'alive';`, `"alive"`)
	a.wantMetric("ephpm_ws_connections_active", 0)
	a.wantMetric(`ephpm_ws_events_total{event="disconnect"}`, float64(crowd))
	a.wantMetric(`ephpm_ws_closed_total{cause="gone"}`, float64(crowd))
	a.wantPage(`return [ephpm_ws_count(), ephpm_ws_count('lobby')];`, `[0,0]`)
}
