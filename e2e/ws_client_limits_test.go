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
