package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// upgradeWithout is an upgrade request without the header of that name.
func upgradeWithout(name string) string {
	return regexp.MustCompile(name+`:.*\r\n`).ReplaceAllString(upgradeText("/"), "")
}

func TestWhatCountsAsAnUpgrade(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	const key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	for what, c := range map[string]struct {
		request string
		want    int // 200: it is a page
	}{
		"an upgrade":           {upgradeText("/"), 101},
		"other letter case":    {"GET / HTTP/1.1\r\nHost: x\r\nConnection: UPGRADE\r\nUpgrade: WebSocket\r\n" + key, 101},
		"lists":                {"GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: h2c, websocket\r\n" + key, 101},
		"several header lines": {"GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\nConnection: upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n" + key, 101},
		"any path":             {upgradeText("/no/such/file.html?x=1"), 101},
		"the path of a page":   {upgradeText("/page.php"), 101},
		"POST":                 {strings.Replace(upgradeText("/", "Content-Length: 0"), "GET", "POST", 1), 200},
		"HEAD":                 {strings.Replace(upgradeText("/"), "GET", "HEAD", 1), 200},
		"HTTP/1.0":             {strings.Replace(upgradeText("/"), "HTTP/1.1", "HTTP/1.0", 1), 200},
		"no Connection":        {upgradeWithout("Connection"), 200},
		"no Upgrade":           {upgradeWithout("Upgrade"), 200},
		"another protocol":     {strings.Replace(upgradeText("/"), "websocket", "h2c", 1), 200},
		"part of a token":      {strings.Replace(upgradeText("/"), "websocket", "websockets", 1), 200},
	} {
		w := a.connect()
		w.send(c.request)
		resp, err := http.ReadResponse(w.in, &http.Request{Method: firstOf(c.request, " ")})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if resp.StatusCode != c.want {
			t.Errorf("%s: %s, want %d", what, resp.Status, c.want)
		}
		if c.want != 200 || what == "HEAD" {
			continue
		}
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "a page" {
			t.Errorf("%s: body %q, %v, want the page", what, body, err)
		}
	}
}

func TestMalformedHandshakeIs400(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	const series = `ephpm_ws_handshake_rejected_total{reason="handshake"}`
	a.wantMetric(series, 0)
	requests := map[string]string{
		"no version":   upgradeWithout("Sec-WebSocket-Version"),
		"version 8":    strings.Replace(upgradeText("/"), ": 13", ": 8", 1),
		"two versions": upgradeText("/", "Sec-WebSocket-Version: 8"),
		"no key":       upgradeWithout("Sec-WebSocket-Key"),
		"empty key":    strings.Replace(upgradeText("/"), "dGhlIHNhbXBsZSBub25jZQ==", "", 1),
		"short key":    strings.Replace(upgradeText("/"), "dGhlIHNhbXBsZSBub25jZQ==", "c2hvcnQ=", 1),
		"no base64":    strings.Replace(upgradeText("/"), "dGhlIHNhbXBsZSBub25jZQ==", "!!!lIHNhbXBsZSBub25jZQ==", 1),
		"two keys":     upgradeText("/", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="),
	}
	for what, request := range requests {
		resp, body := a.exchange(request)
		if resp.StatusCode != 400 || body != "400 Bad WebSocket Handshake\n" {
			t.Errorf("%s: %s %q, want 400", what, resp.Status, body)
		}
		if got := resp.Header.Get("Sec-WebSocket-Version"); got != "13" {
			t.Errorf("%s: Sec-WebSocket-Version %q, want 13", what, got)
		}
		if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/plain") {
			t.Errorf("%s: Content-Type %q, want plain text", what, got)
		}
	}
	a.wantMetric(series, float64(len(requests)))
	a.wantMetric(`ephpm_http_requests_total{handler="websocket",method="GET",status="400"}`, float64(len(requests)))
	a.wantMetric("ephpm_ws_connections_total", 0)
	a.waitLog(`level=INFO msg="upgrade refused" site=default addr=127.0.0.1 status=400 reason="Bad WebSocket Handshake" err=".*Sec-WebSocket-Key`)
	a.waitLog(`level=INFO msg="upgrade refused" site=default addr=127.0.0.1 status=400 reason="Bad WebSocket Handshake" err=".*Sec-WebSocket-Version`)
}

func TestUpgradeWithoutEntrypointIs404(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php echo "a page";`}, TOML: metricsOn})
	head, body := a.curlUpgrade("/")
	if !strings.HasPrefix(head, "HTTP/1.1 404 ") || body != "404 Not Found\n" {
		t.Errorf("curl -i printed\n%s\n\n%s\nwant a 404", head, body)
	}
	a.waitMetric(`ephpm_ws_handshake_rejected_total{reason="entrypoint"}`, 1)
	a.waitLog(`level=INFO msg="upgrade refused" site=default addr=127.0.0.1 status=404 reason="Not Found"`)
	if resp, body := a.get("/"); resp.StatusCode != 200 || body != "a page" {
		t.Errorf("the page: %s %q", resp.Status, body)
	}
}

// The checks of every request come before the socket's.
func TestUpgradeOfWhatIsNoSocket(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	for _, c := range []struct{ target, status, body string }{
		{"/..%2findex.php", "400", "400 Bad Request\n"},
		{"/a/../b", "400", "400 Bad Request\n"},
		{"/.git/config", "403", "403 Forbidden\n"},
		{"/_ephpm/health", "200", `{"status":"ok"}` + "\n"},
	} {
		head, body := a.curlUpgrade(c.target)
		if !strings.HasPrefix(head, "HTTP/1.1 "+c.status+" ") || body != c.body {
			t.Errorf("upgrade of %s: %s %q, want %s %q", c.target, firstOf(head, "\r\n"), body, c.status, c.body)
		}
	}
	a.wantMetric("ephpm_ws_connections_total", 0)
	a.dial("/.well-known/socket", nil)

	ignored := startPlay(t, "[server.static]\nhidden_files = \"ignore\"\n")
	if head, _ := ignored.curlUpgrade("/.git/config"); !strings.HasPrefix(head, "HTTP/1.1 404 ") {
		t.Errorf("upgrade of an ignored hidden file: %s, want 404", firstOf(head, "\r\n"))
	}
}

func TestServerCapIs503(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nmax_connections = 2\n")
	first := a.join("", "")
	a.join("", "")
	head, body := a.curlUpgrade("/")
	if !strings.HasPrefix(head, "HTTP/1.1 503 ") || body != "503 websocket connection limit reached\n" {
		t.Errorf("the third socket: %s %q, want 503", firstOf(head, "\r\n"), body)
	}
	a.wantMetric(`ephpm_ws_connections_rejected_total{reason="server_full"}`, 1)
	a.wantMetric(`ephpm_ws_handshake_rejected_total{reason="capacity"}`, 1)
	a.wantMetric("ephpm_ws_connections_active", 2)
	a.waitLog(`level=INFO msg="upgrade refused" site=default addr=127.0.0.1 status=503 reason="websocket connection limit reached"`)
	first.close()
	a.waitMetric("ephpm_ws_connections_active", 1)
	a.join("", "")
}

func TestSiteCapIs503(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nmax_connections_per_site = 1\n")
	a.join("", "")
	head, body := a.curlUpgrade("/")
	if !strings.HasPrefix(head, "HTTP/1.1 503 ") || body != "503 websocket connection limit reached for this site\n" {
		t.Errorf("the second socket: %s %q, want 503", firstOf(head, "\r\n"), body)
	}
	a.wantMetric(`ephpm_ws_connections_rejected_total{reason="site_full"}`, 1)
	a.wantMetric(`ephpm_ws_handshake_rejected_total{reason="capacity"}`, 1)
	a.waitLog(`level=INFO msg="upgrade refused" site=default addr=127.0.0.1 status=503 reason="websocket connection limit reached for this site"`)
}

// One site is the whole server: it has no cap of its own.
func TestSingleSiteHasNoCapOfItsOwn(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	for range 1001 {
		// Not through the pool's PHP: an idle socket costs nothing.
		a.dialWire("/")
	}
	a.wantMetric("ephpm_ws_connections_active", 1001)
}

func TestUpgradeBodyIsBounded(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	resp, body := a.exchange(upgradeText(events(`header('X-Body: ' . file_get_contents('php://input')); http_response_code(403);`, ""),
		"Content-Length: 5") + "hello")
	if got := resp.Header.Get("X-Body"); got != "hello" || body != "" {
		t.Errorf("connect read the body %q, want hello", got)
	}
	for what, text := range map[string]string{
		"ten gigabytes announced": upgradeText("/", "Content-Length: 10000000000") + repeat(100_000),
		"no end in sight":         upgradeText("/", "Transfer-Encoding: chunked") + strings.Repeat("1000\r\n"+repeat(0x1000)+"\r\n", 25),
		"a body that never comes": strings.Replace(upgradeText("/", "Content-Length: 5"), ": 13", ": 8", 1),
	} {
		resp, body := a.exchange(text)
		if resp.StatusCode != 400 || body != "400 Bad WebSocket Handshake\n" {
			t.Errorf("%s: %s %q, want 400", what, resp.Status, body)
		}
	}
}

func TestHandshakeAnswer(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	// The key is RFC 6455's own example.
	f := a.dialWire("/", "Sec-WebSocket-Extensions: permessage-deflate", "Sec-WebSocket-Protocol: nobody, knows")
	want := http.Header{
		"Connection":           {"Upgrade"},
		"Upgrade":              {"websocket"},
		"Sec-Websocket-Accept": {"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="},
	}
	got := f.resp.Header.Clone()
	got.Del("Date")
	got.Del("X-Powered-By") // PHP's own
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("headers of the 101 are %v, want %v", got, want)
	}
	a.wantMetric(`ephpm_http_requests_total{handler="websocket",method="GET",status="101"}`, 1)
}

func TestSubprotocol(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nsubprotocols = [\"v3\", \"v2\"]\n")
	const choose = `header('Sec-WebSocket-Protocol: %s');`
	for _, c := range []struct {
		offered []string
		connect string
		want    string
	}{
		{[]string{"v1", "v2"}, fmt.Sprintf(choose, "v1"), "v1"},
		{[]string{"v1", "v2", "v3"}, "", "v3"},
		{[]string{"v1", "v2"}, fmt.Sprintf(choose, "v9"), "v2"},
		{[]string{"v1"}, fmt.Sprintf(choose, "v9"), ""},
		{[]string{"v1"}, "", ""},
		{nil, fmt.Sprintf(choose, "v1"), ""},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		conn, resp, err := websocket.Dial(ctx, a.URL+events(c.connect, ""), &websocket.DialOptions{Subprotocols: c.offered})
		cancel()
		if err != nil {
			t.Errorf("offered %q: %v", c.offered, err)
			continue
		}
		if got := conn.Subprotocol(); got != c.want || len(resp.Header.Values("Sec-WebSocket-Protocol")) > 1 {
			t.Errorf("offered %q, script %q: got %q, want %q", c.offered, c.connect, got, c.want)
		}
		_ = conn.CloseNow() // enough seen
	}
}

func TestAllowedOrigins(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nallowed_origins = [\"same-origin\", \"https://app.example\"]\n")
	for _, origin := range []string{a.URL, "https://app.example"} {
		a.dial("/", http.Header{"Origin": {origin}})
	}
	a.dial("/", nil) // no browser
	head, body := a.curlUpgrade(events(`trail('ran');`, ""), "-H", "Origin: https://evil.example")
	if !strings.HasPrefix(head, "HTTP/1.1 403 ") || body != "403 origin not allowed\n" {
		t.Errorf("foreign origin: %s %q, want 403", firstOf(head, "\r\n"), body)
	}
	a.waitLog(`level=INFO msg="upgrade refused" site=default addr=127.0.0.1 status=403 reason="origin not allowed"`)
	a.wantMetric(`ephpm_ws_handshake_rejected_total{reason="origin"}`, 1)
	a.wantMetric(`ephpm_ws_events_total{event="connect"}`, 3)
}

func TestSameOriginIsForTheScript(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	for origin, want := range map[string]string{
		a.URL: "1", "https://evil.example": "0", "null": "0", "http://127.0.0.1:1": "0",
	} {
		s := a.dial("/", http.Header{"Origin": {origin}})
		s.wantRun(`return $_SERVER['WS_SAME_ORIGIN'];`, `"`+want+`"`)
	}
}

func TestEntrypoints(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		Files: map[string]string{
			"live/socket.php": `<?php ephpm_ws_send('first ' . $_SERVER['SCRIPT_NAME']);`,
			"other.php":       `<?php ephpm_ws_send('second');`,
			"websocket.php":   `<?php ephpm_ws_send('the default');`,
		},
		TOML: "[server]\nwebsocket_files = [\"missing.php\", \"live/socket.php\", \"other.php\"]\n",
	})
	if got := a.dial("/", nil).recv(); got != "first /live/socket.php" {
		t.Errorf("received %q, want the first script that exists", got)
	}
}

func TestSocketsOff(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nenabled = false\n")
	head, body := a.curlUpgrade("/")
	if !strings.HasPrefix(head, "HTTP/1.1 200 ") || body != "a page" {
		t.Errorf("upgrade: %s %q, want the page", firstOf(head, "\r\n"), body)
	}
	const want = `["Exception","ephpm_ws: native websockets are not enabled on this server (set [server.websocket] enabled = true)",0]`
	for _, call := range []string{
		`ephpm_ws_send('x')`, `ephpm_ws_connection_send('x', 'x')`, `ephpm_ws_subscribe('x')`, `ephpm_ws_connection_subscribe('x', 'x')`,
		`ephpm_ws_unsubscribe('x')`, `ephpm_ws_connection_unsubscribe('x', 'x')`, `ephpm_ws_broadcast('x', 'x')`, `ephpm_ws_close(0)`,
		`ephpm_ws_connection_close('x', 0)`, `ephpm_ws_count()`, `ephpm_ws_members('x')`,
	} {
		a.wantPage(`return `+call+`;`, want)
	}
}

// Limits and checks of every request hold for upgrades.
func TestUpgradesKeepTheLimitsOfRequests(t *testing.T) {
	t.Parallel()
	// So slow that nothing comes back while the test runs.
	site := startPlay(t, "[server.limits]\nper_site_rate = 0.001\nper_site_burst = 1\n")
	site.join("", "")
	head, body := site.curlUpgrade("/")
	if !strings.HasPrefix(head, "HTTP/1.1 429 ") || !strings.Contains(head, "\r\nRetry-After: ") || body != "429 Too Many Requests\n" {
		t.Errorf("an upgrade over the rate of the site: %s\n%q, want 429 with Retry-After", head, body)
	}
	site.wantMetric(`ephpm_ws_handshake_rejected_total{reason="rate"}`, 1)
	site.wantMetric("ephpm_ws_connections_total", 1)
	site.waitLog(`level=INFO msg="upgrade refused" site=default addr=127.0.0.1 status=429 reason="Too Many Requests"`)

	client := startPlay(t, "[server.limits]\nper_ip_rate = 0.001\nper_ip_burst = 1\n[server.security]\ntrusted_proxies = [\"127.0.0.1\"]\n")
	from := []string{"-H", "X-Forwarded-For: 203.0.113.7"}
	if head, _ := client.curlUpgrade(events(`http_response_code(403);`, ""), from...); !strings.HasPrefix(head, "HTTP/1.1 403 ") {
		t.Errorf("the first upgrade: %s", head)
	}
	head, body = client.curlUpgrade("/", from...)
	if !strings.HasPrefix(head, "HTTP/1.1 429 ") || !strings.Contains(head, "\r\nRetry-After: ") || body != "429 Too Many Requests\n" {
		t.Errorf("an upgrade over the rate of its client: %s\n%q, want 429 with Retry-After", head, body)
	}
	client.wantMetric("ephpm_ws_connections_total", 1)

	hosts := startPlay(t, "[server]\nrequest.trusted_hosts = [\"a.example\"]\n")
	for host, want := range map[string]string{"a.example": "403", "b.example": "421"} {
		head, _ := hosts.curlUpgrade(events(`http_response_code(403);`, ""), "-H", "Host: "+host)
		if !strings.HasPrefix(head, "HTTP/1.1 "+want+" ") {
			t.Errorf("an upgrade for %s: %s, want %s", host, firstOf(head, "\r\n"), want)
		}
	}
	hosts.wantMetric("ephpm_ws_connections_total", 1)
}
