package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// With -v the log tells the life of a socket.
func TestVerboseLogOfASocket(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "", "-v")
	s := a.join("", "")
	id := s.id()
	a.waitLog(`level=DEBUG msg="socket established" site=default connection=` + id + ` addr=127.0.0.1`)
	s.close()
	a.waitLog(`level=DEBUG msg="socket closed" site=default connection=` + id + ` code=1000 cause=client duration=`)
	idle := a.dialWire("/")
	_ = idle.Close()
	a.waitLog(`level=DEBUG msg="socket closed" .* code=1006 cause=gone`)
}

func TestQuietLogOfASocket(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	a.join("", "").close()
	a.trail(1)
	a.Stop()
	if strings.Contains(a.Log(), "socket established") || strings.Contains(a.Log(), "DEBUG") {
		t.Error("the log has debug lines without -v")
	}
}

// What a script logs in an event arrives with the site and the script.
func TestScriptLogsInAnEvent(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	s := a.join(`error_log('said in connect');`, `error_log('said in disconnect'); return 0;`)
	s.wantRun(`error_log('said in a message'); return 0;`, `0`)
	s.close()
	for _, event := range []string{"connect", "a message", "disconnect"} {
		a.waitLog(`said in ` + event)
	}
}

// Every series is there before anything happened, so that alerts can be
// written against it.
func TestSocketMetricsAreThereFromTheStart(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	for _, series := range []string{
		"ephpm_ws_connections_total", "ephpm_ws_connections_active",
		`ephpm_ws_connections_rejected_total{reason="server_full"}`, `ephpm_ws_connections_rejected_total{reason="site_full"}`,
		`ephpm_ws_connections_rejected_total{reason="ip_full"}`, "ephpm_ws_message_rate_exceeded_total",
		`ephpm_ws_handshake_rejected_total{reason="handshake"}`, `ephpm_ws_handshake_rejected_total{reason="transport"}`,
		`ephpm_ws_handshake_rejected_total{reason="capacity"}`, `ephpm_ws_handshake_rejected_total{reason="origin"}`,
		`ephpm_ws_handshake_rejected_total{reason="entrypoint"}`, `ephpm_ws_handshake_rejected_total{reason="shutdown"}`,
		`ephpm_ws_handshake_rejected_total{reason="site"}`, `ephpm_ws_handshake_rejected_total{reason="rate"}`,
		`ephpm_ws_handshake_rejected_total{reason="request"}`,
		"ephpm_ws_connect_rejected_total",
		`ephpm_ws_events_total{event="connect"}`, `ephpm_ws_events_total{event="message"}`, `ephpm_ws_events_total{event="disconnect"}`,
		`ephpm_ws_event_failures_total{event="disconnect",reason="busy"}`, `ephpm_ws_event_duration_seconds_count{event="message"}`,
		"ephpm_ws_event_timeouts_total", "ephpm_ws_frames_received_total", "ephpm_ws_frames_queued_total", "ephpm_ws_frames_sent_total",
		"ephpm_ws_received_bytes_total", "ephpm_ws_sent_bytes_total",
		`ephpm_ws_frames_rejected_total{reason="too_large"}`, `ephpm_ws_frames_rejected_total{reason="invalid_utf8"}`,
		"ephpm_ws_send_queue_overflow_total", "ephpm_ws_cross_site_denied_total",
		"ephpm_ws_deflated_bytes_total", "ephpm_ws_deflated_sent_bytes_total",
		"ephpm_ws_inflated_bytes_total", "ephpm_ws_inflated_received_bytes_total",
		`ephpm_ws_event_failures_total{event="connect",reason="timeout"}`, `ephpm_ws_event_failures_total{event="message",reason="crash"}`,
		`ephpm_ws_closed_total{cause="slow"}`, `ephpm_ws_closed_total{cause="limit"}`, `ephpm_ws_close_codes_total{code="1013"}`,
		`ephpm_ws_closed_total{cause="shutdown"}`, `ephpm_ws_close_codes_total{code="1001"}`,
	} {
		a.wantMetric(series, 0)
	}
	resp, _ := a.get("/metrics")
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || !strings.HasPrefix(got, "text/plain; version=0.0.4") {
		t.Errorf("metrics: %s %q", resp.Status, got)
	}
}

func TestSocketMetricsCount(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	f := a.dialWire(events(`ephpm_ws_send('12345');`, ""))
	f.want(frameText, "12345")
	f.say(frameText, `$x = 1;`)
	f.say(framePing, "not counted")
	f.want(framePong, "not counted")
	f.say(frameBinary, `return 7;`)
	f.want(frameText, "7")
	f.say(frameClose, "")
	a.trail(1)
	for series, want := range map[string]float64{
		"ephpm_ws_connections_total": 1, "ephpm_ws_connections_active": 0,
		`ephpm_ws_events_total{event="connect"}`: 1, `ephpm_ws_events_total{event="message"}`: 2, `ephpm_ws_events_total{event="disconnect"}`: 1,
		"ephpm_ws_frames_received_total": 2, "ephpm_ws_frames_queued_total": 2, "ephpm_ws_frames_sent_total": 2,
		"ephpm_ws_received_bytes_total": 16, "ephpm_ws_sent_bytes_total": 6, `ephpm_ws_closed_total{cause="client"}`: 1,
		`ephpm_ws_close_codes_total{code="1005"}`: 1, `ephpm_ws_event_duration_seconds_count{event="message"}`: 2,
	} {
		a.waitMetric(series, want)
	}
}
