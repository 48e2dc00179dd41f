package e2e

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// seriesOf returns the names of all series, with their labels. Help and types are
// left out.
func (a *app) seriesOf() map[string]bool {
	a.t.Helper()
	_, body := a.get("/metrics")
	all := map[string]bool{}
	for line := range strings.Lines(body) {
		if name, _, ok := strings.Cut(line, " "); ok && !strings.HasPrefix(line, "#") {
			all[name] = true
		}
	}
	return all
}

// What clients invent - hosts, methods, paths, header names - makes no series and
// takes no memory.
func TestInventedHostsLeaveSeriesAndMemoryFlat(t *testing.T) {
	t.Parallel()
	s := startSites(t, metricsOn+`
[server]
document_root = "$dir/sites/root"
sites_dir = "$dir/sites/dir"
sites_state_dir = "$dir/state"
websocket_files = ["ws.php"]
[kv]
memory_limit = "8MB"
`, map[string]string{"root/index.php": `<?php ephpm_kv_set('seen', 1); echo "other";`, "dir/a.example/index.php": `<?php echo "a";`})
	s.want("a.example", "/", 200, "a")
	invent := func(round int) {
		w := s.connect()
		defer w.Close()
		for i := range 1000 {
			// One by one on one connection: each is answered before the next.
			w.send(fmt.Sprintf("GET /p%d-%d HTTP/1.1\r\nHost: h%d-%d.example\r\nX-H%d-%d: x\r\nUser-Agent: u%d\r\n\r\n", round, i, round, i, round, i, i))
			if resp, body := w.answer(); resp.StatusCode != 200 || body != "other" {
				t.Fatalf("%s %q, want the page of the document root", resp.Status, body)
			}
		}
		for i := range 20 {
			w.send(fmt.Sprintf("M%d-%d / HTTP/1.1\r\nHost: x\r\n\r\n", round, i))
			w.answer()
		}
	}
	invent(0)
	before := s.seriesOf()
	resident, err := s.metric("process_resident_memory_bytes")
	if err != nil {
		t.Fatal(err)
	}
	invent(1)
	invent(2)
	after := s.seriesOf()
	for name := range after {
		if !before[name] {
			t.Errorf("a new series: %s", name)
		}
	}
	if now, err := s.metric("process_resident_memory_bytes"); err != nil || !raceEnabled && now > resident+16<<20 {
		t.Errorf("the front's memory went from %.0f to %.0f bytes (%v)", resident, now, err)
	}
	s.waitMetric(`ephpm_http_requests_total{handler="php",method="OTHER",status="200"}`, 60)
}

// Every series of the table is there, at 0, before anybody came.
func TestSeriesAreThereFromTheStart(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: metricsOn + "[server.tls]\n", Files: map[string]string{"index.php": ""}})
	_, body := a.get("/metrics")
	zero := map[string]bool{}
	in := bufio.NewScanner(strings.NewReader(body))
	for in.Scan() {
		if name, value, _ := strings.Cut(in.Text(), " "); value == "0" {
			zero[name] = true
		}
	}
	for _, name := range []string{
		`ephpm_http_request_body_bytes_count{method="POST"}`, `ephpm_http_request_body_bytes_bucket{method="GET",le="1e+07"}`,
		`ephpm_http_response_body_bytes_count{handler="php"}`, `ephpm_http_response_body_bytes_count{handler="static"}`,
		`ephpm_http_compression_ratio_count`, `ephpm_php_output_bytes_count`,
		`ephpm_php_shed_total{engine="pool",reason="busy"}`, `ephpm_php_shed_total{engine="pool",reason="late"}`,
		`ephpm_php_shed_total{engine="pool",reason="backlog"}`,
		`ephpm_fpm_pool_queue_depth`, `ephpm_fpm_pool_boot_failures_total`, `ephpm_fpm_pool_contained_crashes_total`,
		`ephpm_fpm_pool_recycles_total{reason="max_requests"}`, `ephpm_fpm_pool_recycles_total{reason="max_memory"}`,
		`ephpm_fpm_pool_recycles_total{reason="reload"}`, `ephpm_fpm_pool_panics_total`,
		`ephpm_opcache_hits_total`, `ephpm_opcache_restarts_total{reason="oom"}`, `ephpm_opcache_restarts_total{reason="hash"}`,
		`ephpm_opcache_restarts_total{reason="manual"}`, `ephpm_opcache_memory_bytes{state="wasted"}`, `ephpm_opcache_jit_buffer_free_bytes`,
		`ephpm_http_timeouts_total{stage="request"}`, `ephpm_http_timeouts_total{stage="body"}`, `ephpm_http_body_overflow_total`,
		`ephpm_rate_limited_total`, `ephpm_site_rate_limited_total`,
		`ephpm_php_executions_total{status="ok"}`, `ephpm_php_executions_total{status="error"}`, `ephpm_php_execution_duration_seconds_count`,
		`ephpm_ws_connections_active`, `ephpm_ws_events_total{event="message"}`, `ephpm_ws_cross_site_denied_total`,
	} {
		if !zero[name] {
			t.Errorf("%s is not there, at 0", name)
		}
	}
	if t.Failed() {
		t.Logf("at 0 are: %s", strings.Join(slices.Sorted(maps.Keys(zero)), "\n"))
	}
	if n, err := a.metric("ephpm_fpm_pool_size"); err != nil || n < 1 {
		t.Errorf("a pool of %v workers (%v)", n, err)
	}
}

// Sizes are those of the bodies: as they came, as scripts printed them, as they went.
func TestMetricsOfSizes(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: metricsOn, Files: map[string]string{
		"index.php": `<?php header('Content-Type: text/plain'); echo str_repeat('all work and no play ', 500);`, "a.bin": strings.Repeat("b", 3000),
	}})
	req := a.request("POST", "/", strings.Repeat("p", 12345), "Accept-Encoding", "gzip")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // all was read
	if err != nil || resp.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%v %v, want a page in gzip", err, resp.Header)
	}
	a.get("/a.bin")
	a.do(a.request("HEAD", "/a.bin", ""))
	for series, want := range map[string]float64{
		`ephpm_http_request_body_bytes_sum{method="POST"}`:                       12345,
		`ephpm_http_request_body_bytes_bucket{method="POST",le="10000"}`:         0,
		`ephpm_http_request_body_bytes_bucket{method="POST",le="100000"}`:        1,
		`ephpm_php_output_bytes_sum`:                                             10500,
		`ephpm_http_response_body_bytes_sum{handler="php"}`:                      float64(len(encoded)),
		`ephpm_http_response_body_bytes_sum{handler="static"}`:                   3000,
		`ephpm_http_response_body_bytes_count{handler="static"}`:                 2,
		`ephpm_http_compression_ratio_count`:                                     1,
		`ephpm_http_compression_ratio_sum`:                                       float64(len(encoded)) / 10500,
		`ephpm_http_requests_total{handler="static",method="HEAD",status="200"}`: 1,
		`ephpm_http_request_body_bytes_count{method="HEAD"}`:                     1,
		`ephpm_http_response_body_bytes_bucket{handler="static",le="100"}`:       1,
	} {
		a.waitMetric(series, want)
	}
}

// OPcache's state is there whatever scripts may ask, for all pools together.
func TestMetricsOfOPcache(t *testing.T) {
	t.Parallel()
	roots := [2]string{t.TempDir(), t.TempDir()}
	for _, root := range roots {
		writeFiles(t, root, map[string]string{"index.php": `<?php echo function_exists('opcache_get_status') ? 'may' : 'may not';`})
	}
	a := startApp(t, appOptions{TOML: metricsOn + fmt.Sprintf(`[server.security]
multi_tenant_hardening = true
[php]
ini_overrides = [["opcache.file_update_protection", "0"]]
[[site]]
names = ["shared.test"]
root = %q
[[site]]
names = ["own.test"]
root = %q
isolation = "process"
`, roots[0], roots[1])})
	one, err := a.metric(`ephpm_opcache_memory_bytes{state="free"}`)
	if err != nil || one < 1<<20 {
		t.Fatalf("%v bytes are free (%v)", one, err)
	}
	for _, host := range []string{"shared.test", "own.test"} {
		for range 5 {
			req := a.request("GET", "/", "")
			req.Host = host
			if err := wantBody(req, "may not"); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = eventually(func() error {
		for series, least := range map[string]float64{
			"ephpm_opcache_scripts": 2, "ephpm_opcache_misses_total": 2, "ephpm_opcache_hits_total": 4, "ephpm_opcache_max_keys": 100,
			`ephpm_opcache_memory_bytes{state="used"}`: 1 << 20, `ephpm_opcache_interned_strings_bytes{state="used"}`: 1000,
		} {
			if n, err := a.metric(series); err != nil || n < least {
				return fmt.Errorf("%s is %v (%v), want %v or more", series, n, err, least)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// All pools are in the same series, each of which is there once; what they count is
// exact when nothing runs.
func TestMetricsCountTheWorkersOfAllPools(t *testing.T) {
	t.Parallel()
	s := startSites(t, metricsOn+`[php]
workers = 3
min_workers = 3
[[site]]
names = ["a.example"]
root = "$dir/sites/a"
[[site]]
names = ["b.example"]
root = "$dir/sites/b"
isolation = "process"
workers = 2
[[site]]
names = ["c.example"]
root = "$dir/sites/c"
isolation = "process"
workers = 2
`, map[string]string{"a/index.php": `<?php echo "a";`, "b/index.php": `<?php echo "b";`, "c/index.php": `<?php echo "c"; if (isset($_GET['e'])) missing();`})
	for _, host := range []string{"a", "b", "c"} {
		for range 10 {
			s.want(host+".example", "/", 200, host)
		}
	}
	s.want("c.example", "/?e", 500, "")
	s.waitMetric(`ephpm_php_executions_total{status="ok"}`, 30)
	s.waitMetric(`ephpm_php_executions_total{status="error"}`, 1)
	s.waitMetric(`ephpm_http_requests_total{handler="php",method="GET",status="200"}`, 30)
	s.waitMetric(`ephpm_php_workers{state="busy"}`, 0)
	s.waitMetric(`ephpm_php_backlog{class="page"}`, 0)
	if err := eventually(func() error {
		idle, err := s.metric(`ephpm_php_workers{state="idle"}`)
		if err == nil && int(idle) != len(s.workers()) {
			err = fmt.Errorf("%v workers are counted, there are %d", idle, len(s.workers()))
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	_, body := s.get("/metrics")
	seen := map[string]int{}
	for line := range strings.Lines(body) {
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			seen[firstOf(name, " ")]++
		}
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s is there %d times", name, n)
		}
	}
	if seen["ephpm_php_workers"] == 0 {
		t.Errorf("the series are %v", seen)
	}
}

// Without metrics their path is the site's.
func TestMetricsAreOffByDefault(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php echo "the site's";`}})
	if resp, body := a.get("/metrics"); resp.StatusCode != 200 || body != "the site's" {
		t.Errorf("%s %.200q, want the site's page", resp.Status, body)
	}
}
