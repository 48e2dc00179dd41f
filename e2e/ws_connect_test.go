package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestConnectAccepts(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	f := a.dialWire(events(`
		setcookie('a', '1'); setcookie('b', '2'); header('X-Own: yes'); http_response_code(201);
		header('Content-Type: text/x-own'); header('Location: /elsewhere');
		echo 'a body'; flush(); echo ' more';
		ephpm_ws_send('one'); ephpm_ws_subscribe('lobby'); ephpm_ws_broadcast('lobby', 'two'); ephpm_ws_send("\0\xff", true);`, ""))
	h := f.resp.Header
	if got := h.Values("Set-Cookie"); len(got) != 2 || got[0] != "a=1" || got[1] != "b=2" || h.Get("X-Own") != "yes" {
		t.Errorf("headers of the script on the 101: %v", h)
	}
	for _, name := range []string{"Content-Type", "Content-Length", "Transfer-Encoding", "Location"} {
		if h.Get(name) != "" {
			t.Errorf("the 101 has %s: %s", name, h.Get(name))
		}
	}
	f.want(frameText, "one")
	f.want(frameText, "two")
	f.want(frameBinary, "\x00\xff")
	if got := f.run(`return ephpm_ws_count('lobby');`); got != "1" {
		t.Errorf("%s members, want 1", got)
	}
}

func TestEvery2xxAccepts(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	for _, status := range []int{200, 201, 204, 206, 299} {
		a.dialWire(events(fmt.Sprintf(`http_response_code(%d);`, status), ""))
	}
}

func TestConnectRefusesVerbatim(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	refused := 0
	for _, c := range []struct {
		connect, status, header, body string
	}{
		{`http_response_code(401); header('WWW-Authenticate: Basic realm="x"'); echo "log in first\n";`, "401", `WWW-Authenticate: Basic realm="x"`, "log in first\n"},
		{`header('Location: /login', true, 302); echo 'go';`, "302", "Location: /login", "go"},
		{`http_response_code(404); header('Content-Type: application/json'); setcookie('c', '3'); echo '{}';`, "404", "Set-Cookie: c=3", "{}"},
		{`http_response_code(503); header('Retry-After: 7');`, "503", "Retry-After: 7", ""},
		{`http_response_code(403); echo 'one'; flush(); echo ' two'; exit;`, "403", "Content-type", "one two"},
		{`trigger_error('broken', E_USER_ERROR);`, "500", "Content-", ""},
		{`throw new Exception('broken');`, "500", "Content-", ""},
	} {
		refused++
		head, body := a.curlUpgrade(events(`ephpm_ws_subscribe('lobby'); ephpm_ws_send('never seen');`+c.connect, ""))
		if !strings.HasPrefix(head, "HTTP/1.1 "+c.status+" ") || body != c.body ||
			!strings.Contains(strings.ToLower(head), strings.ToLower(c.header)) {
			t.Errorf("%s: curl -i printed\n%s\n\n%s", c.connect, head, body)
		}
		if strings.Contains(head, "Upgrade") || strings.Contains(head, "Sec-WebSocket") {
			t.Errorf("%s: the refusal speaks of an upgrade:\n%s", c.connect, head)
		}
	}
	a.waitLog(`level=INFO msg="upgrade refused" site=default addr=127.0.0.1 status=401 reason="refused by connect"`)
	a.wantMetric("ephpm_ws_connect_rejected_total", float64(refused))
	a.wantMetric("ephpm_ws_connections_total", float64(refused)) // admitted, then refused
	a.wantMetric("ephpm_ws_connections_active", 0)
	a.wantMetric(`ephpm_ws_events_total{event="disconnect"}`, 0)
	a.wantPage(`return [ephpm_ws_count(), ephpm_ws_count('lobby')];`, `[0,0]`)
}

// While connect runs, others reach the connection.
func TestConnectionIsThereDuringConnect(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	g, w := newGate(t), a.connect()
	w.send(upgradeText(events(`ephpm_ws_subscribe('lobby'); ephpm_ws_send('own'); trail($id); file_get_contents('`+g.path+`'); ephpm_ws_send('last');`, "")))
	id := fromJSON[string](t, a.trail(1)[0])
	a.wantPage(`return [ephpm_ws_connection_send('`+id+`', 'pushed'), ephpm_ws_broadcast('lobby', 'to all'), ephpm_ws_count()];`, `[true,1,1]`)
	a.wantMetric("ephpm_ws_connections_active", 1)
	g.wait()
	g.open()
	f := w.accepted()
	for _, want := range []string{"own", "pushed", "to all", "last"} {
		f.want(frameText, want)
	}
}

// The client cannot read before the 101, so no more than the queue can wait.
func TestConnectQueuesAtMostTheQueue(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	f := a.dialWire(events(`for ($i = 0; $i < 64; $i++) { if (!ephpm_ws_send("$i")) trail($i); }`, ""))
	for i := range 64 {
		f.want(frameText, strconv.Itoa(i))
	}
	f.say(frameClose, closePayload(1000, ""))
	f.wantEnd(1000, "")
	a.wantTrail(`["1000","","client"]`)

	over := a.dialWire(events(`for ($i = 0; $i < 66; $i++) { if (!ephpm_ws_send("$i")) trail($i); }`, ""))
	over.want(frameClose, closePayload(1013, ""))
	over.say(frameClose, closePayload(1013, ""))
	a.wantTrail(`["1000","","client"]`, "64", "65", `["1013","","slow"]`)
	a.wantMetric("ephpm_ws_send_queue_overflow_total", 1)
}

func TestConnectOverTheTimeLimitIs504(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.timeouts]\nrequest = \"1s\"\nrequest_grace = 0\n")
	hung := 0.0
	for there := error(os.ErrNotExist); there != nil && hung < 20; hung++ { // on a busy machine the time may be over before the script is there
		head, body := a.curlUpgrade(events(`trail(getmypid()); sleep(600);`, ""))
		if !strings.HasPrefix(head, "HTTP/1.1 504 ") || body != "504 Gateway Timeout\n" {
			t.Errorf("connect that hangs: %s %q, want 504", firstOf(head, "\r\n"), body)
		}
		_, there = os.Stat(a.notes)
	}
	a.waitLog(`level=INFO msg="upgrade refused" site=default addr=127.0.0.1 status=504 reason="Gateway Timeout"`)
	a.wantMetric("ephpm_ws_connect_rejected_total", hung)
	a.wantMetric(`ephpm_ws_event_failures_total{event="connect",reason="timeout"}`, hung)
	a.wantMetric(`ephpm_http_timeouts_total{stage="request"}`, hung)
	a.wantMetric("ephpm_ws_connections_active", 0)
	a.wantGone(fromJSON[int](t, a.trail(1)[0]))
}

func TestConnectWhoseWorkerDiesIs502(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	head, body := a.curlUpgrade(events(`posix_kill(getmypid(), SIGKILL);`, ""))
	if !strings.HasPrefix(head, "HTTP/1.1 502 ") || body != "502 Bad Gateway\n" {
		t.Errorf("connect that dies: %s %q, want 502", firstOf(head, "\r\n"), body)
	}
	a.waitLog(`level=INFO msg="upgrade refused" site=default addr=127.0.0.1 status=502 reason="Bad Gateway" err=".*signal 9`)
	a.wantMetric("ephpm_ws_connect_rejected_total", 1)
	a.wantMetric(`ephpm_ws_event_failures_total{event="connect",reason="crash"}`, 1)
	a.wantMetric("ephpm_ws_connections_active", 0)
}

func TestConnectWithoutAWorkerIs503(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[php]\nworkers = 1\nworker_backlog = 0\nworker_backlog_wait = \"100ms\"\n")
	s, g, _ := a.holdSocket(`file_get_contents('%s'); return 'through';`)
	before, err := a.metric(`ephpm_ws_event_failures_total{event="connect",reason="busy"}`)
	if err != nil {
		t.Fatal(err)
	}
	head, body := a.curlUpgrade("/")
	if !strings.HasPrefix(head, "HTTP/1.1 503 ") || !strings.Contains(head, "\r\nRetry-After: 1\r\n") || body != "503 Service Unavailable\n" {
		t.Errorf("connect without a worker: %s %q, want 503 with Retry-After", head, body)
	}
	a.waitLog(`level=INFO msg="upgrade refused" site=default addr=127.0.0.1 status=503 reason="Service Unavailable"`)
	a.wantMetric(`ephpm_ws_event_failures_total{event="connect",reason="busy"}`, before+1)
	g.open()
	s.want(frameText, `"through"`)
	a.joinUnless(503, "", "")
}
