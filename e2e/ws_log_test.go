package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// With -v the log tells the life of a socket, in four lines however long it was.
func TestVerboseLogOfASocket(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "", "-v")
	s := a.join("", "")
	id := s.id()
	s.wantRun(`return 'more';`, `"more"`)
	s.close()
	a.waitLog(`msg="event ran" site=default event=disconnect connection=` + id)
	lines := regexp.MustCompile(`.*\b`+id+`\b.*`).FindAllString(a.Log(), -1)
	want := []string{
		`level=DEBUG msg="event ran" site=default event=connect connection=` + id + ` queued=\S+ ran=\S+$`,
		`level=DEBUG msg="socket established" site=default connection=` + id + ` addr=127.0.0.1 proto=HTTP/1.1$`,
		`level=DEBUG msg="socket closed" site=default connection=` + id + ` code=1000 cause=client duration=\S+ messages_in=2 messages_out=2$`,
		`level=DEBUG msg="event ran" site=default event=disconnect connection=` + id + ` queued=\S+ ran=\S+$`,
	}
	if len(lines) != len(want) {
		t.Fatalf("the log has %d lines, want %d:\n%s", len(lines), len(want), strings.Join(lines, "\n"))
	}
	for i, line := range lines {
		if !regexp.MustCompile(want[i]).MatchString(line) {
			t.Errorf("line %d is %s, want %s", i, line, want[i])
		}
	}
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
		"ephpm_ws_inflated_bytes_total", "ephpm_ws_inflated_received_bytes_total", "ephpm_ws_compression_ratio",
		"ephpm_ws_channels", "ephpm_ws_subscriptions", "ephpm_ws_presence_users",
		"ephpm_ws_send_queue_frames", "ephpm_ws_send_queue_bytes", "ephpm_ws_send_queue_connections",
		"ephpm_ws_messages_waiting", "ephpm_ws_messages_dropped_total",
		`ephpm_ws_events_waiting{event="connect"}`, `ephpm_ws_events_waiting{event="message"}`, `ephpm_ws_events_waiting{event="disconnect"}`,
		`ephpm_ws_event_queue_duration_seconds_count{event="message"}`, `ephpm_ws_event_queue_duration_seconds_bucket{event="connect",le="1"}`,
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

// What is there and what waits is told as it is at the moment.
func TestSocketGauges(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nwrite_timeout_secs = 0\nping_interval_secs = 0\nsend_queue_bytes = 0\nsend_queue = 1000\n")
	f, other := a.dialWire(events(`ephpm_ws_subscribe('a'); ephpm_ws_subscribe('b');`, "")), a.dialWire(events(`ephpm_ws_subscribe('b');`, ""))
	a.wantMetric("ephpm_ws_channels", 2)
	a.wantMetric("ephpm_ws_subscriptions", 3)
	other.say(frameText, `return ephpm_ws_unsubscribe('b');`)
	other.want(frameText, "true")
	a.wantMetric("ephpm_ws_subscriptions", 2)

	// Three messages wait behind one that does not end; then it closes the socket.
	g := newGate(t)
	f.say(frameText, `file_get_contents('`+g.path+`'); ephpm_ws_close(4000);`)
	g.wait()
	f.send(strings.Repeat(whole(frameText, `trail('never');`), 3))
	a.wantMetric("ephpm_ws_messages_waiting", 3)
	g.open()
	f.wantClose(4000, "")
	a.wantMetric("ephpm_ws_messages_waiting", 0)
	a.wantMetric("ephpm_ws_messages_dropped_total", 3)
	a.wantMetric("ephpm_ws_channels", 0)
	a.wantMetric("ephpm_ws_subscriptions", 0)

	// One that does not read has what the kernel did not take.
	deaf := a.dialDeaf("/")
	deaf.say(frameText, `for ($i = 0; $i < 400; $i++) ephpm_ws_send(str_repeat('x', 100000)); trail('sent');`)
	a.trail(2)
	a.wantMetric("ephpm_ws_send_queue_connections", 1)
	err := eventually(func() error { // the kernel may take one more at any time
		var n [3]float64
		for i, name := range []string{"frames", "bytes", "frames"} {
			var err error
			if n[i], err = a.metric("ephpm_ws_send_queue_" + name); err != nil {
				return err
			}
		}
		const size = 100_000 + 10 // with its header
		if frames, bytes := n[0], n[1]; n[2] != frames || frames < 10 || frames > 400 || bytes <= (frames-1)*size || bytes > frames*size {
			return fmt.Errorf("%v frames wait, %v bytes", frames, bytes)
		}
		return nil
	})
	if err != nil {
		t.Errorf("of 400 frames of 100000 bytes: %v", err)
	}
	_ = deaf.Close()
	for _, series := range []string{"connections", "frames", "bytes"} {
		a.wantMetric("ephpm_ws_send_queue_"+series, 0)
	}
}

// Events that had to wait are seen by how long.
func TestLateEventsAreSeen(t *testing.T) {
	t.Parallel()
	a := startPlay(t, waitLong+"workers = 1\nworker_backlog = 1\n")
	var sockets []*frames
	for range 3 {
		sockets = append(sockets, a.dialWire(events("", "return 0;")))
	}
	holder := a.dialWire("/")
	g := newGate(t)
	holder.say(frameText, `file_get_contents('`+g.path+`');`)
	g.wait()
	sockets[0].say(frameText, `return 'late';`)
	a.wantMetric(`ephpm_ws_events_waiting{event="message"}`, 1)
	_ = sockets[1].Close()
	_ = sockets[2].Close()
	a.wantMetric(`ephpm_ws_events_waiting{event="disconnect"}`, 2)
	since := time.Now()
	if err := eventually(func() error {
		if time.Since(since) < 30*time.Millisecond {
			return errors.New("not late yet")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	g.open()
	sockets[0].want(frameText, `"late"`)
	for event, n := range map[string]float64{"message": 2, "disconnect": 2} {
		a.wantMetric(`ephpm_ws_events_waiting{event="`+event+`"}`, 0)
		a.wantMetric(`ephpm_ws_event_queue_duration_seconds_count{event="`+event+`"}`, n)
		soon, err := a.metric(`ephpm_ws_event_queue_duration_seconds_bucket{event="` + event + `",le="0.025"}`)
		if most := map[string]float64{"message": 1, "disconnect": 0}[event]; err != nil || soon > most {
			t.Errorf("%v of %s events are said to have run soon, %v; want %v at most", soon, event, err, most)
		}
	}
}
