package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// holdFiles are scripts for tests of the pool: one waits at a gate and says which
// worker runs it.
var holdFiles = map[string]string{
	"hold.php":  `<?php file_get_contents($_GET['gate']); echo getmypid();`,
	"index.php": `<?php echo $_GET['i'] ?? getmypid();`,
}

// waitLong lets requests wait for a worker for as long as a test takes on a busy
// machine. More of [php] may follow.
const waitLong = "[php]\nworker_backlog_wait = \"1h\"\n"

// hold starts a script that is at its gate when hold returns. Where pages may not
// wait for long, a busy machine may refuse it at first.
func hold(a *app) (*gate, *late) {
	a.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		g := newGate(a.t)
		l := a.later(a.request("GET", "/hold.php?gate="+g.path, ""))
		if g.reached(l.there) {
			return g, l
		}
		if resp, body := l.wait(); resp.StatusCode != http.StatusServiceUnavailable || time.Now().After(deadline) {
			a.t.Fatalf("a script that waits at its gate was answered with %s %q", resp.Status, body)
		}
	}
}

// queueUp sends n requests for index.php of holdFiles and returns when all of them wait
// in the backlog. The server has metricsOn, and its workers are held.
func (a *app) queueUp(n int) []*late {
	a.t.Helper()
	var waiting []*late
	for i := range n {
		waiting = append(waiting, a.later(a.request("GET", fmt.Sprintf("/?i=%d", i), "")))
	}
	a.waitMetric(`ephpm_php_backlog{class="page"}`, float64(n))
	return waiting
}

// wantServed waits for the answers to the requests of queueUp.
func wantServed(t *testing.T, waiting []*late) {
	t.Helper()
	for i, l := range waiting {
		if resp, body := l.wait(); resp.StatusCode != 200 || body != fmt.Sprint(i) {
			t.Errorf("a request that waited: %s %q, want %d", resp.Status, body, i)
		}
	}
}

// waitWorkers waits until so many processes are workers.
func (a *app) waitWorkers(want int) {
	a.t.Helper()
	err := eventually(func() error {
		if got := len(a.workers()); got != want {
			return fmt.Errorf("there are %d", got)
		}
		return nil
	})
	if err != nil {
		a.t.Errorf("never %d workers: %v", want, err)
	}
}

func TestBacklogThatIsFullIs503(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  metricsOn + waitLong + "workers = 1\nworker_backlog = 2\n",
		Files: holdFiles,
	})
	g, held := hold(a)
	waiting := a.queueUp(2)
	for range 10 {
		resp, body := a.get("/?i=refused")
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || body != "503 Service Unavailable\n" {
			t.Errorf("%s, Retry-After %q, %q; want 503 and when to come back", resp.Status, resp.Header.Get("Retry-After"), body)
		}
	}
	g.open()
	held.wait()
	wantServed(t, waiting)
	a.waitMetric(`ephpm_php_refused_total{class="page"}`, 10)
	a.waitMetric(`ephpm_php_backlog{class="page"}`, 0)
	// The last answer is out a moment before its worker is free.
	a.wantBodyUnless(503, "/?i=next", "next")
}

func TestNoBacklogMeansNobodyWaits(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: "[php]\nworkers = 2\nworker_backlog = 0\n", Files: holdFiles})
	first, held1 := hold(a)
	second, held2 := hold(a)
	if resp, _ := a.get("/"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the third of two: %s, want 503", resp.Status)
	}
	first.open()
	second.open()
	held1.wait()
	held2.wait()
}

func TestRequestThatWaitsTooLongIs503(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: "[php]\nworkers = 1\nworker_backlog_wait = \"100ms\"\n", Files: holdFiles})
	g, held := hold(a)
	var wg sync.WaitGroup
	for range 100 { // more than there are jobs: some wait for one, some in one
		wg.Go(func() {
			resp, _, err := fetch(a.request("GET", "/", ""))
			if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
				t.Errorf("%v, %v; want 503 with Retry-After", resp, err)
			}
		})
	}
	wg.Wait()
	a.waitLine(`level=WARN msg="script not run"`, `site=default`, `request=\S+`, `script=\S+/index\.php`)
	g.open()
	held.wait()
	a.wantBodyUnless(503, "/?i=next", "next")
}

func TestBacklogIsFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	if got, want := orderServed(t, 50); got != want {
		t.Errorf("served in the order %q, want %q", got, want)
	}
}

// orderServed lets n requests wait for the only worker, one behind the other, and
// returns the order in which they were served, and the one in which they came.
func orderServed(t *testing.T, n int) (got, want string) {
	t.Helper()
	a := startApp(t, appOptions{
		TOML: metricsOn + waitLong + "workers = 1\n",
		Files: map[string]string{
			"hold.php":  holdFiles["hold.php"],
			"index.php": `<?php file_put_contents($_GET['order'], $_GET['i'] . " ", FILE_APPEND);`,
		}})
	order := filepath.Join(t.TempDir(), "order")
	g, held := hold(a)
	var waiting []*late
	for i := range n {
		waiting = append(waiting, a.later(a.request("GET", fmt.Sprintf("/?i=%d&order=%s", i, order), "")))
		a.waitMetric(`ephpm_php_backlog{class="page"}`, float64(i+1))
		want += fmt.Sprintf("%d ", i)
	}
	g.open()
	held.wait()
	for _, l := range waiting {
		l.wait()
	}
	text, err := os.ReadFile(order)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), want
}

// holdFour has four scripts run at the same time.
func holdFour(a *app) (gates []*gate, answers []*late) {
	a.t.Helper()
	for range 4 {
		g, l := hold(a)
		gates, answers = append(gates, g), append(answers, l)
	}
	a.waitWorkers(4)
	return gates, answers
}

// runFour does so, and ends them.
func runFour(a *app) {
	a.t.Helper()
	gates, answers := holdFour(a)
	for i, g := range gates {
		g.open()
		answers[i].wait()
	}
}

func TestPoolGrowsToItsMaximumAndShrinks(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  metricsOn + "[php]\nmin_workers = 1\nworkers = 4\nworker_idle_timeout = \"200ms\"\n",
		Files: holdFiles,
	})
	patient := startApp(t, appOptions{
		TOML:  "[php]\nmin_workers = 1\nworkers = 4\nworker_idle_timeout = \"1h\"\n",
		Files: holdFiles,
	})
	runFour(patient)
	a.waitWorkers(1)
	if _, body := a.get("/"); body != fmt.Sprint(a.workers()[0]) {
		t.Errorf("run by %s, want the only worker of %v", body, a.workers())
	}

	gates, answers := holdFour(a)
	late := a.later(a.request("GET", "/?i=fifth", ""))
	a.waitMetric(`ephpm_php_backlog{class="page"}`, 1)
	if n := len(a.workers()); n != 4 {
		t.Errorf("%d workers, want at most 4", n)
	}

	seen := map[string]bool{}
	for i, g := range gates {
		g.open()
		_, pid := answers[i].wait()
		seen[pid] = true
	}
	if len(seen) != 4 {
		t.Errorf("run by the workers %v, want four", seen)
	}
	if _, body := late.wait(); body != "fifth" {
		t.Errorf("the fifth: %q", body)
	}
	a.waitWorkers(1) // those of the other have been idle for longer
	if n := len(patient.workers()); n != 4 {
		t.Errorf("with an hour to be idle %d workers are left of 4", n)
	}
	if n, err := a.metric("ephpm_php_worker_crashes_total"); n != 0 || err != nil {
		t.Errorf("%v crashes counted, %v; want none", n, err)
	}
	if err := wantBody(a.request("GET", "/?i=again", ""), "again"); err != nil {
		t.Error(err)
	}
}

// The defaults are derived: some are ready, and more than that may run.
func TestPoolSizeIsDerived(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: holdFiles})
	var least, most int
	if _, err := fmt.Sscan(strings.Join(a.waitLog(`workers_min=(\d+) workers_max=(\d+) workers_auto=true`)[1:], " "), &least, &most); err != nil {
		t.Fatal(err)
	}
	if least < 2 || most < 16 || most > 512 {
		t.Errorf("%d to %d workers, want at least 2 ready and 16 to 512 in all", least, most)
	}
	a.waitWorkers(least)
}

func TestWorkerIsRecycledAfterItsShare(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  metricsOn + "[php]\nworkers = 8\nworker_max_requests = 10\n",
		Files: holdFiles,
	})
	var mu sync.Mutex
	served := map[string]int{}
	for range 2 {
		hundred(t, func(int) error {
			resp, pid, err := fetch(a.request("GET", "/", ""))
			if err == nil && resp.StatusCode != 200 {
				err = fmt.Errorf("%s %q", resp.Status, pid)
			}
			mu.Lock()
			defer mu.Unlock()
			served[pid]++
			return err
		})
	}
	for pid, n := range served {
		if n > 10 {
			t.Errorf("worker %s served %d requests, want at most 10", pid, n)
		}
	}
	err := eventually(func() error { // the last is counted when its worker has ended
		n, err := a.metric("ephpm_php_worker_recycles_total")
		if err == nil && n < 2 {
			err = fmt.Errorf("%v recycled", n)
		}
		return err
	})
	if err != nil {
		t.Errorf("want at least 2 workers recycled: %v", err)
	}
	if n, err := a.metric("ephpm_php_worker_crashes_total"); n != 0 || err != nil {
		t.Errorf("%v crashes counted, %v; want none", n, err)
	}
}

// Not parallel: the server's processes are weighed.
func TestTenThousandRequestsLeaveMemoryFlat(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's own memory grows")
	}
	const requests = 10_000
	a := startApp(t, appOptions{
		TOML: "[php]\nworkers = 2\nmin_workers = 2\nworker_max_requests = 0\n" + sessionsIn(t)[len("[php]\n"):],
		Files: map[string]string{"index.php": `<?php
			header("X-Number: {$_GET['i']}");
			class Node { public $next; }
			$a = new Node; $b = new Node; $a->next = $b; $b->next = $a;
			$text = str_repeat($_GET['i'], 1000);
			preg_match('/(\d+)' . $_GET['i'] % 100 . '/', $text);
			register_shutdown_function(function () { echo "."; });
			echo strlen($text), json_encode($_POST), file_get_contents('php://input') === '' ? 'none' : 'some';
			if ($_GET['i'] % 100 == 0) missing();
			ob_start();`},
	})
	run := func(n int) {
		t.Helper()
		var wg sync.WaitGroup
		for c := range 8 {
			wg.Go(func() {
				for i := c; i < n; i += 8 {
					body := ""
					if i%3 == 0 {
						body = "field=" + repeat(i%2000)
					}
					req := a.request("POST", fmt.Sprintf("/?i=%d", i), body, "Content-Type", "application/x-www-form-urlencoded")
					if _, _, err := fetch(req); err != nil {
						t.Errorf("request %d: %v", i, err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	run(requests) // fills caches, arenas and the Go heap
	before, err := a.memory()
	if err != nil {
		t.Fatal(err)
	}
	run(requests)
	// The Go heap breathes; what it has given up is returned in time.
	const room = 4 << 20
	err = eventually(func() error {
		after, err := a.memory()
		if err == nil && after > before+room {
			err = fmt.Errorf("%d KiB before, %d KiB behind %d requests", before>>10, after>>10, requests)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	after, _ := a.memory() // only told
	t.Logf("%d KiB before, %d KiB behind %d requests", before>>10, after>>10, requests)
}

func TestKeepAliveConnectionIsReused(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: holdFiles})
	w := a.connect()
	for i := range 10 {
		w.send(getText(fmt.Sprintf("/?i=%d", i)))
		if _, body := w.answer(); body != fmt.Sprint(i) {
			t.Errorf("answer %d on the connection is %q", i, body)
		}
	}
}
