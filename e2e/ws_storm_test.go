package e2e

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	leavers   = flag.Int("ws-leavers", 800, "clients that leave half-way to a socket")
	crowdSize = flag.Int("ws-crowd", 600, "sockets that end at once; each costs this process and the server a descriptor")
)

// few is n, or less with the race detector, which is slow.
func few(n int) int {
	if raceEnabled {
		return min(n, 200)
	}
	return n
}

// steadyPool is a pool that neither grows nor shrinks, so that descriptors can be
// counted.
const steadyPool = "[php]\nworkers = 4\nmin_workers = 4\n"

// A footprint is what the front holds. The server needs metricsOn and steadyPool.
type footprint struct{ memory, files, goroutines int } // memory in MiB

func (a *app) footprint() footprint {
	a.t.Helper()
	a.waitWorkers(4)
	n, err := a.metric("go_goroutines")
	if err != nil {
		a.t.Fatal(err)
	}
	return footprint{a.frontMemory("VmRSS:"), a.openFiles(), int(n)}
}

// wantFootprint waits until the front holds no more descriptors and goroutines than
// before, but for some connections of those who ask.
func (a *app) wantFootprint(before footprint) {
	a.t.Helper()
	var now footprint
	err := eventually(func() error {
		if now = a.footprint(); now.files > before.files+16 || now.goroutines > before.goroutines+48 {
			return fmt.Errorf("it holds %+v", now)
		}
		return nil
	})
	a.t.Logf("the front held %+v before, holds %+v", before, now)
	if err != nil {
		a.t.Errorf("the front held %+v before: %v", before, err)
	}
}

// wantMemoryBack waits until the front has given back what a crowd needed.
func (a *app) wantMemoryBack(before footprint) {
	a.t.Helper()
	err := eventually(func() error {
		if now := a.frontMemory("VmRSS:"); now > before.memory+before.memory/5+8 {
			return fmt.Errorf("it has %d MiB", now)
		}
		return nil
	})
	if err != nil {
		a.t.Errorf("the front had %d MiB before: %v", before.memory, err)
	}
}

// A pageWatch is curl, which asks for one page after the other while others do their
// worst: this process, which may be they, must not be in its way.
type pageWatch struct {
	a    *play
	curl *exec.Cmd
	out  *os.File // an answer, and a line with its status and the seconds that it took
}

// watchPages begins. Every page must come.
func (p *play) watchPages() *pageWatch {
	p.t.Helper()
	out, err := os.Create(filepath.Join(p.t.TempDir(), "pages"))
	if err != nil {
		p.t.Fatal(err)
	}
	w := &pageWatch{a: p, out: out}
	w.curl = exec.Command("curl", "-sS", "--max-time", maxTime, "--data", `return 'alive';`,
		"--write-out", ` %{http_code} %{time_total}\n`, p.URL+"/page.php?[1-100000000]")
	w.curl.Stdout, w.curl.Stderr = out, out
	if err := w.curl.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(w.end)
	return w
}

func (w *pageWatch) end() {
	if w.curl.ProcessState == nil {
		_ = w.curl.Process.Kill()
		_ = w.curl.Wait() // killed
	}
	_ = w.out.Close() // curl wrote it
}

// stop ends the watch. The front must not have grown by more than so many MiB.
func (w *pageWatch) stop(before footprint, most int) {
	w.a.t.Helper()
	pages, slowest := 0, 0.0
	err := eventually(func() error {
		text, err := os.ReadFile(w.out.Name())
		if err == nil && bytes.Count(text, []byte("\n")) < 2 {
			err = errors.New("no page came")
		}
		return err
	})
	if err != nil {
		w.a.t.Error(err)
	}
	w.end()
	text, err := os.ReadFile(w.out.Name())
	if err != nil {
		w.a.t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, line := range lines[:len(lines)-1] { // the last one is not whole
		var status int
		var took float64
		if n, err := fmt.Sscanf(line, `"alive" %d %f`, &status, &took); n != 2 || status != 200 {
			w.a.t.Fatalf("page %d: %q, %v", pages, line, err)
		}
		pages++
		slowest = max(slowest, took)
	}
	peak := w.a.frontMemory("VmHWM:")
	w.a.t.Logf("%d pages came meanwhile, the slowest in %.3f s; the front had %d MiB at most, %d before", pages, slowest, peak, before.memory)
	if peak > before.memory+most && !raceEnabled {
		w.a.t.Errorf("the front had %d MiB before, and grew to %d, by more than %d", before.memory, peak, most)
	}
}

// halfWay are the places at which a client leaves on its way to a socket: how many
// bytes of its request it sends, and how many of the answer it reads.
var halfWay = []struct {
	name       string
	sent, read func(request string) int
}{
	{"behind the connection", func(string) int { return 0 }, nil},
	{"in the header", func(r string) int { return len(r) / 2 }, nil},
	{"before the end of the header", func(r string) int { return len(r) - 1 }, nil},
	{"while connect runs", func(r string) int { return len(r) }, nil},
	{"in the 101", func(r string) int { return len(r) }, func(string) int { return 20 }},
	{"right behind the 101", func(r string) int { return len(r) }, func(string) int { return len("HTTP/1.1 101 Switching Protocols\r\n\r\n") + 60 }},
}

// leave goes to a place of halfWay and ends the connection there, by a reset or in
// good order.
func (a *app) leave(source, request string, place int, rude bool) error {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: patience}
	conn, err := d.Dial("tcp", a.Addr)
	if err != nil {
		return err
	}
	at := halfWay[place]
	_, _ = conn.Write([]byte(request[:at.sent(request)]))
	if at.read != nil {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		_, _ = conn.Read(make([]byte, at.read(request))) // what it gets does not matter
	}
	if rude {
		reset(conn.(*net.TCPConn))
		return nil
	}
	return conn.Close()
}

// Clients that leave at every place on the way to a socket leave nothing behind, and
// no page waits for them.
func TestClientsThatLeaveHalfWayLeaveNothing(t *testing.T) {
	t.Parallel()
	a := startPlay(t, steadyPool)
	request := upgradeText(events(`ephpm_ws_subscribe('lobby'); ephpm_ws_send(str_repeat('x', 100000));`, "return null;"))
	quiet := a.footprint()
	pages := a.watchPages()
	n := few(*leavers)
	var next atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				place, source := i%len(halfWay), fmt.Sprintf("127.0.0.%d", 20+i%60)
				if err := a.leave(source, request, place, i/len(halfWay)%2 == 0); err != nil {
					t.Errorf("client %d, %s: %v", i, halfWay[place].name, err)
					return
				}
			}
		})
	}
	all.Wait()
	a.wantMetric("ephpm_ws_connections_active", 0)
	pages.stop(quiet, 96)
	a.wantPage(`return [ephpm_ws_count(), ephpm_ws_count('lobby')];`, `[0,0]`)
	for _, series := range []string{
		"ephpm_ws_channels", "ephpm_ws_subscriptions", "ephpm_ws_send_queue_frames", "ephpm_ws_messages_waiting",
		`ephpm_ws_events_waiting{event="connect"}`, `ephpm_ws_events_waiting{event="disconnect"}`, `ephpm_php_backlog{class="event"}`,
	} {
		a.wantMetric(series, 0)
	}
	a.wantFootprint(quiet)
}

// All sockets end at once, as when a network breaks or a page is closed everywhere:
// each has its disconnect event, pages go on meanwhile, and memory comes back.
func TestCrowdThatIsDroppedAtOnce(t *testing.T) {
	t.Parallel()
	n := few(*crowdSize)
	for name, end := range map[string]func(f *frames){
		"reset":       func(f *frames) { reset(f.tcp()) },
		"ended":       func(f *frames) { _ = f.Close() },
		"close frame": func(f *frames) { _, _ = f.Write([]byte(whole(frameClose, closePayload(1001, "")))) },
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			if *crowdSize <= 5000 {
				t.Parallel() // or there are not enough descriptors
			}
			a := startPlay(t, steadyPool+"[server.websocket]\nmax_connections = 0\n")
			quiet := a.footprint()
			sockets := a.crowd(n, func(int) string { return `ephpm_ws_subscribe('lobby');` })
			a.wantPage(`return [ephpm_ws_count('lobby'), ephpm_ws_broadcast('lobby', 'hello')];`, fmt.Sprintf("[%d,%d]", n, n))
			for _, f := range sockets {
				f.want(frameText, "hello")
			}
			pages := a.watchPages()
			for _, f := range sockets {
				end(f)
			}
			a.wantMetric("ephpm_ws_connections_active", 0)
			a.wantMetric(`ephpm_ws_events_total{event="disconnect"}`, float64(n))
			cause := "gone"
			if name == "close frame" {
				cause = "client"
			}
			a.wantMetric(`ephpm_ws_closed_total{cause="`+cause+`"}`, float64(n))
			a.wantMetric(`ephpm_ws_events_waiting{event="disconnect"}`, 0)
			a.wantMetric(`ephpm_php_backlog{class="event"}`, 0)
			pages.stop(quiet, 64+n*16>>10)
			a.wantPage(`return [ephpm_ws_count(), ephpm_ws_count('lobby')];`, `[0,0]`)
			for _, f := range sockets {
				_ = f.Close() // may be closed already
			}
			a.wantFootprint(quiet)
			if n > 2000 { // of a few the front keeps the memory for a while
				a.wantMemoryBack(quiet)
			}
		})
	}
}

// crowd opens so many sockets, and returns when all are open. connect is what the
// connect event of each does.
func (p *play) crowd(n int, connect func(i int) string) []*frames {
	p.t.Helper()
	sockets := make([]*frames, n)
	const dialers = 16
	var all sync.WaitGroup
	for first := range dialers {
		source := fmt.Sprintf("127.0.0.%d", 100+first)
		all.Go(func() {
			for i := first; i < n; i += dialers {
				var err error
				if sockets[i], err = p.dialWireFrom(source, events(connect(i), "return null;")); err != nil {
					p.t.Errorf("socket %d: %v", i, err)
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
