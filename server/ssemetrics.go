package server

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"ephpm/eventstream"
	"ephpm/websocket"
)

// refusedConnect is the label "reason" of an event stream that the connect event did
// not accept. The others are those of sockets.
const refusedConnect = "connect"

// streamMetrics are the ephpm_ws_stream series: what others count for sockets, for
// event streams. What counts scripts, such as ephpm_ws_events_total, has both.
type streamMetrics struct {
	frames eventstream.Stats
	active [transports]atomic.Int64

	admitted *prometheus.CounterVec // transport: sse, poll
	refused  *prometheus.CounterVec // reason
	closed   *prometheus.CounterVec // transport, cause
	resumed  *prometheus.CounterVec // complete: true, false
}

// newStreamMetrics registers the series with r. A nil r counts unseen.
func newStreamMetrics(r prometheus.Registerer) *streamMetrics {
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ephpm_ws_" + name, Help: help}, labels)
	}
	m := &streamMetrics{
		admitted: vector("streams_total", "Event streams admitted, before the connect event decided.", "transport"),
		refused:  vector("streams_refused_total", "Event streams that were refused.", "reason"),
		closed:   vector("streams_closed_total", "Event streams closed.", "transport", "cause"),
		resumed:  vector("streams_resumed_total", "Event streams that went on from a Last-Event-ID; complete: nothing was missing.", "complete"),
	}
	active := make([]prometheus.Collector, 0, transports)
	for _, t := range []transport{overSSE, overPoll} {
		m.admitted.WithLabelValues(t.String())
		for _, cause := range websocket.Causes() {
			m.closed.WithLabelValues(t.String(), string(cause))
		}
		active = append(active, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ephpm_ws_streams_active", Help: "Event streams registered, those in their connect event included.",
			ConstLabels: prometheus.Labels{"transport": t.String()},
		}, func() float64 { return float64(m.active[t].Load()) }))
	}
	for _, reason := range []string{refusedHandshake, refusedCapacity, refusedOrigin, refusedShutdown, refusedRate, refusedConnect} {
		m.refused.WithLabelValues(reason)
	}
	for _, complete := range []string{"true", "false"} {
		m.resumed.WithLabelValues(complete)
	}
	if r == nil {
		return m
	}
	total := func(name, help string, n *atomic.Int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "ephpm_ws_stream_" + name, Help: help},
			func() float64 { return float64(n.Load()) })
	}
	r.MustRegister(active...)
	r.MustRegister(m.admitted, m.refused, m.closed, m.resumed,
		total("frames_received_total", "Messages that clients of event streams sent.", &m.frames.FramesIn),
		total("frames_sent_total", "Data frames sent on event streams.", &m.frames.FramesOut),
		total("received_bytes_total", "Payload bytes of those messages.", &m.frames.BytesIn),
		total("sent_bytes_total", "Payload bytes of those frames.", &m.frames.BytesOut),
	)
	return m
}

func (m *streamMetrics) admit(t transport) {
	m.admitted.WithLabelValues(t.String()).Inc()
	m.active[t].Add(1)
}
