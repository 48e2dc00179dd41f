package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// wantRefusal asks for a socket, and wants a status and the one line in the log that
// says why; more is a part of the line. It returns header and body.
func (a *app) wantRefusal(target, status, more string, args ...string) (head, body string) {
	a.t.Helper()
	head, body = a.curlUpgrade(target, args...)
	if !strings.HasPrefix(head, "HTTP/1.1 "+status+" ") || strings.Contains(head, "Sec-WebSocket") {
		a.t.Errorf("upgrade of %s %q: %s, want %s", target, args, firstOf(head, "\r\n"), status)
	}
	a.waitLog(`level=INFO msg="upgrade refused" site=\S+ addr=127\.0\.0\.\d+ status=` + status + ` ` + more)
	return head, body
}

// What is refused of any request is refused of an upgrade, before PHP runs, and is
// logged and counted as an upgrade.
func TestUpgradesRefusedAsRequests(t *testing.T) {
	t.Parallel()
	s := startSites(t, `
		[server]
		sites_dir = "$dir/sites"
		sites_state_dir = "$dir/state"
		request.trusted_hosts = ["a.example", "b.example"]
		[server.security]
		blocked_paths = ["/private/*"]
		[server.metrics]
		enabled = true
	`, map[string]string{"a.example/websocket.php": `<?php file_put_contents(__DIR__ . '/ran', 'x');`})
	a := s.app
	host := func(name string) []string { return []string{"-H", "Host: " + name} }
	for i, c := range []struct {
		target, host, status, more, body string
	}{
		{"/..%2findex.php", "a.example", "400", `reason="Bad Request" host=a.example path=/..%2findex.php`, "400 Bad Request\n"},
		{"/a/../b?secret=1", "a.example", "400", `reason="Bad Request" host=a.example path=/a/../b\n`, "400 Bad Request\n"},
		{"/", "a..example", "400", `reason="Bad Request" host=a..example path=/`, "400 Bad Request\n"},
		{"/", "a.example:http", "400", `reason="Bad Request" host=a.example:http path=/`, "400 Bad Request\n"},
		{"/", "c.example", "421", `reason="Misdirected Request" host=c.example path=/`, "421 Misdirected Request\n"},
		{"/", "b.example", "404", `reason="Not Found" host=b.example path=/`, "404 Not Found\n"},
		{"/.git/config", "a.example", "403", `reason=Forbidden host=a.example path=/.git/config`, "403 Forbidden\n"},
		{"/private/x", "a.example", "403", `reason=Forbidden host=a.example path=/private/x`, "403 Forbidden\n"},
	} {
		if _, body := a.wantRefusal(c.target, c.status, strings.ReplaceAll(c.more, "/..", `/\.\.`), host(c.host)...); body != c.body {
			t.Errorf("upgrade of %s at %s: %q, want %q", c.target, c.host, body, c.body)
		}
		a.waitMetric(`ephpm_ws_handshake_rejected_total{reason="request"}`, float64(i+1))
	}
	a.waitMetric("ephpm_ws_connections_total", 0)
	a.waitMetric(`ephpm_ws_events_total{event="connect"}`, 0)
	if lines := regexp.MustCompile(`msg="upgrade refused"`).FindAllString(a.Log(), -1); len(lines) != 8 {
		t.Errorf("%d lines for 8 refusals", len(lines))
	}
	s.want("c.example", "/", 421, "421 Misdirected Request\n") // a page is no upgrade
	a.waitMetric(`ephpm_ws_handshake_rejected_total{reason="request"}`, 8)
}

// A client over its limits gets no socket either.
func TestUpgradesOverTheLimitsOfTheirClient(t *testing.T) {
	t.Parallel()
	from := []string{"--interface", "127.0.0.2"}
	rate := startPlay(t, "[server.limits]\nper_ip_rate = 0.001\nper_ip_burst = 1\n[server.security]\ntrusted_proxies = [\"127.0.0.1\"]\n")
	rate.wantRefusal(events(`http_response_code(403);`, ""), "403", `reason="refused by connect"`, from...)
	if head, body := rate.wantRefusal("/", "429", `reason="Too Many Requests"`, from...); !strings.Contains(head, "\r\nRetry-After: ") || body != "429 Too Many Requests\n" {
		t.Errorf("over the rate of its client: %s\n%q, want Retry-After", head, body)
	}
	rate.wantMetric(`ephpm_ws_handshake_rejected_total{reason="rate"}`, 1)
	rate.wantMetric("ephpm_rate_limited_total", 1)
	rate.wantMetric("ephpm_ws_connections_total", 1)

	full := startPlay(t, "[server.limits]\nper_ip_max_connections = 1\n")
	if _, err := full.dialFrom("127.0.0.2"); err != nil {
		t.Fatal(err)
	}
	if head, body := full.wantRefusal("/", "503", `reason="Service Unavailable"`, from...); !strings.Contains(head, "\r\nRetry-After: 1\r\n") || body != "503 Service Unavailable\n" {
		t.Errorf("one connection too many: %s\n%q, want Retry-After", head, body)
	}
	full.wantMetric(`ephpm_ws_handshake_rejected_total{reason="capacity"}`, 1)
	full.wantMetric(`ephpm_http_connections_refused_total{reason="ip_full"}`, 1)
	full.wantMetric("ephpm_ws_connections_total", 0)
}

// With overload_policy = "shed" an event waits for its worker all the same, and no
// longer than it may.
func TestConnectWithoutAWorkerUnderShedding(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[php]\nworkers = 1\noverload_policy = \"shed\"\nworker_backlog_wait = \"200ms\"\n")
	s, g, _ := a.holdSocket(`file_get_contents('%s'); return 'through';`)
	series := []string{
		`ephpm_ws_event_failures_total{event="connect",reason="busy"}`, `ephpm_php_refused_total{class="event"}`,
		"ephpm_ws_connect_rejected_total",
	}
	before := make([]float64, len(series))
	for i, name := range series {
		n, err := a.metric(name)
		if err != nil {
			t.Fatal(err)
		}
		before[i] = n
	}
	head, body := a.wantRefusal("/", "503", `reason="Service Unavailable" err=`)
	if !strings.Contains(head, "\r\nRetry-After: 1\r\n") || body != "503 Service Unavailable\n" {
		t.Errorf("connect without a worker: %s\n%q, want Retry-After", head, body)
	}
	for i, name := range series {
		a.wantMetric(name, before[i]+1)
	}
	a.wantMetric(`ephpm_php_shed_total{engine="pool",reason="busy"}`, 0)
	a.wantMetric("ephpm_ws_connections_active", 1)
	g.open()
	s.want(frameText, `"through"`)
	a.joinUnless(503, "", "")
}

// An upgrade that is decided while the server stops is refused; one whose connect
// event runs already is told at once that the server goes.
func TestConnectWhileTheServerStops(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.admin]\nlisten = \"127.0.0.1:0\"\n")
	admin := *a.app
	admin.URL = "http://" + a.waitLog(`msg="admin listening" addr=(\S+)`)[1]
	there := a.dialWire("/")
	g, running := newGate(t), a.connect()
	running.send(upgradeText(events(`file_get_contents('`+g.path+`'); ephpm_ws_send('late');`, "")))
	g.wait()
	late := a.connect()
	late.send(upgradeText("/", "Content-Length: 5"))
	admin.waitMetric("ephpm_http_requests_in_flight", 2)

	a.signal(syscall.SIGTERM)
	there.want(frameClose, closePayload(1001, "")) // so the sockets are stopping
	there.say(frameClose, closePayload(1001, ""))
	late.send("hello")
	if resp, body := late.answer(); resp.StatusCode != 503 || body != "503 the server is stopping\n" {
		t.Errorf("an upgrade while the server stops: %s %q, want 503", resp.Status, body)
	}
	a.waitLog(`level=INFO msg="upgrade refused" site=default addr=127.0.0.1 status=503 reason="the server is stopping"`)
	admin.waitMetric(`ephpm_ws_handshake_rejected_total{reason="shutdown"}`, 1)
	admin.waitMetric("ephpm_ws_connections_total", 2)
	g.open()
	f := running.accepted()
	f.want(frameClose, closePayload(1001, "")) // sends are refused since the stop began
	f.say(frameClose, closePayload(1001, ""))
	if status := a.waitExit(); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	a.wantTrail(`["1001","","shutdown"]`, `["1001","","shutdown"]`)
}

// Whatever refuses it, over whatever it came: the line has what an operator needs.
func TestRefusalsOverHTTP2AndHTTP3(t *testing.T) {
	t.Parallel()
	e := startEveryHTTP(t, appOptions{TOML: metricsOn + "[server.websocket]\nallowed_origins = [\"same-origin\"]\n", Files: map[string]string{
		"websocket.php": `<?php http_response_code(401); echo 'who are you?';`,
	}})
	refused := 0
	for _, over := range []string{"HTTP/2", "HTTP/3"} {
		for _, c := range []struct {
			path   string
			header []string
			status int
			more   string
		}{
			{"/?" + over, nil, 401, `reason="refused by connect"`},
			{"/?" + over, []string{"Origin: https://evil.example"}, 403, `reason="origin not allowed"`},
			{"/.git/" + over, nil, 403, `reason=Forbidden host=\S+ path=/.git/` + over},
		} {
			if resp, _ := e.extendedConnect(t, over, c.path, c.header); resp.StatusCode != c.status {
				t.Errorf("%s %s %s: %s, want %d", over, c.path, c.header, resp.Status, c.status)
			}
			refused++
			e.waitLog(`level=INFO msg="upgrade refused" site=\S+ addr=127.0.0.1 status=` + fmt.Sprint(c.status) + ` ` + c.more)
			e.waitMetric(`ephpm_http_requests_total{handler="error",method="GET",status="403"}`, float64(refused/3))
		}
	}
	for series, want := range map[string]float64{
		"ephpm_ws_connect_rejected_total":                     2,
		`ephpm_ws_handshake_rejected_total{reason="origin"}`:  2,
		`ephpm_ws_handshake_rejected_total{reason="request"}`: 2,
		"ephpm_ws_connections_active":                         0,
	} {
		e.waitMetric(series, want)
	}
}

// A plain listener that sends clients to TLS does so with sockets too.
func TestUpgradesAreSentToTLS(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	a := startApp(t, appOptions{
		TOML:  tlsIn(dir) + "listen = \"127.0.0.1:0\"\nredirect_http = true\n" + metricsOn,
		Files: map[string]string{"websocket.php": `<?php`},
	})
	head, _ := a.wantRefusal("/room?token=secret", "308", `reason="Permanent Redirect" host=127\.0\.0\.1:\d+ path=/room\n`)
	if want := "\r\nLocation: " + strings.TrimSuffix(a.tlsURL(), "/") + "/room?token=secret\r\n"; !strings.Contains(head, want) {
		t.Errorf("the answer is\n%s\nwant %q", head, want)
	}
	a.waitMetric(`ephpm_ws_handshake_rejected_total{reason="request"}`, 1)
	a.waitMetric("ephpm_ws_connections_total", 0)
	if strings.Contains(a.Log(), "secret") {
		t.Error("the log has the query of the upgrade")
	}
}

// The rules of a site hold for its sockets.
func TestUpgradesThatRulesRefuse(t *testing.T) {
	t.Parallel()
	a := startPlay(t, `
		[[access]]
		path = "/inside/*"
		deny = ["127.0.0.0/8"]
		[[redirect]]
		path = "/old"
		to = "/new"
		status = 301
	`)
	for i, c := range []struct{ target, status, more string }{
		{"/inside/x", "403", `reason=Forbidden host=\S+ path=/inside/x`},
		{"/old", "301", `reason="Moved Permanently" host=\S+ path=/old`},
	} {
		a.wantRefusal(c.target, c.status, c.more)
		a.wantMetric(`ephpm_ws_handshake_rejected_total{reason="request"}`, float64(i+1))
	}
	a.dial("/outside", nil)
	a.wantMetric("ephpm_ws_connections_total", 1)
}
