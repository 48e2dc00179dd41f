package e2e

import (
	"errors"
	"io"
	"syscall"
	"testing"
)

// On a stop every connection of HTTP/2 is told, what runs is answered, and what is
// idle is closed.
func TestHTTP2StopsGracefully(t *testing.T) {
	t.Parallel()
	a, ca := startTLS(t, appOptions{
		Listen: reservedAddr(t),
		TOML:   "[server.http3]\nenabled = false\n",
		Files:  map[string]string{"hold.php": `<?php file_get_contents($_GET['gate']); echo "held";`, "index.php": `<?php echo "fine";`},
	})
	idle, busy, g := a.frames(ca), a.frames(ca), newGate(t)
	if answer := idle.answer(idle.ask("/", ":authority", "x")); answer.body != "fine" {
		t.Fatalf("before: %v", answer)
	}
	stream := busy.ask("/hold.php?gate="+g.path, ":authority", "x")
	g.wait()
	a.signal(syscall.SIGTERM)
	a.waitClosed()
	if answer := idle.answer(0); answer.goAway == nil {
		t.Errorf("the idle connection: %v, want GOAWAY", answer)
	}
	if answer := busy.answer(stream); answer.goAway == nil {
		t.Errorf("the busy connection: %v, want GOAWAY first", answer)
	}
	g.open()
	for {
		answer := busy.answer(stream)
		if answer.goAway != nil {
			continue // net/http says it twice: no more, then the last
		}
		if answer.body != "held" || !answer.ended {
			t.Errorf("the request in flight: %v", answer)
		}
		break
	}
	for name, w := range map[string]*h2wire{"idle": idle, "busy": busy} {
		var err error
		for err == nil {
			_, err = w.ReadFrame()
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) { // by what it sent when the server had closed
			t.Errorf("the %s connection ended with %v, want it closed", name, err)
		}
	}
	if status := a.waitExit(); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
}
