package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// All that scripts do with a socket they do with an event stream.
func TestEventStreamIsAConnection(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn)
	s := p.listen(`ephpm_ws_subscribe('lobby'); ephpm_ws_send("hello\nworld"); ephpm_ws_send("\x00\xff", true); header('X-Own: yes'); setcookie('a', 'b'); echo 'nowhere';`)
	if h := s.resp.Header; h.Get("X-Own") != "yes" || !strings.HasPrefix(h.Get("Set-Cookie"), "a=b") || h.Get("Cache-Control") != "no-store" {
		t.Errorf("the answer has %v", h)
	}
	s.want("hello\nworld")
	if e := s.next(); e != (sseEvent{"binary", "AP8=", ""}) {
		t.Errorf("a binary frame came as %q", e)
	}
	s.wantRun(`return [$_SERVER['WS_EVENT'], $_SERVER['WS_OPCODE'], $_SERVER['WS_TRANSPORT'], $_SERVER['REQUEST_METHOD'], $_SERVER['CONTENT_TYPE'], isset($_COOKIE['x'])];`,
		`["message","text","sse","GET","text/plain; charset=utf-8",false]`)
	s.wantRun(`return $id;`, `"`+s.connection+`"`)

	w := p.join(`ephpm_ws_subscribe('lobby');`, "")
	w.send(`return [ephpm_ws_count(), ephpm_ws_count('lobby'), count(ephpm_ws_members('lobby')), ephpm_ws_broadcast('lobby', 'to both')];`)
	if got := w.recv(); got != "to both" {
		t.Errorf("the socket got %q", got)
	}
	if got := w.recv(); got != "[2,2,2,2]" {
		t.Errorf("with a socket and an event stream: %s", got)
	}
	s.want("to both")
	w.wantRun(`return ephpm_ws_connection_send('`+s.connection+`', 'direct');`, "true")
	s.want("direct")
	s.wantRun(`return ephpm_ws_broadcast('lobby', 'to the others', false, $id);`, "1")
	if got := w.recv(); got != "to the others" {
		t.Errorf("the socket got %q", got)
	}
	s.wantRun(`return [ephpm_ws_unsubscribe('lobby'), ephpm_ws_count('lobby')];`, "[true,1]")
	if resp, _ := s.post("ephpm_ws_send(strlen(file_get_contents('php://input')) . $_SERVER['WS_OPCODE']); return null; //\xff", "Content-Type", "application/octet-stream"); resp.StatusCode != 204 {
		t.Errorf("a binary message: %s", resp.Status)
	}
	s.want("97binary")

	s.wantRun(`ephpm_ws_send('a'); ephpm_ws_send('b'); return 'c';`, "a")
	s.want("b")
	s.want(`"c"`)
	w.wantRun(`return ephpm_ws_connection_close('`+s.connection+`', 4001, 'enough');`, "true")
	s.wantEnd(4001, "enough", false)
	p.wantTrail(`["4001","enough","server"]`)
	if resp, _ := s.post("return 1;"); resp.StatusCode != http.StatusGone {
		t.Errorf("a message after the end: %s, want 410", resp.Status)
	}
	// An EventSource comes back by itself.
	if again := tryListen(t, http.DefaultClient, p.URL, "/", "Last-Event-ID", s.last); again.resp.StatusCode != http.StatusNoContent {
		t.Errorf("coming back after a final close: %s, want 204", again.resp.Status)
	}

	for series, want := range map[string]float64{
		`ephpm_ws_streams_total{transport="sse"}`: 1, `ephpm_ws_streams_active{transport="sse"}`: 0,
		`ephpm_ws_streams_closed_total{cause="server",transport="sse"}`: 1,
		"ephpm_ws_connections_total":                                    1, "ephpm_ws_connections_active": 1, `ephpm_ws_events_total{event="connect"}`: 2,
		`ephpm_http_requests_total{handler="stream",method="POST",status="410"}`: 1,
	} {
		p.wantMetric(series, want)
	}
}

func TestClientOfAnEventStreamLeaves(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn)
	gone := p.listen(`ephpm_ws_subscribe('lobby');`)
	gone.leave()
	p.wantTrail(`["1006","","gone"]`)
	p.wantPage(`return ephpm_ws_count('lobby');`, "0")

	leaves := p.listen("")
	if resp, _ := leaves.ask("DELETE", ""); resp.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %s, want 204", resp.Status)
	}
	leaves.wantEnd(1000, "", false)
	p.wantTrail(`["1006","","gone"]`, `["1000","","client"]`)
	if resp, _ := leaves.ask("DELETE", ""); resp.StatusCode != http.StatusGone {
		t.Errorf("DELETE of what has gone: %s, want 410", resp.Status)
	}
}

func TestConnectRefusesAnEventStream(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn)
	s := tryListen(t, http.DefaultClient, p.URL, events(`http_response_code(401); header('X-Own: yes'); echo 'log in';`, ""))
	if s.resp.StatusCode != 401 || s.resp.Header.Get("X-Own") != "yes" {
		t.Errorf("refused with %s %v", s.resp.Status, s.resp.Header)
	}
	p.wantMetric(`ephpm_ws_streams_refused_total{reason="connect"}`, 1)
	p.wantMetric(`ephpm_ws_streams_active{transport="sse"}`, 0)
	p.waitLog("event stream refused.*status=401")
}

// Off, which is the default, such requests are ordinary. So they are on a site without
// a script for events.
func TestEventStreamsAreOffByDefault(t *testing.T) {
	t.Parallel()
	off := startPlay(t, "")
	no := startApp(t, appOptions{TOML: sseOn, Files: map[string]string{"index.php": `<?php header('Content-Type: text/event-stream'); echo "data: own\n\n";`}})
	for name, test := range map[string]struct {
		a    *app
		want string
	}{"off": {off.app, "a page"}, "without a script": {no, "data: own\n\n"}} {
		for _, target := range []string{"/index.php", "/index.php?transport=poll"} {
			_, body := test.a.do(test.a.request("GET", target, "", "Accept", "text/event-stream"))
			if body != test.want {
				t.Errorf("%s: %s got %q, want the page", name, target, body)
			}
		}
	}
	_, body := off.do(off.request("POST", "/page.php", "return 1;", "WS-Connection-Key", strings.Repeat("0", 64)))
	if body != "1" {
		t.Errorf("POST to a page got %q, want the page", body)
	}
}

func TestSitesChooseEventStreams(t *testing.T) {
	t.Parallel()
	site := func(name, more string) string {
		dir := t.TempDir()
		writeFiles(t, dir, map[string]string{"index.php": `<?php echo 'page';`, "websocket.php": `<?php if ($_SERVER['WS_EVENT'] === 'message') ephpm_ws_send('heard');`})
		return fmt.Sprintf("[[site]]\nnames = [%q]\nroot = %q\n%s", name, dir, more)
	}
	a := startApp(t, appOptions{TOML: site("on.test", "[site.websocket]\nsse = true\n") + site("also.test", "[site.websocket]\nsse = true\n") + site("off.test", "")})
	one := listenAt(t, a, "on.test")
	other := listenAt(t, a, "also.test")
	resp, body := a.do(hosted(a, "off.test", "GET", "", "Accept", "text/event-stream"))
	if body != "page" {
		t.Errorf("a site without event streams: %s %q", resp.Status, body)
	}
	for key, want := range map[string]int{one.key: 204, other.key: 404, one.key[:32] + other.key[32:]: 404, one.connection: 404, "x": 404} {
		if resp, body := a.do(hosted(a, "on.test", "POST", "hi", "WS-Connection-Key", key)); resp.StatusCode != want {
			t.Errorf("a message by key %s: %s %s, want %d", key, resp.Status, body, want)
		}
	}
	one.want("heard")
}

// hosted makes a request for a site.
func hosted(a *app, host, method, body string, header ...string) *http.Request {
	req := a.request(method, "/", body, header...)
	req.Host = host
	return req
}

func listenAt(t *testing.T, a *app, host string) *sse {
	t.Helper()
	return listen(t, &http.Client{Transport: hostTransport(host)}, a.URL, "/")
}

// A hostTransport asks for one host.
type hostTransport string

func (h hostTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Host = string(h)
	return http.DefaultTransport.RoundTrip(r)
}

func TestEventStreamsOverEveryVersion(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{TOML: sseOn, Files: map[string]string{"websocket.php": `<?php
		switch ($_SERVER['WS_EVENT']) {
		case 'connect': ephpm_ws_subscribe('all'); ephpm_ws_send($_SERVER['SERVER_PROTOCOL']); break;
		case 'message': ephpm_ws_broadcast('all', file_get_contents('php://input')); break;
		case 'disconnect': ephpm_ws_broadcast('all', "gone {$_SERVER['WS_CLOSE_CAUSE']}");
		}`}})
	var streams []*sse
	for _, v := range a.versions() {
		s := listen(t, v.client, v.url, "/?x=1")
		if got := s.next().data; !strings.HasPrefix(got, "HTTP/"+fmt.Sprint(v.major)) {
			t.Errorf("over %s the script sees %s", v.name, got)
		}
		streams = append(streams, s)
	}
	large := strings.Repeat("0123456789", 30000)
	for _, from := range streams {
		for _, text := range []string{"hello", large} {
			if resp, body := from.post(text); resp.StatusCode != 204 {
				t.Fatalf("message: %s %s", resp.Status, body)
			}
			for _, s := range streams {
				s.want(text)
			}
		}
	}
	for len(streams) > 1 { // each learns that another has left
		streams[0].leave()
		streams = streams[1:]
		for _, s := range streams {
			s.want("gone gone")
		}
	}
	ended := make(chan int, 1)
	go func() { ended <- a.Stop() }()
	streams[0].wantEnd(1001, "", true)
	if status := <-ended; status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
}

// curl -N shows what comes.
func TestCurlReadsAnEventStream(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn)
	out, err := exec.Command("curl", "-sSN", "--max-time", fmt.Sprint(int(patience.Seconds())), "-H", "Accept: text/event-stream", "--compressed",
		p.URL+events(`ephpm_ws_send("a\r\nb\rc"); ephpm_ws_close(1012, 'later');`, "")).CombinedOutput()
	if err != nil {
		t.Fatalf("curl: %v %s", err, out)
	}
	want := regexp.MustCompile(`^retry: [1-4]\d{3}
event: connection
data: \{"connection":"[0-9a-f]{32}","key":"[0-9a-f]{64}","resumed":false\}

data: a
data: b
data: c

id: [0-9a-f]+-1

retry: [1-4]\d{3}
event: close
data: \{"code":1012,"reason":"later","retry":true\}

$`)
	if !want.Match(out) {
		t.Errorf("curl got\n%s", out)
	}
}

func TestPingsKeepAnEventStream(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn+"ping_interval_secs = \"20ms\"\n")
	s := tryListen(t, http.DefaultClient, p.URL, "/")
	got := ""
	for buf := make([]byte, 512); strings.Count(got, ":\n\n") < 3; {
		n, err := s.resp.Body.Read(buf)
		if got += string(buf[:n]); err != nil {
			t.Fatalf("%v after %q", err, got)
		}
	}
}

func TestStopEndsEventStreams(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn)
	s := p.listen("")
	polled := p.poll("")
	ended := make(chan int, 1)
	go func() { ended <- p.Stop() }()
	s.wantEnd(1001, "", true)
	if status := <-ended; status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	p.wantTrail(`["1001","","shutdown"]`, `["1001","","shutdown"]`)
	if polled.key == "" {
		t.Error("the polled connection had no key")
	}
}

func TestAccessLogHasTheEndOfAnEventStream(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn+"[server.logging]\naccess = \"stdout\"\n")
	s := p.listen(`ephpm_ws_send('x');`)
	s.want("x")
	s.ask("DELETE", "")
	p.waitLog(`"CLOSE /\?connect=\S* HTTP/1\.1" 1000 .*cause=client .*frames_out=1`)
	p.waitLog(`"GET /\?connect=\S* HTTP/1\.1" 200 `)
}

// What a script is told of a send is true at the end of a connection, too.
func TestEventStreamThatClosesTakesNoMore(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn)
	s := p.listen("")
	if resp, _ := s.post(`trail([ephpm_ws_send('x'), ephpm_ws_close(4000), ephpm_ws_send('y'), ephpm_ws_connection_send($id, 'y')]);`); resp.StatusCode != 204 {
		t.Errorf("message: %s", resp.Status)
	}
	s.want("x")
	s.wantEnd(4000, "", false)
	if got := p.trail(1)[0]; got != "[true,true,false,false]" {
		t.Errorf("sends around a close gave %s", got)
	}
}
