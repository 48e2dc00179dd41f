package server

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestMetricsCountWhatWasAnswered(t *testing.T) {
	s := newTest(t, files(t, "index.php", "a.txt"), &fakePool{}, func(c *Config) { c.Server.Metrics.Enabled = true })
	for range 3 {
		get(s, "/")
	}
	get(s, "/a.txt")
	get(s, "/%zz")
	do(s, "BREW", "/", nil)
	do(s, "POST", "/", strings.NewReader(strings.Repeat("x", 2000)))
	get(s, "/_ephpm/health")
	out := text(t, get(s, "/metrics"))
	for _, want := range []string{
		`ephpm_http_requests_total{handler="php",method="GET",status="200"} 3`,
		`ephpm_http_requests_total{handler="static",method="GET",status="200"} 1`,
		`ephpm_http_requests_total{handler="error",method="GET",status="400"} 1`,
		`ephpm_http_requests_total{handler="php",method="OTHER",status="200"} 1`,
		`ephpm_http_requests_total{handler="health",method="GET",status="200"} 1`,
		`ephpm_http_request_duration_seconds_count{handler="php",method="GET"} 3`,
		`ephpm_http_requests_in_flight 1`, // the scrape itself
		`ephpm_http_timeouts_total{stage="request"} 0`,
		`ephpm_http_timeouts_total{stage="body"} 0`,
		`ephpm_http_body_overflow_total 0`,
		`ephpm_php_executions_total{status="ok"} 5`,
		`ephpm_php_executions_total{status="error"} 0`,
		`ephpm_php_execution_duration_seconds_count 5`,
		`ephpm_http_request_body_bytes_count{method="GET"} 6`,
		`ephpm_http_request_body_bytes_sum{method="POST"} 2000`,
		`ephpm_http_request_body_bytes_bucket{method="POST",le="10000"} 1`,
		`ephpm_http_request_body_bytes_count{method="DELETE"} 0`,
		`ephpm_http_response_body_bytes_count{handler="static"} 1`,
		`ephpm_http_response_body_bytes_sum{handler="php"} 65`,
		`ephpm_http_response_body_bytes_count{handler="websocket"} 0`,
		`ephpm_php_output_bytes_sum 65`,
		`ephpm_http_compression_ratio_count 0`,
		`ephpm_build_info{`,
		`ephpm_http_requests_total{handler="php",method="POST",status="504"} 0`, // it never occurred
		`ephpm_http_requests_total{handler="websocket",method="GET",status="101"} 0`,
		`ephpm_http_request_duration_seconds_count{handler="static",method="HEAD"} 0`,
		`ephpm_rate_limited_total 0`,
		`ephpm_http_connections_refused_total{reason="ip_full"} 0`,
		`ephpm_access_log_dropped_total 0`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

func TestMetricsOffAreNotMounted(t *testing.T) {
	s := newTest(t, files(t, "index.php"), &fakePool{})
	if body := text(t, get(s, "/metrics")); body != "ran index.php" {
		t.Errorf("GET /metrics: %q, want the site's answer", body)
	}
}

func TestStatusesFitTheirSeries(t *testing.T) {
	if n := len(series{}.status); len(statuses) >= n {
		t.Errorf("%d statuses and \"other\" in %d places", len(statuses), n)
	}
}

// BenchmarkHello is everything but PHP and the network.
func BenchmarkHello(b *testing.B) {
	for _, metrics := range []bool{false, true} {
		b.Run(fmt.Sprintf("metrics=%v", metrics), func(b *testing.B) {
			benchmarkHello(b, metrics)
		})
	}
}

func benchmarkHello(b *testing.B, metrics bool) {
	c := DefaultConfig()
	c.Server.DocumentRoot = b.TempDir()
	c.Server.Metrics.Enabled = metrics
	writeFile(b, c.Server.DocumentRoot, "hello.php")
	s, err := newServer(c, discardPool{}, testStores(b, c), quiet)
	if err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/hello.php?a=1", nil)
	r.Header.Set("User-Agent", "benchmark")
	r.Header.Set("Accept", "*/*")
	b.ReportAllocs()
	for b.Loop() {
		s.ServeHTTP(discardResponse{}, r)
	}
}
