package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ephpm/quic"
)

// Values of the label "stage" of ephpm_http3_connection_errors_total.
const (
	stageHandshake = "handshake"
	stageSession   = "session" // after it
)

// http3Metrics counts HTTP/3. It always counts; without a registry nobody asks.
type http3Metrics struct {
	connections prometheus.Counter
	active      prometheus.Gauge
	broken      prometheus.Counter
	requests    prometheus.Counter
	duration    prometheus.Histogram
	stripped    prometheus.Counter
}

func newHTTP3Metrics(m *metrics, all []*quic.Endpoint) *http3Metrics {
	h := &http3Metrics{
		connections: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ephpm_http3_connections_total", Help: "Connections whose handshake was completed.",
		}),
		active: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ephpm_http3_connections_active", Help: "Connections that are open.",
		}),
		broken: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ephpm_http3_connection_errors_total", Help: "Connections that ended by an error.",
			ConstLabels: prometheus.Labels{"stage": stageSession},
		}),
		requests: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ephpm_http3_requests_total", Help: "Requests over HTTP/3.",
		}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ephpm_http3_request_duration_seconds", Help: "From a request's header to the end of its response, over HTTP/3.", Buckets: seconds,
		}),
		stripped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ephpm_http3_stripped_headers_total", Help: "Header fields of answers that HTTP/3 forbids, such as Connection, and that were left out.",
		}),
	}
	sum := func(count func(*quic.Handshakes) int64) func() float64 {
		return func() float64 {
			n := int64(0)
			for _, e := range all {
				n += count(&e.Handshakes)
			}
			return float64(n)
		}
	}
	if m != nil {
		m.registry.MustRegister(h.connections, h.active, h.broken, h.requests, h.duration, h.stripped,
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: "ephpm_http3_connection_errors_total", Help: "Connections that ended by an error.",
				ConstLabels: prometheus.Labels{"stage": stageHandshake},
			}, sum((*quic.Handshakes).Failed)),
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: "ephpm_http3_retries_total", Help: "Clients that were asked to prove their address.",
			}, sum((*quic.Handshakes).Retries)),
		)
	}
	return h
}

func (h *http3Metrics) opened() {
	h.connections.Inc()
	h.active.Inc()
}

func (h *http3Metrics) closed(cause error) {
	h.active.Dec()
	if !isOrderly(cause) {
		h.broken.Inc()
	}
}

func (h *http3Metrics) answered(start time.Time) {
	h.requests.Inc()
	h.duration.Observe(time.Since(start).Seconds())
}
