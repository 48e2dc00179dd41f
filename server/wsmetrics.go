package server

import (
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"ephpm/websocket"
)

// Why an upgrade was refused before PHP saw it, as the label "reason".
const (
	refusedHandshake  = "handshake"
	refusedTransport  = "transport"
	refusedCapacity   = "capacity"
	refusedOrigin     = "origin"
	refusedEntrypoint = "entrypoint"
	refusedSite       = "site" // the host name is none's
	refusedShutdown   = "shutdown"
	refusedRate       = "rate"
	refusedRequest    = "request" // as any request would be: its path, its host name, a rule
)

// Events, as WS_EVENT and as the label "event".
const (
	eventConnect    = "connect"
	eventMessage    = "message"
	eventDisconnect = "disconnect"
)

// Why an event did not run to its end, as the label "reason".
const (
	failedFatal    = "fatal"    // a fatal error, or PHP answered 5xx
	failedCrash    = "crash"    // the worker died
	failedTimeout  = "timeout"  // over the limit and killed
	failedBusy     = "busy"     // no worker came free
	failedCanceled = "canceled" // the client or the server left first
	failedOther    = "other"
)

// socketMetrics are the ephpm_ws_ series of the server; all sites count into
// the same. Every series is there from the start.
type socketMetrics struct {
	frames websocket.Stats
	active atomic.Int64

	presenceUsers atomic.Int64

	admitted        prometheus.Counter
	full            *prometheus.CounterVec // reason: server_full, site_full, ip_full
	handshake       *prometheus.CounterVec // reason: one of the refused constants
	connectNo       prometheus.Counter
	event           map[string]*eventMetrics // never changes
	eventFailures   *prometheus.CounterVec
	eventTimeouts   prometheus.Counter
	queued          prometheus.Counter
	rejected        *prometheus.CounterVec // reason: too_large, invalid_utf8
	overflow        prometheus.Counter
	overRate        prometheus.Counter
	presenceJoins   prometheus.Counter
	presenceLeaves  prometheus.Counter
	presenceRefused prometheus.Counter
	causes          *prometheus.CounterVec
	codes           *prometheus.CounterVec

	streams *streamMetrics
	state   socketState
}

// eventMetrics are those of the events of one name.
type eventMetrics struct {
	given       prometheus.Counter
	queued, ran prometheus.Observer
	waiting     atomic.Int64 // for their turn
}

// newSocketMetrics registers the series with r. A nil r counts unseen.
func newSocketMetrics(r prometheus.Registerer) *socketMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "ephpm_ws_" + name, Help: help})
	}
	vector := func(name, help, label string, values ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ephpm_ws_" + name, Help: help}, []string{label})
		for _, value := range values {
			v.WithLabelValues(value)
		}
		return v
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "ephpm_ws_" + name, Help: help, Buckets: seconds}, []string{"event"})
	}
	given := vector("events_total", "Events given to PHP.", "event")
	queued := histogram("event_queue_duration_seconds", "Time an event that ran had waited for a worker.")
	ran := histogram("event_duration_seconds", "Time of an event's script in its worker.")
	m := &socketMetrics{
		admitted:  counter("connections_total", "WebSockets admitted, before the connect event decided."),
		full:      vector("connections_rejected_total", "WebSockets refused at a limit.", "reason", fullServer, fullSite, fullIP),
		connectNo: counter("connect_rejected_total", "WebSockets that the connect event did not accept."),
		handshake: vector("handshake_rejected_total", "WebSockets refused before PHP saw them.", "reason",
			refusedHandshake, refusedTransport, refusedCapacity, refusedOrigin, refusedEntrypoint, refusedSite, refusedShutdown, refusedRate, refusedRequest),
		event:           map[string]*eventMetrics{},
		eventTimeouts:   counter("event_timeouts_total", "Message events killed over the time limit."),
		queued:          counter("frames_queued_total", "Data frames accepted into queues."),
		rejected:        vector("frames_rejected_total", "Payloads that scripts could not send.", "reason", "too_large", "invalid_utf8"),
		overflow:        counter("send_queue_overflow_total", "Sends refused because the queue was full."),
		overRate:        counter("message_rate_exceeded_total", "WebSockets closed because they sent too many messages."),
		presenceJoins:   counter("presence_joins_total", "Users that came into a channel, with their first connection."),
		presenceLeaves:  counter("presence_leaves_total", "Users that left a channel, with their last connection."),
		presenceRefused: counter("presence_refused_total", "Subscriptions refused because presence_memory was full."),
		causes:          vector("closed_total", "WebSockets closed.", "cause"),
		codes:           vector("close_codes_total", "WebSockets closed, by the code reported to disconnect.", "code", closeCodes()...),
		eventFailures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ephpm_ws_event_failures_total", Help: "Events that did not run to their end.",
		}, []string{"event", "reason"}),
	}
	for _, cause := range websocket.Causes() {
		m.causes.WithLabelValues(string(cause))
	}
	for _, event := range []string{eventConnect, eventMessage, eventDisconnect} {
		m.event[event] = &eventMetrics{given: given.WithLabelValues(event), queued: queued.WithLabelValues(event), ran: ran.WithLabelValues(event)}
		for _, reason := range []string{failedFatal, failedCrash, failedTimeout, failedBusy, failedCanceled, failedOther} {
			m.eventFailures.WithLabelValues(event, reason)
		}
	}
	m.streams = newStreamMetrics(r)
	if r != nil {
		r.MustRegister(given, queued, ran, &m.state,
			counter("cross_site_denied_total", "Always 0: a site cannot name another site's connections."))
		m.register(r)
	}
	return m
}

func (m *socketMetrics) register(r prometheus.Registerer) {
	total := func(name, help string, n *atomic.Int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "ephpm_ws_" + name, Help: help},
			func() float64 { return float64(n.Load()) })
	}
	for name, e := range m.event {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ephpm_ws_events_waiting", Help: "Events that wait for their turn to be given to the pool.",
			ConstLabels: prometheus.Labels{"event": name},
		}, func() float64 { return float64(e.waiting.Load()) }))
	}
	r.MustRegister(m.admitted, m.full, m.handshake, m.connectNo, m.eventFailures, m.eventTimeouts,
		m.queued, m.rejected, m.overflow, m.overRate,
		m.presenceJoins, m.presenceLeaves, m.presenceRefused, m.causes, m.codes,
		total("frames_received_total", "Data messages received.", &m.frames.FramesIn),
		total("frames_sent_total", "Data frames written.", &m.frames.FramesOut),
		total("received_bytes_total", "Payload bytes of data messages received.", &m.frames.BytesIn),
		total("sent_bytes_total", "Payload bytes of data frames written.", &m.frames.BytesOut),
		total("messages_dropped_total", "Messages received on WebSockets that were closed before they were handled.", &m.frames.Dropped),
		total("deflated_bytes_total", "Payload bytes that were compressed.", &m.frames.DeflatedFrom),
		total("deflated_sent_bytes_total", "What those were compressed to.", &m.frames.DeflatedTo),
		total("inflated_bytes_total", "Payload bytes that came compressed, decompressed.", &m.frames.InflatedTo),
		total("inflated_received_bytes_total", "What those were decompressed from.", &m.frames.InflatedFrom),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ephpm_ws_compression_ratio", Help: "Size of all payloads that were compressed, by their size before; 0 when there were none.",
		}, func() float64 {
			return float64(m.frames.DeflatedTo.Load()) / max(1, float64(m.frames.DeflatedFrom.Load()))
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ephpm_ws_connections_active", Help: "WebSockets registered, those in their connect event included.",
		}, func() float64 { return float64(m.active.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ephpm_ws_presence_users", Help: "Users in channels; one in two channels counts twice.",
		}, func() float64 { return float64(m.presenceUsers.Load()) }),
	)
}

// admit and left count a connection that comes and goes.
func (m *socketMetrics) admit(t transport) {
	if t != overSocket {
		m.streams.admit(t)
		return
	}
	m.admitted.Inc()
	m.active.Add(1)
}

func (m *socketMetrics) left(t transport) {
	if t != overSocket {
		m.streams.active[t].Add(-1)
		return
	}
	m.active.Add(-1)
}

// refused counts a client that PHP does not see.
func (m *socketMetrics) refused(t transport, no *refusal) {
	if t != overSocket {
		m.streams.refused.WithLabelValues(no.reason).Inc()
		return
	}
	m.handshake.WithLabelValues(no.reason).Inc()
	if no.full != "" {
		m.full.WithLabelValues(no.full).Inc()
	}
}

// notAccepted counts a client whose connect event did not accept it.
func (m *socketMetrics) notAccepted(t transport) {
	if t != overSocket {
		m.streams.refused.WithLabelValues(refusedConnect).Inc()
		return
	}
	m.connectNo.Inc()
}

func (m *socketMetrics) closed(t transport, c websocket.Closed) {
	if t != overSocket {
		m.streams.closed.WithLabelValues(t.String(), string(c.Cause)).Inc()
		return
	}
	m.causes.WithLabelValues(string(c.Cause)).Inc()
	m.codes.WithLabelValues(closeCode(c.Code)).Inc()
}

// closeCode is the label for a close code: clients choose codes, so those for
// applications are counted together.
func closeCode(code int) string {
	switch {
	case code >= 1000 && code <= 1014:
		return strconv.Itoa(code)
	case code >= 3000 && code <= 3999:
		return "3xxx"
	case code >= 4000 && code <= 4999:
		return "4xxx"
	}
	return "other"
}

func closeCodes() []string {
	codes := []string{"3xxx", "4xxx", "other"}
	for code := 1000; code <= 1014; code++ {
		if code != 1004 {
			codes = append(codes, strconv.Itoa(code))
		}
	}
	return codes
}
