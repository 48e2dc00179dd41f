package e2e

import (
	"fmt"
	"net/http"
	"testing"
)

// Event streams that come and go, in all ways, leave nothing running.
func TestEventStreamsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn+"max_connections = 40\npoll_idle_secs = \"100ms\"\n")
	round := func() {
		g := newGate(t)
		for range 5 {
			p.listen(`ephpm_ws_subscribe('lobby');`).leave()
			p.listen("").ask("DELETE", "")
			p.listen(`ephpm_ws_close(4000);`).wantEnd(4000, "", false)
			p.poll(`ephpm_ws_subscribe('lobby'); ephpm_ws_send('x');`)
		}
		w := p.connect() // leaves in the middle of connect
		w.send("GET " + events(`ephpm_ws_subscribe('lobby'); file_get_contents('`+g.path+`');`, "") + " HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n")
		g.wait()
		_ = w.Close()
		g.open()
		for _, transport := range []string{"sse", "poll"} {
			p.waitMetric(fmt.Sprintf("ephpm_ws_streams_active{transport=%q}", transport), 0)
		}
		http.DefaultClient.CloseIdleConnections()
	}
	round()
	before, err := p.metric("go_goroutines")
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		round()
	}
	p.wantPage(`return [ephpm_ws_count(), ephpm_ws_count('lobby')];`, "[0,0]")
	err = eventually(func() error {
		now, err := p.metric("go_goroutines")
		if err == nil && now > before+10 {
			err = fmt.Errorf("%v goroutines, %v after the first round", now, before)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	p.wantMetric(`ephpm_ws_streams_total{transport="sse"}`, 80)
}
