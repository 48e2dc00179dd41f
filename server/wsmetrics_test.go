package server

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestSocketSeriesAreThereFromTheStart(t *testing.T) {
	b := &bench{t: t, metrics: prometheus.NewRegistry()}
	newSocketMetrics(b.metrics)
	for _, series := range []string{
		"ephpm_ws_connections_total", "ephpm_ws_connections_active",
		`ephpm_ws_connections_rejected_total{reason="server_full"}`, `ephpm_ws_connections_rejected_total{reason="site_full"}`,
		`ephpm_ws_connections_rejected_total{reason="ip_full"}`, "ephpm_ws_message_rate_exceeded_total",
		`ephpm_ws_handshake_rejected_total{reason="handshake"}`, `ephpm_ws_handshake_rejected_total{reason="transport"}`,
		`ephpm_ws_handshake_rejected_total{reason="capacity"}`, "ephpm_ws_connect_rejected_total",
		`ephpm_ws_events_total{event="connect"}`, `ephpm_ws_events_total{event="disconnect"}`,
		"ephpm_ws_event_timeouts_total", "ephpm_ws_frames_received_total", "ephpm_ws_frames_queued_total",
		"ephpm_ws_frames_sent_total", `ephpm_ws_frames_rejected_total{reason="too_large"}`,
		"ephpm_ws_send_queue_overflow_total", "ephpm_ws_cross_site_denied_total",
		`ephpm_ws_closed_total{cause="gone"}`, `ephpm_ws_close_codes_total{code="1006"}`,
		`ephpm_ws_event_failures_total{event="message",reason="crash"}`, "ephpm_ws_compression_ratio",
		"ephpm_ws_channels", "ephpm_ws_subscriptions", "ephpm_ws_send_queue_frames", "ephpm_ws_send_queue_bytes",
		"ephpm_ws_send_queue_connections", "ephpm_ws_messages_waiting", "ephpm_ws_messages_dropped_total",
		`ephpm_ws_events_waiting{event="message"}`,
	} {
		b.wantCount(series, 0)
	}
}

func TestCloseCodesOfClientsAreBounded(t *testing.T) {
	for code, want := range map[int]string{1000: "1000", 1014: "1014", 1015: "other", 2500: "other", 3999: "3xxx", 4000: "4xxx", 70000: "other"} {
		if got := closeCode(code); got != want {
			t.Errorf("label of %d = %q, want %q", code, got, want)
		}
	}
}
