package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// holdLock locks a file as another program would.
func holdLock(t *testing.T, path string) (release func()) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// silentPeer accepts connections and never says a word.
func silentPeer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, nobody reads
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // it was only there
	return l.Addr().String()
}

// Whatever a script hangs in, it ends at its limit and grace, and others notice
// nothing.
func TestScriptsThatHangEnd(t *testing.T) {
	t.Parallel()
	lock := filepath.Join(t.TempDir(), "lock")
	defer holdLock(t, lock)()
	a := startApp(t, appOptions{
		TOML: metricsOn + "[server.timeouts]\nrequest = \"300ms\"\nrequest_grace = \"300ms\"\n[php]\nworkers = 8\nmin_workers = 2\n" +
			"ini_overrides = [[\"pcre.jit\", \"0\"], [\"pcre.backtrack_limit\", \"100000000000\"]]\n",
		Files: map[string]string{
			"sleep.php": `<?php sleep(60);`,
			"loop.php":  `<?php while (true);`,
			"peer.php":  `<?php $s = stream_socket_client('tcp://' . $_GET['x']); fread($s, 1);`,
			"regex.php": `<?php preg_match('/^(a+)+$/', str_repeat('a', 60) . 'b');`,
			"lock.php":  `<?php flock(fopen($_GET['x'], 'r'), LOCK_EX);`,
			"nice.php":  `<?php register_shutdown_function(function () { file_put_contents($_GET['x'], 'cleaned up'); }); while (true);`,
			"index.php": `<?php echo $_GET['i'];`,
		}})
	start := time.Now()
	mark := filepath.Join(t.TempDir(), "mark")
	var stuck []*late
	paths := []string{"/sleep.php", "/loop.php", "/peer.php?x=" + silentPeer(t), "/regex.php", "/lock.php?x=" + url.QueryEscape(lock), "/nice.php?x=" + mark}
	for _, path := range paths {
		stuck = append(stuck, a.later(a.request("GET", path, "")))
	}
	hundred(t, func(i int) error { return wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""), fmt.Sprint(i)) })
	for i, l := range stuck {
		if resp, body := l.wait(); resp.StatusCode != http.StatusGatewayTimeout || body != "504 Gateway Timeout\n" {
			t.Errorf("%s: %s %.100q, want 504", paths[i], resp.Status, body)
		}
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v, want about limit and grace", took)
	}
	waitFile(t, mark, "cleaned up")
	a.waitMetric(`ephpm_php_workers{state="busy"}`, 0)
	a.waitMetric("ephpm_php_script_timeouts_total", float64(len(paths)))
}

// A script that dies while it waits for a lock, or holds one, leaves none behind.
func TestKilledScriptLeavesNoLock(t *testing.T) {
	t.Parallel()
	lock := filepath.Join(t.TempDir(), "lock")
	release := holdLock(t, lock)
	a := startApp(t, appOptions{
		TOML: "[server.timeouts]\nrequest = \"300ms\"\nrequest_grace = 0\n[php]\nworkers = 2\n",
		Files: map[string]string{
			"index.php": `<?php $f = fopen($_GET['x'], 'c'); flock($f, LOCK_EX); if (isset($_GET['hang'])) sleep(60); echo "locked";`,
		}})
	path := "/?x=" + url.QueryEscape(lock)
	if resp, _ := a.get(path); resp.StatusCode != 504 {
		t.Errorf("one that waits: %s, want 504", resp.Status)
	}
	release()
	if resp, _ := a.get(path + "&hang"); resp.StatusCode != 504 {
		t.Errorf("one that holds it: %s, want 504", resp.Status)
	}
	if err := wantBody(a.request("GET", path, ""), "locked"); err != nil {
		t.Errorf("the next: %v", err)
	}
}

// Requests of one session wait for one another, whichever worker runs them.
func TestSessionIsLocked(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: sessionsIn(t) + "workers = 10\nmin_workers = 10\n",
		Files: map[string]string{"index.php": `<?php
			session_id('0123456789abcdef0123456789'); session_start();
			$n = $_SESSION['n'] ?? 0; usleep(10_000); $_SESSION['n'] = $n + 1; $_SESSION['by'][getmypid()] = 1;
			echo $_SESSION['n'], ' ', count($_SESSION['by']);`}})
	var all []*late
	for range 10 {
		all = append(all, a.later(a.request("GET", "/", "")))
	}
	seen := map[string]bool{}
	for _, l := range all {
		_, body := l.wait()
		seen[firstOf(body, " ")] = true
	}
	if len(seen) != 10 {
		t.Errorf("ten increments gave %v", seen)
	}
	if _, body := a.get("/"); firstOf(body, " ") != "11" {
		t.Errorf("the next increment gives %q, want 11", body)
	}
}

func TestSlowScriptIsLoggedWithItsBacktrace(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[php]\nslow_request = \"100ms\"\n",
		Files: map[string]string{
			"index.php": `<?php
				function outer($gate) { inner($gate); }
				function inner($gate) { file_get_contents($gate); }
				outer($_GET['gate']); echo "fine";`,
			"fast.php": `<?php echo "fast";`,
		}})
	g := newGate(t)
	l := a.later(a.request("GET", "/?gate="+g.path, ""))
	g.wait()
	a.waitLine(`level=WARN msg="slow script"`, `script=\S*/index.php`, `request=\S+`, `outer`, `inner`)
	g.open()
	if _, body := l.wait(); body != "fine" {
		t.Errorf("the slow script was disturbed: %q", body)
	}
	a.get("/fast.php")
	if n := a.countLines("slow script"); n != 1 {
		t.Errorf("%d lines about slow scripts, want 1", n)
	}
}

func TestHungryWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[php]\nworkers = 1\nmemory_limit = \"-1\"\nworker_max_memory = \"200MB\"\n",
		Files: map[string]string{"index.php": `<?php $GLOBALS['x'] = str_repeat('x', 1 << $_GET['bits']); if (isset($_GET['gate'])) file_get_contents($_GET['gate']); echo getmypid();`},
	})
	_, modest := a.get("/?bits=10")
	g := newGate(t)
	l := a.later(a.request("GET", "/?bits=28&gate="+g.path, ""))
	g.wait()
	a.waitLine(`msg="worker is replaced for its memory"`)
	g.open()
	if _, hungry := l.wait(); hungry != modest {
		t.Errorf("the hungry script ran in %q, want it to end in its worker %q", hungry, modest)
	}
	err := eventually(func() error {
		if _, next := a.get("/?bits=10"); next == modest || strings.Contains(next, "<") {
			return fmt.Errorf("still worker %s", next)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
