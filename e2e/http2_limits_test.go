package e2e

import (
	"testing"

	h2 "golang.org/x/net/http2"
)

// A connection has no more requests at a time than it is told.
func TestStreamsOfHTTP2AreLimited(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: "[server]\nh2c = true\n[server.http2]\nmax_streams = 2\n[php]\nworkers = 4\n", Files: holdFiles})
	w := a.frames(nil)
	var gates []*gate
	var streams []uint32
	for range 2 {
		g := newGate(t)
		gates, streams = append(gates, g), append(streams, w.ask("/hold.php?gate="+g.path, ":authority", "x"))
		g.wait()
	}
	if got := w.answer(w.ask("/", ":authority", "x")); got.reset == nil || *got.reset != h2.ErrCodeRefusedStream && *got.reset != h2.ErrCodeProtocol {
		t.Errorf("one more: %v, want it to be reset", got)
	}
	gates[0].open()
	if got := w.answer(streams[0]); got.status != "200" {
		t.Errorf("the first: %v", got)
	}
	if got := w.answer(w.ask("/?i=7", ":authority", "x")); got.body != "7" {
		t.Errorf("when one has ended: %v, want the page", got)
	}
	gates[1].open()
	if got := w.answer(streams[1]); got.status != "200" {
		t.Errorf("the second: %v", got)
	}
}
