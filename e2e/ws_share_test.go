package e2e

import (
	"fmt"
	"testing"
)

// Events wait for a worker in the order in which they came.
func TestEventsWaitInOrder(t *testing.T) {
	t.Parallel()
	a := startPlay(t, waitLong+"workers = 1\n")
	const n = 30
	var sockets []*frames
	for range n {
		sockets = append(sockets, a.dialWire("/"))
	}
	g := newGate(t)
	a.dialWire("/").say(frameText, `file_get_contents('`+g.path+`');`)
	g.wait()
	var want []string
	for i, f := range sockets {
		f.say(frameText, fmt.Sprintf(`trail(%d);`, i))
		a.eventsGiven(2 + i) // it waits now
		want = append(want, fmt.Sprint(i))
	}
	g.open()
	a.wantTrail(want...)
}

// eventsGiven waits until so many message events were given to PHP. It does not
// ask by a page, which would need a worker.
func (p *play) eventsGiven(n int) {
	p.t.Helper()
	p.waitMetric(`ephpm_ws_events_total{event="message"}`, float64(n))
}

// What cannot run in time closes its socket and is counted, however long the
// backlog is.
func TestMessageThatCannotRunInTime(t *testing.T) {
	t.Parallel()
	for _, backlog := range []int{0, 1, 50} {
		t.Run(fmt.Sprint("backlog ", backlog), func(t *testing.T) {
			t.Parallel()
			a := startPlay(t, fmt.Sprintf("[php]\nworkers = 1\nworker_backlog = %d\nworker_backlog_wait = \"200ms\"\n", backlog))
			var waiting []*frames
			for range 5 {
				waiting = append(waiting, a.dialWireUnless(503, "/"))
			}
			busy, g, refused := a.holdSocket(`file_get_contents('%s'); return 'not disturbed';`)
			for _, f := range waiting {
				f.say(frameText, `trail('ran');`)
			}
			for _, f := range waiting {
				f.wantClose(1013, "")
			}
			a.waitMetric(`ephpm_ws_event_failures_total{event="message",reason="busy"}`, float64(5+refused))
			a.waitMetric(`ephpm_ws_close_codes_total{code="1013"}`, float64(5+refused))
			a.waitLog(`level=WARN msg="event failed" site=default event=message connection=[0-9a-f]{32} reason=busy`)
			g.open()
			busy.want(frameText, `"not disturbed"`)
		})
	}
}

// A disconnect event waits as long as it takes.
func TestDisconnectWaitsForAWorker(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[php]\nworkers = 1\nworker_backlog = 1\nworker_backlog_wait = \"100ms\"\n")
	var leave []*frames
	for range 5 {
		leave = append(leave, a.joinUnless(503, "", ""))
	}
	late := a.joinUnless(503, "", "return 'late';")
	_, g, refused := a.holdSocket(`file_get_contents('%s');`)
	for _, f := range leave {
		_ = f.Close()
	}
	a.waitMetric("ephpm_ws_connections_active", 2)
	late.say(frameText, `return 0;`) // by its end the wait limit has passed
	late.wantClose(1013, "")
	g.open()
	gone := 0
	for _, note := range a.trail(6 + refused) {
		if note == `["1006","","gone"]` {
			gone++
		}
	}
	if gone != 5 {
		t.Errorf("%d disconnect events ran, want 5", gone)
	}
}

// Pages that hold every worker do not keep sockets from theirs, and the other
// way round.
func TestPagesAndSocketsHaveTheirShares(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[php]\nworkers = 2\n")
	s := a.join("", "")
	var pages []*late
	var gates []*gate
	for range 2 {
		g := newGate(t)
		pages = append(pages, a.later(a.request("POST", "/page.php", `file_get_contents('`+g.path+`'); return 'held';`)))
		g.wait()
		gates = append(gates, g)
	}
	waiting := a.later(a.request("POST", "/page.php", `return 'waited';`))
	a.waitMetric(`ephpm_php_backlog{class="page"}`, 1)
	s.wantRun(`return 'handled';`, `"handled"`)
	a.join("", "").close()
	for _, g := range gates {
		g.open()
	}
	for _, page := range append(pages, waiting) {
		page.wait()
	}

	gates = nil
	for range 2 {
		g, f := newGate(t), a.dialWire("/")
		f.say(frameText, `file_get_contents('`+g.path+`');`)
		g.wait()
		gates = append(gates, g)
	}
	a.wantPage(`return 'served';`, `"served"`)
	for _, g := range gates {
		g.open()
	}
}
