package e2e

import (
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// abusers is how many sockets abuse the server in each way.
var abusers = flag.Int("ws-abusers", 40, "sockets that abuse the server in each way")

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

// frontMemory is a size of the front in MiB: that which it has in memory, VmRSS:, or had at
// most, VmHWM:.
func (a *app) frontMemory(field string) int {
	a.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.PID()))
	if err != nil {
		a.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), field)
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

// Sockets of abusers, some of each kind, are closed or bounded; pages and a
// socket that behaves go on.
func TestAbuseCostsNobodyElse(t *testing.T) {
	t.Parallel()
	a := startPlay(t, steadyPool+"[server.websocket]\nmax_message_size = 65536\nmax_frame_size = 65536\nwrite_timeout_secs = 600\nping_interval_secs = 0\nidle_timeout_secs = 0\n")
	good := a.dialWire("/")
	quiet := a.footprint()
	pages := a.watchPages()
	each := *abusers
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []*frames
	abuse := func(name string, f func(f *frames) error) {
		for i := range each {
			all.Go(func() {
				s, err := a.dialWireFrom(fmt.Sprintf("127.0.0.%d", 9+i%8), "/")
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
		good.say(framePing, numeral(i))
		good.want(framePong, numeral(i))
		if got := good.run(`return 'here';`); got != `"here"` {
			t.Errorf("a socket that behaves got %q", got)
		}
	}
	all.Wait()
	// A message of the most that is allowed, and its copy for PHP, for each socket.
	pages.stop(quiet, 64+len(open)*2*65536>>20)
	for _, f := range open {
		reset(f.tcp())
	}
	good.say(frameClose, closePayload(1000, ""))
	good.wantEnd(1000, "")
	a.wantMetric("ephpm_ws_connections_active", 0)
	a.wantPage(`return ephpm_ws_count();`, `0`)
	a.wantFootprint(quiet)
}
