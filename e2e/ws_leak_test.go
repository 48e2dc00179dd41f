package e2e

import (
	"fmt"
	"net"
	"net/http"
	"testing"
)

// leakRounds opens a hundred sockets that are never established, ten at a time,
// with room for ten, and wants all of their room back.
func leakRounds(t *testing.T, a *play, round func()) {
	t.Helper()
	for range 10 {
		round()
		a.waitMetric("ephpm_ws_connections_active", 0)
	}
	a.wantMetric("ephpm_ws_connections_total", 100)
	a.wantMetric(`ephpm_ws_connections_rejected_total{reason="server_full"}`, 0)
	a.phpInTime(`return [ephpm_ws_count(), ephpm_ws_count('lobby')];`, `[0,0]`)
	for range 10 {
		a.joinUnless(504, "", "")
	}
	a.wantMetric("ephpm_ws_connections_active", 10)
}

const roomForTen = "[php]\nworkers = 12\n[server.websocket]\nmax_connections = 10\n"

func TestClientsThatLeaveDuringConnectLeakNothing(t *testing.T) {
	t.Parallel()
	a := startPlay(t, roomForTen)
	leakRounds(t, a, func() {
		var conns []net.Conn
		var gates []*gate
		for range 10 {
			g, w := newGate(t), a.connect()
			w.send(upgradeText(events(`ephpm_ws_subscribe('lobby'); ephpm_ws_send('x'); file_get_contents('`+g.path+`'); echo 'x'; flush();`, "")))
			conns, gates = append(conns, w), append(gates, g)
		}
		for _, g := range gates {
			g.wait()
		}
		for _, c := range conns {
			_ = c.Close() // with connect in the middle of it
		}
		for _, g := range gates {
			g.open()
		}
	})
}

func TestConnectsThatTimeOutLeakNothing(t *testing.T) {
	t.Parallel()
	a := startPlay(t, roomForTen+"[server.timeouts]\nrequest = \"100ms\"\n")
	leakRounds(t, a, func() {
		var wires []*wire
		for range 10 {
			w := a.connect()
			w.send(upgradeText(events(`ephpm_ws_subscribe('lobby'); ephpm_ws_send('x'); sleep(600);`, "")))
			wires = append(wires, w)
		}
		for _, w := range wires {
			if resp, body := w.answer(); resp.StatusCode != http.StatusGatewayTimeout {
				t.Errorf("connect that hangs: %s %s, want 504", resp.Status, body)
			}
		}
	})
	a.wantMetric(`ephpm_ws_events_total{event="disconnect"}`, 0)
}

func TestRefusedConnectsLeakNothing(t *testing.T) {
	t.Parallel()
	a := startPlay(t, roomForTen)
	n := 0
	leakRounds(t, a, func() {
		for _, end := range []string{
			`http_response_code(401);`, `trigger_error('x', E_USER_ERROR);`, `posix_kill(getmypid(), SIGKILL);`, `exit(http_response_code(500));`, `throw new Error('x');`,
			`http_response_code(302); flush();`, `ephpm_ws_close(4000); http_response_code(403);`, `http_response_code(403); posix_kill(getmypid(), SIGKILL);`,
			`http_response_code(403); echo 'x'; register_shutdown_function(fn() => trigger_error('x', E_USER_ERROR));`, `http_response_code(100); http_response_code(418);`,
		} {
			resp, _ := a.exchange(upgradeText(events(`ephpm_ws_subscribe('lobby'); ephpm_ws_send('x');`+end, "")))
			if resp.StatusCode < 300 {
				t.Errorf("%s: %s, want a refusal", end, resp.Status)
			}
			n++
		}
	})
	a.wantMetric("ephpm_ws_connect_rejected_total", float64(n))
	a.wantMetric(`ephpm_ws_events_total{event="disconnect"}`, 0)
}

// A hundred sockets that end in every way give all back.
func TestClosedSocketsLeakNothing(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nmax_connections = 10\nmax_message_size = 1000\n")
	for i := range 10 {
		var sockets []*frames
		for range 10 {
			sockets = append(sockets, a.dialWire(events(`ephpm_ws_subscribe('lobby');`, "return null;")))
		}
		for j, f := range sockets {
			switch j % 5 {
			case 0:
				f.say(frameClose, closePayload(1000, ""))
			case 1:
				f.say(frameText, `ephpm_ws_close();`)
				f.skipToClose()
			case 2:
				f.send("\x81\x01x")
				f.skipToClose()
			case 3:
				f.say(frameBinary, repeat(1001))
				f.skipToClose()
			}
			_ = f.Close()
		}
		a.waitMetric("ephpm_ws_connections_active", 0)
		a.trail(10 * (i + 1))
	}
	a.wantPage(`return [ephpm_ws_count(), ephpm_ws_count('lobby')];`, `[0,0]`)
	a.wantMetric(fmt.Sprintf("ephpm_ws_connections_rejected_total{reason=%q}", "server_full"), 0)
}
