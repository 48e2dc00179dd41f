package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"ephpm/phpbridge"
)

// patience limits every wait for something that should happen at once. It is
// generous because the machine may be busy; a passing test never uses it up.
const patience = time.Minute

// start serves on a free port until the returned function is called, which
// returns what serve returned.
func start(t *testing.T, s *Server) (addr net.Addr, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx, []endpoint{{Listener: l}}) }()
	return l.Addr(), func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
			t.Fatal("the server does not stop")
			return nil
		}
	}
}

func TestStopFinishesWhatRunsAndClosesWhatIsIdle(t *testing.T) {
	running, finish := make(chan bool), make(chan bool)
	pool := &fakePool{run: func(_ context.Context, w http.ResponseWriter, _ *phpbridge.Request) error {
		running <- true
		<-finish
		_, err := io.WriteString(w, "done")
		return err
	}}
	addr, stop := start(t, newTest(t, files(t, "index.php", "a.txt"), pool))

	silent := dial(t, addr) // a browser's connection in advance
	idle := dial(t, addr)
	fmt.Fprint(idle, "GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n")
	idleIn := bufio.NewReader(idle)
	r, err := http.ReadResponse(idleIn, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	busy := dial(t, addr)
	fmt.Fprint(busy, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-running

	stopped := make(chan error)
	go func() { stopped <- stop() }()
	for name, in := range map[string]io.Reader{"a silent": silent, "an idle": idleIn} {
		if _, err := in.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s connection was not closed", name)
		}
	}
	if c, err := net.Dial("tcp", addr.String()); err == nil {
		_ = c.Close()
		t.Error("the listener is still open while a request runs")
	}
	close(finish)
	if r, err := http.ReadResponse(bufio.NewReader(busy), nil); err != nil {
		t.Error("the request in flight was lost:", err)
	} else if b, _ := io.ReadAll(r.Body); string(b) != "done" {
		t.Errorf("the request in flight got %q", b)
	}
	if err := <-stopped; err != nil || !pool.closed {
		t.Errorf("stopped with %v, pool closed: %v", err, pool.closed)
	}
}

func TestStopCutsWhatTakesTooLong(t *testing.T) {
	running := make(chan bool)
	pool := &fakePool{run: func(ctx context.Context, _ http.ResponseWriter, _ *phpbridge.Request) error {
		running <- true
		<-ctx.Done()
		return ctx.Err()
	}}
	addr, stop := start(t, newTest(t, files(t, "index.php"), pool, func(c *Config) {
		c.Server.Timeouts.Shutdown = Duration(50 * time.Millisecond)
	}))
	c := dial(t, addr)
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-running
	if err := stop(); err != nil {
		t.Errorf("stopped with %v, want nil", err)
	}
	if b, err := io.ReadAll(c); len(b) != 0 {
		t.Errorf("read %q, %v; want a closed connection", b, err)
	}
}

func TestStopWaitsForTheSockets(t *testing.T) {
	running, killed := make(chan bool), make(chan bool)
	var ended atomic.Bool
	pool := &fakePool{
		run: func(_ context.Context, _ http.ResponseWriter, r *phpbridge.Request) error {
			for name, value := range r.Vars.All() {
				if name == "WS_EVENT" && value == eventMessage {
					running <- true
					<-killed
					time.Sleep(20 * time.Millisecond) // a slow end
					ended.Store(true)
				}
			}
			return nil
		},
		close: func() { close(killed) },
	}
	addr, stop := start(t, newTest(t, files(t, "websocket.php"), pool, func(c *Config) {
		c.Server.WebSocket.Enabled = true
		c.Server.Timeouts.Shutdown = Duration(time.Millisecond)
	}))
	c, _, err := websocket.Dial(t.Context(), "http://"+addr.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.CloseNow() }() // cut already
	write(t, c, "work")
	<-running
	if err := stop(); err != nil {
		t.Error(err)
	}
	if !ended.Load() {
		t.Error("the server ended before the script of a socket")
	}
}

func TestEventsFitThePool(t *testing.T) {
	for _, c := range []struct{ backlog, workers, want int }{{1000, 16, 1000}, {3, 16, 16}, {0, 1, 1}} {
		s := newTest(t, files(t), &fakePool{}, func(config *Config) {
			config.Server.WebSocket.Enabled = true
			config.PHP.Workers, config.PHP.WorkerBacklog = Workers(c.workers), c.backlog
			config.PHP.WorkerBacklogWait = Duration(7 * time.Second)
		})
		if o := s.sites.other.sockets; o.maxEvents != c.want || cap(o.turns) != c.want || o.eventWait != 7*time.Second {
			t.Errorf("backlog %d, %d workers: %d events at a time that wait %v, want %d and 7s",
				c.backlog, c.workers, o.maxEvents, o.eventWait, c.want)
		}
	}
}

// The port is tried before PHP is started, which takes longer and may fail too.
func TestOccupiedPortIsOneClearLine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := DefaultConfig()
	c.Server.Listen, c.Server.DocumentRoot = Addresses{l.Addr().String()}, files(t)
	var log syncBuffer
	_, err = New(c, slog.New(slog.NewTextHandler(&log, nil)))
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) || !strings.Contains(err.Error(), "listen") || strings.Contains(err.Error(), "\n") {
		t.Errorf("New on an occupied port: %v", err)
	}
	if log.String() != "" {
		t.Errorf("something was started:\n%s", log.String())
	}
}
