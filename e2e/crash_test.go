package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// crash is PHP code that ends its worker as a bug in PHP would.
const crash = `posix_kill(getmypid(), SIGSEGV); sleep(60);`

func TestCrashIs502(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"signal 11":  crash,
		"signal 6":   `posix_kill(getmypid(), SIGABRT); sleep(60);`,
		"signal 9":   `posix_kill(getmypid(), SIGKILL); sleep(60);`,
		"the stack":  `class S { function __toString(): string { return "" . new S; } } echo "not sent"; echo new S;`,
		"at the end": `register_shutdown_function(function () { echo "not sent either"; ` + crash + ` });`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startApp(t, appOptions{
				// PHP 8.4 would end the recursion before the stack does.
				TOML: "[php]\nworkers = 1\nini_overrides = [[\"zend.max_allowed_stack_size\", \"-1\"]]\n",
				Files: map[string]string{
					"crash.php": "<?php file_put_contents(__DIR__ . '/id', $_SERVER['REQUEST_ID'] . ' ' . getmypid()); " + code,
					"index.php": `<?php echo getmypid();`,
				}})
			resp, body := a.get("/crash.php")
			if resp.StatusCode != http.StatusBadGateway || body != "502 Bad Gateway\n" {
				t.Errorf("%s %q, want 502", resp.Status, body)
			}
			signal := name
			if !strings.HasPrefix(name, "signal") {
				signal = "signal 11"
			}
			text, err := os.ReadFile(filepath.Join(a.options.Root, "id"))
			if err != nil {
				t.Fatal(err)
			}
			id, dead, _ := strings.Cut(string(text), " ")
			a.waitLine(`level=ERROR msg="worker died within a request"`, `how="`+signal+` `, `site=default`, `script=\S+/crash\.php `, `request=`+id+` `)
			if resp, after := a.get("/"); resp.StatusCode != 200 || after == dead {
				t.Errorf("the next request: %s, by worker %s; want another than %s", resp.Status, after, dead)
			}
		})
	}
}

func TestConnectionIsUsableBehindA502(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"crash.php": "<?php " + crash, "index.php": `<?php echo "fine";`}})
	w := a.connect()
	for range 3 {
		w.send(getText("/crash.php"))
		if resp, _ := w.answer(); resp.StatusCode != http.StatusBadGateway {
			t.Errorf("%s, want 502", resp.Status)
		}
		w.send(getText("/"))
		if _, body := w.answer(); body != "fine" {
			t.Errorf("the next answer on the connection is %q", body)
		}
	}
}

func TestAnswerOfACrashedWorkerIsCut(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{
		"chunks.php": unbuffered + `echo "begun"; flush(); ` + crash,
		"length.php": unbuffered + `header("Content-Length: 10"); echo "begun"; flush(); ` + crash,
		"large.php":  unbuffered + `echo str_repeat("x", 1000000); ` + crash, // begun because it is large
		"even.php":   unbuffered + `echo str_repeat("x", 100000); ` + crash,
		"end.php":    unbuffered + `echo "begun"; flush(); register_shutdown_function(function () { ` + crash + ` });`,
	}})
	wantCut(t, a.request("GET", "/chunks.php", ""), "begun")
	wantCut(t, a.request("GET", "/length.php", ""), "begun")
	wantCut(t, a.request("GET", "/large.php", "", "Accept-Encoding", "identity"), "xxx")
	// Encoded, it is so small that nothing of it has left yet.
	if resp, body := a.do(a.request("GET", "/even.php", "", "Accept-Encoding", "zstd")); resp.StatusCode != http.StatusBadGateway || body != "502 Bad Gateway\n" {
		t.Errorf("/even.php encoded: %s %.50q, want 502", resp.Status, body)
	}
	wantCut(t, a.request("GET", "/end.php", ""), "begun")

	w := a.connect()
	w.send(getText("/chunks.php"))
	if text, err := w.rest(); err != nil || strings.Contains(text, "\r\n0\r\n") || !strings.HasSuffix(text, "begun\r\n") {
		t.Errorf("on the wire is %q, %v; want no last chunk", text, err)
	}
	out, err := exec.Command("curl", "-sS", "--max-time", maxTime, a.URL+"/chunks.php").CombinedOutput()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 18 && exit.ExitCode() != 56 {
		t.Errorf("curl: %v, want its word for a transfer that ended early\n%s", err, out)
	}
}

// A client of HTTP/1.0, as many proxies are, takes the end of the connection for
// the end of the answer. A reset it does not.
func TestCutIsNoticedByHTTP10(t *testing.T) {
	t.Parallel()
	o := appOptions{Files: map[string]string{"index.php": unbuffered + `echo "begun"; flush(); file_get_contents($_GET['gate']); ` + crash}}
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		a := startApp(t, o)
		wantReset(t, a.connect())
	})
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		a, ca := startTLS(t, o)
		wantReset(t, a.connectTLS(ca))
	})
}

func wantReset(t *testing.T, w *wire) {
	t.Helper()
	g := newGate(t)
	w.send("GET /?gate=" + g.path + " HTTP/1.0\r\n\r\n")
	for text := ""; !strings.HasSuffix(text, "begun"); {
		b, err := w.in.ReadByte()
		if err != nil {
			t.Fatalf("%q, %v", text, err)
		}
		text += string(b)
	}
	g.wait()
	g.open()
	if rest, err := w.rest(); err == nil {
		t.Errorf("the connection ended in good order behind %q, want a reset", rest)
	}
}

// Whoever does not run in the worker that dies must not notice.
func TestCrashIsNoticedByNobodyElse(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: metricsOn + "[php]\nworkers = 8\nmin_workers = 8\n",
		Files: map[string]string{
			"index.php":     `<?php usleep(random_int(0, 2000)); echo str_repeat($_GET['i'] . " ", 1000);`,
			"crash.php":     "<?php " + crash,
			"hold.php":      `<?php file_get_contents($_GET['gate']); echo "held";`,
			"websocket.php": `<?php if ($_SERVER['WS_EVENT'] === 'message') ephpm_ws_send(file_get_contents('php://input'));`,
		}})
	s := a.dial("/", nil)
	g := newGate(t)
	held := a.later(a.request("GET", "/hold.php?gate="+g.path, ""))
	g.wait()

	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			if resp, _, err := fetch(a.request("GET", "/crash.php", "")); err != nil || resp.StatusCode != http.StatusBadGateway {
				t.Errorf("the crash: %v, %v, want 502", resp, err)
				return
			}
		}
	})
	for range 3 {
		hundred(t, func(i int) error {
			return wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""), strings.Repeat(fmt.Sprintf("%d ", i), 1000))
		})
		s.send("still there?")
		if got := s.recv(); got != "still there?" {
			t.Errorf("the socket got %q", got)
		}
	}
	stop.Store(true)
	wg.Wait()
	g.open()
	if _, body := held.wait(); body != "held" {
		t.Errorf("the request that was held: %q", body)
	}
	if err := eventually(func() error { // a crash is counted a moment after its answer
		n, err := a.metric("ephpm_php_worker_crashes_total")
		if err == nil && n == 0 {
			err = errors.New("no crashes counted")
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if err := eventually(func() error {
		if n := len(a.workers()); n != 8 {
			return fmt.Errorf("%d workers", n)
		}
		return nil
	}); err != nil {
		t.Errorf("want the 8 workers back: %v", err)
	}
}

func TestIdleWorkerThatIsKilledIsReplaced(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[php]\nworkers = 2\nmin_workers = 2\n",
		Files: map[string]string{"index.php": `<?php echo $_GET['i'];`},
	})
	hundred(t, func(i int) error { return wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""), fmt.Sprint(i)) })
	for range 5 {
		for _, pid := range a.workers() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have gone
		}
		// The first requests may meet a worker that is about to die.
		if err := eventually(func() error { return wantBody(a.request("GET", "/?i=7", ""), "7") }); err != nil {
			t.Fatal(err)
		}
	}
	hundred(t, func(i int) error { return wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""), fmt.Sprint(i)) })
}

func TestZygoteThatIsKilledIsReplaced(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{
		"index.php":     `<?php echo posix_getppid();`,
		"websocket.php": `<?php if ($_SERVER['WS_EVENT'] === 'message') ephpm_ws_send(file_get_contents('php://input'));`,
	}})
	s := a.dial("/", nil)
	_, before := a.get("/")
	var zygote int
	if _, err := fmt.Sscan(before, &zygote); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(zygote, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := eventually(func() error {
		resp, after, err := fetch(a.request("GET", "/", ""))
		if err == nil && (resp.StatusCode != 200 || after == before) {
			err = fmt.Errorf("%s %q", resp.Status, after)
		}
		return err
	})
	if err != nil {
		t.Fatalf("no answer from new workers: %v", err)
	}
	s.send("still there?")
	if got := s.recv(); got != "still there?" {
		t.Errorf("the socket got %q", got)
	}
}

// A script that leaves by exit with a status, or whose process starts others,
// has not crashed.
func TestExitStatusIsNoCrash(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: metricsOn + "[php]\nworkers = 1\n",
		Files: map[string]string{
			"exit.php": `<?php exit(1);`,
			"run.php":  `<?php echo trim(shell_exec('echo from a shell; exit 3')), ' ', trim(shell_exec('printenv | grep -ci ephpm_role'));`,
		}})
	if resp, body := a.get("/exit.php"); resp.StatusCode != 200 || body != "" {
		t.Errorf("exit(1): %s %q, want an empty 200", resp.Status, body)
	}
	if resp, body := a.get("/run.php"); resp.StatusCode != 200 || body != "from a shell 0" {
		t.Errorf("a shell: %s %q", resp.Status, body)
	}
	if n, err := a.metric("ephpm_php_worker_crashes_total"); n != 0 || err != nil {
		t.Errorf("%v crashes counted, %v; want none", n, err)
	}
}

// Where the server is process 1 nobody else would wait for it.
func TestProgramThatOutlivesItsScriptLeavesNoZombie(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{
		"index.php": `<?php echo posix_getppid(), ' ', shell_exec('sleep 600 >/dev/null 2>&1 & echo $!');`}})
	_, body := a.get("/")
	var zygote, pid int
	if _, err := fmt.Sscan(body, &zygote, &pid); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // it may have gone
	want := fmt.Sprintf("\nPPid:\t%d\n", zygote)
	err := eventually(func() error { // the shell may not have ended yet
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err == nil && !strings.Contains(string(status), want) {
			err = fmt.Errorf("it is not the zygote's:\n%s", status)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err = eventually(func() error {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			return fmt.Errorf("process %d is still there", pid)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A crash while the client still sends: the worker never saw the body's end.
func TestCrashBeforeTheBodyIsRead(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[php]\nini_overrides = [[\"enable_post_data_reading\", \"Off\"]]\n",
		Files: map[string]string{"index.php": "<?php " + crash}})
	for _, size := range []int{10, 100_000, 5_000_000} {
		w := a.connect()
		sent := make(chan struct{})
		go func() { // ends with the connection
			defer close(sent)
			_, _ = fmt.Fprintf(w, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", size, repeat(size))
		}()
		if resp, _ := w.answer(); resp.StatusCode != http.StatusBadGateway {
			t.Errorf("a body of %d: %s; want 502", size, resp.Status)
		}
		_ = w.Close()
		<-sent
	}
}

func TestCrashKeepsTheSession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := startApp(t, appOptions{
		TOML: fmt.Sprintf("[php]\nini_overrides = [[\"session.save_path\", %q]]\n", dir),
		Files: map[string]string{
			"index.php": sessionScript,
			"crash.php": `<?php session_start(); ` + crash,
		}})
	c := visitor(t)
	if _, err := visit(c, a.URL+"/?secret=mine"); err != nil {
		t.Fatal(err)
	}
	// It dies with the session locked.
	resp, err := c.Get(a.URL + "/crash.php")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // only the next request matters
	_ = resp.Body.Close()
	if body, err := visit(c, a.URL+"/"); err != nil || body != "1 mine" {
		t.Errorf("behind a crash: %q, %v; want the session unlocked and unchanged", body, err)
	}
	if files, _ := filepath.Glob(dir + "/sess_*"); len(files) != 1 {
		t.Errorf("session files %q, want one", files)
	}
}
