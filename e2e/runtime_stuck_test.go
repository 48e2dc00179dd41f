package e2e

import (
	"errors"
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
	root := t.TempDir()
	writeFiles(t, root, map[string]string{
		"sleep.php": `<?php sleep(600);`,
		"loop.php":  `<?php while (true);`,
		"peer.php":  `<?php $s = stream_socket_client('tcp://' . $_GET['x']); fread($s, 1);`,
		"regex.php": `<?php preg_match('/^(a+)+$/', str_repeat('a', 60) . 'b');`,
		"lock.php":  `<?php flock(fopen($_GET['x'], 'r'), LOCK_EX);`,
		"index.php": `<?php echo $_GET['i'];`,
	})
	a := startApp(t, appOptions{
		Root: root,
		TOML: metricsOn + hangSite(root, "300ms") + "[server.timeouts]\nrequest_grace = \"300ms\"\n[php]\nworkers = 8\nmin_workers = 2\n" +
			"ini_overrides = [[\"pcre.jit\", \"0\"], [\"pcre.backtrack_limit\", \"100000000000\"]]\n",
	})
	var stuck []*late
	paths := []string{"/sleep.php", "/loop.php", "/peer.php?x=" + silentPeer(t), "/regex.php", "/lock.php?x=" + url.QueryEscape(lock)}
	for _, path := range paths {
		req := a.request("GET", path, "")
		req.Host = "hang.test"
		stuck = append(stuck, a.later(req))
	}
	hundred(t, func(i int) error { return wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""), fmt.Sprint(i)) })
	for i, l := range stuck {
		if resp, body := l.wait(); resp.StatusCode != http.StatusGatewayTimeout || body != "504 Gateway Timeout\n" {
			t.Errorf("%s: %s %.100q, want 504", paths[i], resp.Status, body)
		}
	}
	a.waitMetric(`ephpm_php_workers{state="busy"}`, 0)
	a.waitMetric("ephpm_php_script_timeouts_total", float64(len(paths)))
}

// A script over its limit has the grace to clean up.
func TestScriptsThatHangCleanUp(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[server.timeouts]\nrequest = \"300ms\"\nrequest_grace = \"10m\"\n",
		Files: map[string]string{"index.php": `<?php
			register_shutdown_function(function () { file_put_contents($_GET['x'], 'cleaned up'); });
			file_put_contents($_GET['x'], 'began'); while (true);`},
	})
	mark := filepath.Join(t.TempDir(), "mark")
	err := eventually(func() error {
		if resp, _ := a.get("/?x=" + mark); resp.StatusCode != http.StatusGatewayTimeout {
			t.Errorf("%s, want 504", resp.Status)
		}
		_, err := os.Stat(mark) // on a busy machine the time may be over before the script has begun
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	waitFile(t, mark, "cleaned up")
}

// A script that dies while it waits for a lock, or holds one, leaves none behind.
func TestKilledScriptLeavesNoLock(t *testing.T) {
	t.Parallel()
	lock := filepath.Join(t.TempDir(), "lock")
	release := holdLock(t, lock)
	root := t.TempDir()
	writeFiles(t, root, map[string]string{
		"index.php": `<?php $f = fopen($_GET['x'], 'c'); flock($f, LOCK_EX); if (isset($_GET['hang'])) sleep(600); echo "locked";`,
	})
	a := startApp(t, appOptions{
		Root: root,
		TOML: hangSite(root, "500ms") + "[server.timeouts]\nrequest_grace = 0\n[php]\nworkers = 2\n",
	})
	path := "/?x=" + url.QueryEscape(lock)
	want504 := func(what, path string) {
		t.Helper()
		req := a.request("GET", path, "")
		req.Host = "hang.test"
		if resp, _ := a.do(req); resp.StatusCode != 504 {
			t.Errorf("one that %s: %s, want 504", what, resp.Status)
		}
	}
	want504("waits", path)
	release()
	want504("holds it", path+"&hang")
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
				outer($_GET['gate']); echo $_SERVER['REQUEST_ID'];`,
			"fast.php": `<?php echo "fast";`,
		}})
	scripts := 0
	err := eventually(func() error {
		g := newGate(t)
		l := a.later(a.request("GET", "/?gate="+g.path, ""))
		g.wait()
		scripts++
		err := eventually(func() error {
			if n := a.countLines(`level=WARN msg="slow script"`, `script=\S*/index.php`); n != scripts {
				return fmt.Errorf("%d lines about %d slow scripts", n, scripts)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		g.open()
		_, id := l.wait()
		if n := a.countLines(`msg="slow script"`, `request=`+id); n != 1 {
			t.Errorf("%d lines about request %q, want 1", n, id)
		}
		// On a busy machine the time may be over before the script is there.
		if n := a.countLines(`msg="slow script"`, `request=`+id, `outer`, `inner`); n != 1 {
			return errors.New("the log says nothing of inner, called by outer")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	start := time.Now()
	a.get("/fast.php")
	if quick := time.Since(start) < 100*time.Millisecond; quick && a.countLines("slow script", "fast.php") > 0 {
		t.Error("a fast script is in the log")
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
