package server

import (
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ephpm/phpbridge"
)

// A handler says which part of the server answered a request, as the label
// "handler".
type handler uint8

const (
	handlerError handler = iota
	handlerPHP
	handlerStatic
	handlerWebSocket
	handlerStream
	handlerHealth
	handlerMetrics
	handlerACME
	handlers
)

var handlerNames = [handlers]string{"error", "php", "static", "websocket", "stream", "health", "metrics", "acme"}

// Values of the label "stage" of ephpm_http_timeouts_total.
const (
	stageRequest = "request" // the script ran too long
	stageBody    = "body"    // the client stopped sending
)

var (
	// methodNames are the values of the label "method"; all others are the last.
	methodNames = [...]string{"GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "OTHER"}

	// statuses are the values of the label "status"; all others are "other".
	statuses = []int{
		101, 200, 201, 202, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 408, 409, 410, 412,
		413, 415, 416, 422, 429, 431, 500, 501, 502, 503, 504,
	}

	seconds   = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	byteSizes = []float64{100, 1e3, 10e3, 100e3, 1e6, 10e6}
	ratios    = []float64{.05, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1}
)

// Why a connection was closed before its end, as the label "reason".
const (
	cutForRoom    = "room" // it had not asked for anything, and another one came
	cutSlowClient = "slow" // it did not take its answer
)

// metrics counts for Prometheus, in a registry of its own. A nil *metrics counts
// nothing. No series has a label whose values a client can invent.
type metrics struct {
	registry *prometheus.Registry
	endpoint http.Handler

	inFlight atomic.Int64
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	series   [len(methodNames)][handlers]series
	received [len(methodNames)]prometheus.Observer // bytes of request bodies
	sent     [handlers]prometheus.Observer         // bytes of response bodies
	ratio    prometheus.Histogram

	timeouts   *prometheus.CounterVec
	overflows  prometheus.Counter
	ok, failed prometheus.Counter // scripts

	refused, cut *prometheus.CounterVec // connections
	limited      prometheus.Counter
	siteLimited  prometheus.Counter
	badHeaders   prometheus.Counter // of the PROXY protocol
	ran, queued  prometheus.Histogram
	output       prometheus.Histogram
}

// expected are the series of requests that are there from the start, at 0: what is
// likely to occur. A counter that begins with 1 is no increase to who computes
// rates. Others come when they occur.
var expected = []struct {
	by       handler
	methods  []string
	statuses []int
}{
	{handlerPHP, methodNames[:], []int{200, 201, 204, 301, 302, 303, 304, 400, 401, 403, 404, 422, 500, 502, 503, 504}},
	{handlerError, methodNames[:], []int{400, 403, 404, 408, 413, 429, 431, 500, 503}},
	{handlerStatic, []string{"GET", "HEAD"}, []int{200, 206, 301, 304, 404, 416}},
	{handlerWebSocket, []string{"GET"}, []int{101, 400, 401, 403, 404, 429, 500, 503, 504}},
	{handlerStream, []string{"GET", "POST"}, []int{200, 204, 400, 403, 404, 410, 413, 429, 500, 503}},
	{handlerHealth, []string{"GET", "HEAD"}, []int{200, 503}},
	{handlerMetrics, []string{"GET", "HEAD"}, []int{200}},
}

// A series is what one method and handler count into. It is resolved when first
// used, so that the hot path looks nothing up.
type series struct {
	duration atomic.Pointer[prometheus.Observer]
	status   [64]atomic.Pointer[prometheus.Counter] // by index in statuses
}

func newMetrics(log *slog.Logger) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ephpm_http_requests_total", Help: "Requests answered.",
		}, []string{"method", "status", "handler"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ephpm_http_request_duration_seconds", Help: "From a request's header to the end of its response.", Buckets: seconds,
		}, []string{"method", "handler"}),
		timeouts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ephpm_http_timeouts_total", Help: "Requests ended by a time limit.",
		}, []string{"stage"}),
		overflows: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ephpm_http_body_overflow_total", Help: "Requests refused because their body was too large.",
		}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ephpm_http_connections_refused_total", Help: "Connections over a limit.",
		}, []string{"reason"}),
		cut: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ephpm_http_connections_cut_total", Help: "Connections closed before their end: for a new one, or too slow.",
		}, []string{"reason"}),
		limited: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ephpm_rate_limited_total", Help: "Requests over the rate of their client.",
		}),
		siteLimited: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ephpm_site_rate_limited_total", Help: "Pages and connect events over the rate of their site.",
		}),
		badHeaders: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ephpm_proxy_protocol_errors_total", Help: "Connections of trusted proxies without a proper PROXY header.",
		}),
		ratio: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ephpm_http_compression_ratio", Help: "Size of an answer that was encoded as it was sent, by its size before.", Buckets: ratios,
		}),
		output: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ephpm_php_output_bytes", Help: "What a page's script printed.", Buckets: byteSizes,
		}),
		ran: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ephpm_php_execution_duration_seconds", Help: "Time of a page's script in its worker.", Buckets: seconds,
		}),
		queued: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ephpm_php_queue_duration_seconds", Help: "Time a page waited for a worker.", Buckets: seconds,
		}),
	}
	executions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ephpm_php_executions_total", Help: "Scripts run for pages; error: no answer, or a status of 500 and above.",
	}, []string{"status"})
	m.ok, m.failed = executions.WithLabelValues("ok"), executions.WithLabelValues("error")
	m.registerSizes()
	m.expect()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ephpm_build_info", Help: "Always 1.",
		ConstLabels: prometheus.Labels{"version": Build().Version, "go": Build().Go, "php": Build().PHP},
	})
	build.Set(1)
	m.registry.MustRegister(build, m.requests, m.duration, m.timeouts, m.overflows, executions, m.ran, m.queued, m.output,
		m.ratio,
		m.refused, m.cut, m.limited, m.siteLimited, m.badHeaders,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ephpm_http_requests_in_flight", Help: "Requests being answered.",
		}, func() float64 { return float64(m.inFlight.Load()) }),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.endpoint = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError),
	})
	return m
}

// registerSizes adds the sizes of bodies.
func (m *metrics) registerSizes() {
	received := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ephpm_http_request_body_bytes", Help: "Bytes of the request body that were read.", Buckets: byteSizes,
	}, []string{"method"})
	sent := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ephpm_http_response_body_bytes", Help: "Bytes of the response body as they were sent, before TLS.", Buckets: byteSizes,
	}, []string{"handler"})
	for i, method := range methodNames {
		m.received[i] = received.WithLabelValues(method)
	}
	for i, by := range handlerNames {
		m.sent[i] = sent.WithLabelValues(by)
	}
	m.registry.MustRegister(received, sent)
}

// expect makes the series that are there from the start.
func (m *metrics) expect() {
	for _, stage := range []string{stageRequest, stageBody} {
		m.timeouts.WithLabelValues(stage)
	}
	for _, reason := range []string{fullServer, fullIP} {
		m.refused.WithLabelValues(reason)
	}
	for _, reason := range []string{cutForRoom, cutSlowClient} {
		m.cut.WithLabelValues(reason)
	}
	for _, e := range expected {
		for _, method := range e.methods {
			m.duration.WithLabelValues(method, handlerNames[e.by])
			for _, status := range e.statuses {
				m.requests.WithLabelValues(method, strconv.Itoa(status), handlerNames[e.by])
			}
		}
	}
}

// begin and end enclose a request.
func (m *metrics) begin() {
	if m != nil {
		m.inFlight.Add(1)
	}
}

func (m *metrics) end() {
	if m != nil {
		m.inFlight.Add(-1)
	}
}

// answered counts a request. Status 0 is a client that left before its answer.
func (m *metrics) answered(w *response, method string, by handler, start time.Time) {
	if m == nil {
		return
	}
	i := slices.Index(methodNames[:], method)
	if i < 0 {
		i = len(methodNames) - 1
	}
	s := &m.series[i][by]
	(*s.observer(m, methodNames[i], by)).Observe(time.Since(start).Seconds())
	(*s.counter(m, methodNames[i], w.status, by)).Inc()
	m.received[i].Observe(float64(w.trail.body))
	bytes := w.bytes
	if method == http.MethodHead {
		bytes = 0 // what was written went nowhere
	}
	m.sent[by].Observe(float64(bytes))
	if w.encoded != nil && w.encoded.started && w.taken > 0 {
		m.ratio.Observe(float64(bytes) / float64(w.taken))
	}
}

func (s *series) observer(m *metrics, method string, by handler) *prometheus.Observer {
	if o := s.duration.Load(); o != nil {
		return o
	}
	o := m.duration.WithLabelValues(method, handlerNames[by])
	s.duration.Store(&o)
	return &o
}

func (s *series) counter(m *metrics, method string, status int, by handler) *prometheus.Counter {
	i, known := slices.BinarySearch(statuses, status)
	if !known {
		i = len(statuses)
	}
	if c := s.status[i].Load(); c != nil {
		return c
	}
	label := "other"
	if known {
		label = strconv.Itoa(status)
	}
	c := m.requests.WithLabelValues(method, label, handlerNames[by])
	s.status[i].Store(&c)
	return &c
}

// scriptRan counts the run of a page's script, which printed so many bytes.
func (m *metrics) scriptRan(r phpbridge.Result, printed int64, ok bool) {
	if m == nil {
		return
	}
	if ok {
		m.ok.Inc()
	} else {
		m.failed.Inc()
	}
	m.ran.Observe(r.Ran.Seconds())
	m.queued.Observe(r.Queued.Seconds())
	m.output.Observe(float64(printed))
}

func (m *metrics) timeout(stage string) {
	if m != nil {
		m.timeouts.WithLabelValues(stage).Inc()
	}
}

func (m *metrics) bodyOverflow() {
	if m != nil {
		m.overflows.Inc()
	}
}

func (m *metrics) connectionRefused(reason string) {
	if m != nil {
		m.refused.WithLabelValues(reason).Inc()
	}
}

func (m *metrics) connectionCut(reason string) {
	if m != nil {
		m.cut.WithLabelValues(reason).Inc()
	}
}

func (m *metrics) rateLimited() {
	if m != nil {
		m.limited.Inc()
	}
}

func (m *metrics) siteRateLimited() {
	if m != nil {
		m.siteLimited.Inc()
	}
}

func (m *metrics) badProxyHeader() {
	if m != nil {
		m.badHeaders.Inc()
	}
}

// accessLogs counts what the access logs lose.
func (m *metrics) accessLogs(a *accessLogs) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "ephpm_access_log_dropped_total", Help: "Lines of the access logs that the disk did not take.",
	}, func() float64 { return float64(a.dropped()) }))
}

// connections shows how many there are.
func (m *metrics) connections(open func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ephpm_http_connections", Help: "Connections of clients that count against the limits: TCP with WebSockets, and HTTP/3.",
	}, func() float64 { return float64(open()) }))
}
