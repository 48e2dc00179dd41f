package e2e

import (
	"fmt"
	"strings"
	"testing"
)

func TestAddressCapIs503(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nmax_connections_per_ip = 2\n[server.security]\ntrusted_proxies = [\"127.0.0.9\"]\n")
	first := a.join("", "")
	a.join("", "")
	wantRefused := func(args ...string) {
		t.Helper()
		head, body := a.curlUpgrade("/", args...)
		if !strings.HasPrefix(head, "HTTP/1.1 503 ") || body != "503 websocket connection limit reached for this address\n" {
			t.Errorf("one socket too many: %s %q, want 503", firstOf(head, "\r\n"), body)
		}
	}
	wantRefused()
	a.wantMetric(`ephpm_ws_connections_rejected_total{reason="ip_full"}`, 1)
	a.wantMetric(`ephpm_ws_handshake_rejected_total{reason="capacity"}`, 1)
	a.waitLog(`level=INFO msg="upgrade refused" site=default addr=127.0.0.1 status=503 reason="websocket connection limit reached for this address"`)
	if _, err := a.dialWireFrom("127.0.0.2", "/"); err != nil {
		t.Errorf("another address: %v", err)
	}

	first.close()
	a.waitMetric("ephpm_ws_connections_active", 2)
	a.join("", "")
	wantRefused()
	// What connect refuses has taken no place.
	a.waitMetric("ephpm_ws_connections_active", 3)
	if head, _ := a.curlUpgrade(events(`http_response_code(403);`, ""), "--interface", "127.0.0.3"); !strings.HasPrefix(head, "HTTP/1.1 403 ") {
		t.Errorf("an upgrade that connect refuses: %s", firstOf(head, "\r\n"))
	}
	for range 2 {
		if _, err := a.dialWireFrom("127.0.0.3", "/"); err != nil {
			t.Error(err)
		}
	}
	wantRefused("--interface", "127.0.0.3")
	// A proxy is nobody, those behind it are.
	for range 3 {
		if _, err := a.dialWireFrom("127.0.0.9", "/"); err != nil {
			t.Errorf("a trusted proxy: %v", err)
		}
	}
	wantRefused("--interface", "127.0.0.9", "-H", "X-Forwarded-For: 127.0.0.3")
}

func TestMessageRateIs1008(t *testing.T) {
	t.Parallel()
	// So slow that none comes back while the test runs.
	a := startPlay(t, "[server.websocket]\nmax_messages_per_sec = 0.001\nmessage_burst = 5\n")
	f := a.dialWire("/")
	f.say(frameText, `return 0;`)
	f.want(frameText, `0`)
	var burst strings.Builder
	for i := 1; i <= 8; i++ {
		burst.WriteString(masked(frameText|frameFin, fmt.Sprintf(`trail('message'); return %d;`, i)))
		burst.WriteString(masked(framePing|frameFin, "")) // no message
	}
	f.send(burst.String())
	var answers []string
	for {
		op, payload := f.next()
		if op&0x0f == framePong {
			continue
		}
		if op&0x0f == frameClose {
			if want := "\x03\xf0too many messages"; payload != want {
				t.Errorf("close frame %q, want %q", payload, want)
			}
			break
		}
		answers = append(answers, payload)
	}
	if got := strings.Join(answers, " "); got != "1 2 3 4" {
		t.Errorf("answers %s before the close, want 1 2 3 4", got)
	}
	_ = f.Close()
	a.wantTrail(`"message"`, `"message"`, `"message"`, `"message"`, `["1008","too many messages","limit"]`)
	a.wantMetric("ephpm_ws_message_rate_exceeded_total", 1)
	a.wantMetric(`ephpm_ws_closed_total{cause="limit"}`, 1)
	a.wantMetric(`ephpm_ws_close_codes_total{code="1008"}`, 1)
	a.waitLog(`level=INFO msg="message rate over the limit, closing" site=default connection=[0-9a-f]{32} addr=127.0.0.1`)
	a.join("", "").wantRun(`return 'each socket has its own';`, `"each socket has its own"`)
}

func TestManyMessagesWithinTheRate(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nmax_messages_per_sec = 100000\nmessage_burst = 1000\n")
	s := a.join("", "")
	for i := range 200 {
		s.wantRun(fmt.Sprintf(`return %d;`, i), fmt.Sprint(i))
	}
}

// A site may have limits of its own, beside those of the server.
func TestSocketLimitsOfOneSite(t *testing.T) {
	t.Parallel()
	const script = `<?php
		$_SERVER['WS_EVENT'] === 'connect' && ephpm_ws_subscribe('all', ['history' => 3]);
		$_SERVER['WS_EVENT'] === 'message' && ephpm_ws_broadcast('all', file_get_contents('php://input'));`
	s := startSites(t, metricsOn+`
		[server.websocket]
		max_connections_per_ip = 4
		history_memory = 0
		[[site]]
		names = ["a.example"]
		root = "$dir/sites/a"
		[site.websocket]
		max_connections_per_ip = 1
		max_messages_per_sec = 0.001
		message_burst = 2
		max_message_size = 100
		max_frame_size = 50
		subprotocols = ["own"]
		compression = "no_context_takeover"
		[[site]]
		names = ["b.example"]
		root = "$dir/sites/b"
		websocket.history_memory = "1MiB"
	`, map[string]string{"a/websocket.php": script, "b/websocket.php": script})
	dial := func(host string, header ...string) (*frames, string) {
		w := s.connect()
		w.send(strings.Replace(upgradeText("/", header...), "Host: x", "Host: "+host, 1))
		f, err := w.tryAccepted()
		if err != nil {
			return nil, err.Error()
		}
		return f, ""
	}
	const full = "upgrade: 503 Service Unavailable 503 websocket connection limit reached for this address\n"
	a, refused := dial("a.example", "Sec-WebSocket-Protocol: own", "Sec-WebSocket-Extensions: permessage-deflate")
	if refused != "" {
		t.Fatal(refused)
	}
	if h := a.resp.Header; h.Get("Sec-WebSocket-Protocol") != "own" || h.Get("Sec-WebSocket-Extensions") == "" {
		t.Errorf("the handshake of a.example has %v", h)
	}
	if _, got := dial("a.example"); got != full {
		t.Errorf("a second socket at a.example: %q, want it refused", got)
	}
	b, refused := dial("b.example", "Sec-WebSocket-Protocol: own", "Sec-WebSocket-Extensions: permessage-deflate")
	if refused != "" {
		t.Fatal(refused)
	}
	if h := b.resp.Header; h.Get("Sec-WebSocket-Protocol") != "" || h.Get("Sec-WebSocket-Extensions") != "" {
		t.Errorf("the handshake of b.example has %v", h)
	}
	b.say(frameText, repeat(200))
	b.want(frameText, repeat(200))
	for range 2 {
		f, refused := dial("b.example")
		if refused != "" {
			t.Fatal(refused)
		}
		f.want(frameText, repeat(200)) // the past
	}
	if _, got := dial("b.example"); got != full {
		t.Errorf("a fifth socket of the address: %q, want it refused", got)
	}

	for range 2 {
		a.say(frameText, "x")
		a.want(frameText, "x")
	}
	a.say(frameText, "one too many")
	a.wantClose(1008, "too many messages")
	_ = a.Close()

	s.waitMetric("ephpm_ws_connections_active", 3)
	if a, refused = dial("a.example"); refused != "" {
		t.Fatal(refused)
	}
	a.say(frameText, repeat(51))
	a.wantEnd(1009, "frame over the limit") // and nothing of the past
}
