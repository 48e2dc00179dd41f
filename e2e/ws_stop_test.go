package e2e

import (
	"strings"
	"sync"
	"syscall"
	"testing"
)

// A graceful stop tells every socket, and its script.
func TestStopTellsEverySocket(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	const n = 200
	var sockets []*socket
	for range n {
		sockets = append(sockets, a.join(`ephpm_ws_subscribe('lobby');`, ""))
	}
	var wg sync.WaitGroup
	codes := make([]int, n)
	for i, s := range sockets {
		wg.Go(func() { codes[i], _, _ = s.recvClose() })
	}
	if status := a.Stop(); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	wg.Wait()
	for i, code := range codes {
		if code != 1001 {
			t.Errorf("socket %d was closed with %d, want 1001", i, code)
		}
	}
	notes := a.trail(n)
	if len(notes) != n {
		t.Errorf("%d disconnect events, want %d", len(notes), n)
	}
	for _, note := range notes {
		if note != `["1001","","shutdown"]` {
			t.Errorf("disconnect was told %s", note)
		}
	}
}

// A handler that runs may end, and its frames arrive before the 1001.
func TestStopLetsHandlersEnd(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	f, g := a.dialWire("/"), newGate(t)
	f.say(frameText, `ephpm_ws_send('begun'); file_get_contents('`+g.path+`'); trail('ended');`)
	f.want(frameText, "begun")
	g.wait()
	if err := syscall.Kill(a.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	f.want(frameClose, closePayload(1001, ""))
	f.say(frameClose, closePayload(1001, ""))
	g.open()
	<-a.exited // or the test's own limit
	if status := a.Stop(); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	a.wantTrail(`"ended"`, `["1001","","shutdown"]`)
}

// Handlers that do not end are killed when the time is over.
func TestStopKillsHandlersThatHang(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.timeouts]\nshutdown = \"300ms\"\n")
	f := a.dialWire("/")
	f.say(frameText, `trail(getmypid()); sleep(600);`)
	pid := fromJSON[int](t, a.trail(1)[0])
	if status := a.Stop(); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	a.wantGone(pid)
	if !strings.Contains(a.Log(), "cut the sockets that did not end in time") {
		t.Error("the log does not say that sockets were cut")
	}
}

// A client that does not answer the 1001 does not hold up the stop for long.
func TestStopDoesNotNeedTheClients(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nwrite_timeout_secs = \"300ms\"\n")
	deaf := a.dialDeaf("/")
	deaf.say(frameText, `for ($i = 0; $i < 5; $i++) ephpm_ws_send(str_repeat('x', 1000000)); trail('full');`)
	silent := a.dialWire("/")
	a.trail(1)
	if status := a.Stop(); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	silent.wantEnd(1001, "")
	if notes := a.trail(3); len(notes) != 3 {
		t.Errorf("notes %q, want two disconnect events", notes)
	}
}
