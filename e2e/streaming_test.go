package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// unbuffered is the start of a script that prints without PHP's own buffer.
const unbuffered = `<?php while (ob_get_level()) ob_end_flush(); `

func TestFlushStreams(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[php]\nworkers = 100\n",
		Files: map[string]string{"index.php": unbuffered + `
			header("X-Number: {$_GET['i']}"); echo "He"; flush();
			file_get_contents($_GET['gate']);
			echo "llo {$_GET['i']}";`}})
	gates := make([]*gate, 100)
	for i := range gates {
		gates[i] = newGate(t)
	}
	client := http.Client{Timeout: patience}
	hundred(t, func(i int) error {
		resp, err := client.Get(fmt.Sprintf("%s/?i=%d&gate=%s", a.URL, i, gates[i].path))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if got := resp.Header.Get("X-Number"); got != fmt.Sprint(i) {
			return fmt.Errorf("X-Number is %q", got)
		}
		// The script is still there when the first part has come.
		first := make([]byte, 2)
		if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "He" {
			return fmt.Errorf("first part %q, %v", first, err)
		}
		if err := gates[i].tryWait(); err != nil {
			return err
		}
		gates[i].open()
		if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != fmt.Sprintf("llo %d", i) {
			return fmt.Errorf("second part %q, %v", rest, err)
		}
		return nil
	})
}

func TestFlushedPartsAreSeparateWrites(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": unbuffered + `echo "one"; echo "two"; flush(); echo "three"; flush(); flush(); echo "four";`}})
	w := a.connect()
	w.send(getText("/", "Connection: close"))
	text, err := w.rest()
	if err != nil {
		t.Fatal(err)
	}
	const want = "\r\n\r\n6\r\nonetwo\r\n5\r\nthree\r\n4\r\nfour\r\n0\r\n\r\n"
	if got := text[max(0, len(text)-len(want)):]; got != want {
		t.Errorf("chunks are %q, want them to end in %q", text, want)
	}
}

// Without flush() PHP's buffer and the server's gather the answer.
func TestSmallAnswerIsOnePiece(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": unbuffered + `for ($i = 0; $i < 100; $i++) echo "line $i\n";`}})
	resp, body := a.get("/")
	if resp.ContentLength != int64(len(body)) || len(resp.TransferEncoding) > 0 {
		t.Errorf("Content-Length %d, transfer encoding %q, want one piece of %d", resp.ContentLength, resp.TransferEncoding, len(body))
	}
}

func TestEventStreamReachesCurl(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php
		header("Content-Type: text/event-stream");
		foreach ($_GET['gates'] as $i => $gate) { echo "data: $i\n\n"; ob_flush(); flush(); file_get_contents($gate); }`}})
	gates := []*gate{newGate(t), newGate(t)}
	curl := exec.Command("curl", "-sSN", "--max-time", maxTime,
		fmt.Sprintf("%s/?gates[]=%s&gates[]=%s", a.URL, gates[0].path, gates[1].path), "-g")
	out, err := curl.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	curl.Stderr = os.Stderr
	if err := curl.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(out)
	for i, g := range gates {
		if line, err := in.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("line %q, %v", line, err)
		}
		if _, err := in.Discard(1); err != nil {
			t.Fatal(err)
		}
		g.wait() // the script has not gone on
		g.open()
	}
	if err := curl.Wait(); err != nil {
		t.Errorf("curl: %v", err)
	}
}

// goneScript prints until somebody notices that the client has gone, and leaves
// marks of how it ended.
const goneScript = unbuffered + `
	ignore_user_abort((bool) $_GET['ignore']);
	register_shutdown_function(function () {
		file_put_contents($_GET['dir'] . '/end', "aborted " . connection_aborted() . ", status " . connection_status());
	});
	while (!connection_aborted()) { echo "x"; flush(); usleep(1000); }
	file_put_contents($_GET['dir'] . '/on', "went on");`

// leaveMidway starts goneScript, which leaves its marks in dir, and leaves after
// its first byte.
func leaveMidway(a *app, ignore int, dir string) error {
	w, err := a.tryConnect()
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := io.WriteString(w, getText(fmt.Sprintf("/?ignore=%d&dir=%s", ignore, dir))); err != nil {
		return err
	}
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return err
	}
	_, err = resp.Body.Read(make([]byte, 1))
	return err
}

// waitFile waits until a file has the content.
func waitFile(t *testing.T, path, want string) {
	t.Helper()
	err := eventually(func() error {
		got, err := os.ReadFile(path)
		if err == nil && string(got) != want {
			err = fmt.Errorf("it has %q", got)
		}
		return err
	})
	if err != nil {
		t.Errorf("%s never had %q: %v", filepath.Base(path), want, err)
	}
}

func TestScriptEndsWhenItsClientHasGone(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[php]\nworkers = 1\n",
		Files: map[string]string{"index.php": goneScript, "next.php": `<?php echo connection_status(), ignore_user_abort();`},
	})
	dir := t.TempDir()
	if err := leaveMidway(a, 0, dir); err != nil {
		t.Fatal(err)
	}
	waitFile(t, filepath.Join(dir, "end"), "aborted 1, status 1")
	if _, body := a.get("/next.php"); body != "00" {
		t.Errorf("the next request of the worker says %q, want a client that is there", body)
	}
	if _, err := os.Stat(filepath.Join(dir, "on")); err == nil {
		t.Error("the script went on without its client")
	}
}

func TestScriptGoesOnWithIgnoreUserAbort(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[php]\nworkers = 1\n",
		Files: map[string]string{"index.php": goneScript, "next.php": `<?php echo connection_status(), (int) ignore_user_abort();`},
	})
	dir := t.TempDir()
	if err := leaveMidway(a, 1, dir); err != nil {
		t.Fatal(err)
	}
	waitFile(t, filepath.Join(dir, "on"), "went on")
	waitFile(t, filepath.Join(dir, "end"), "aborted 1, status 1")
	if _, body := a.get("/next.php"); body != "00" {
		t.Errorf("the next request of the worker says %q, want a client that is there", body)
	}
}

func TestManyClientsLeave(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  metricsOn + "[php]\nworkers = 4\n",
		Files: map[string]string{"index.php": goneScript, "next.php": `<?php echo $_GET['i'];`},
	})
	dir := t.TempDir()
	hundred(t, func(i int) error { return leaveMidway(a, i%2, dir) })
	a.waitMetric(`ephpm_php_workers{state="busy"}`, 0)
	a.waitMetric(`ephpm_php_backlog{class="page"}`, 0)
	hundred(t, func(i int) error {
		return wantBody(a.request("GET", fmt.Sprintf("/next.php?i=%d", i), ""), fmt.Sprint(i))
	})
	if got, err := a.metric("ephpm_php_worker_crashes_total"); got != 0 || err != nil {
		t.Errorf("%v workers died, %v; want none", got, err)
	}
}

func TestRequestWhoseClientLeftWhileItWaitedIsNotRun(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	a := startApp(t, appOptions{
		TOML: metricsOn + "[php]\nworkers = 1\n",
		Files: map[string]string{
			"hold.php": `<?php file_get_contents($_GET['gate']);`,
			"mark.php": `<?php file_put_contents($_GET['mark'], 'x');`,
		}})
	g := newGate(t)
	held := a.later(a.request("GET", "/hold.php?gate="+g.path, ""))
	g.wait()
	w := a.connect()
	w.send(getText("/mark.php?mark=" + mark))
	a.waitMetric(`ephpm_php_backlog{class="page"}`, 1)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a.waitMetric(`ephpm_php_backlog{class="page"}`, 0)
	g.open()
	held.wait()
	a.get("/hold.php?gate=/dev/null") // whatever waited in front of it has been run
	if _, err := os.Stat(mark); err == nil {
		t.Error("the script ran for nobody")
	}
}

// How long a client may take nothing says nothing of a script that sends nothing.
func TestQuietScriptKeepsItsClient(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{TOML: "[server.timeouts]\nidle = 1\n", Files: map[string]string{
		"index.php": `<?php echo str_repeat('x', 9000); flush(); usleep(2_500_000); echo 'end';`}})
	for _, v := range a.versions() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			if resp, body := v.ask(t, "GET", "/", ""); len(body) != 9003 || !strings.HasSuffix(body, "xend") {
				t.Errorf("%s with %d bytes, want 9003", resp.Status, len(body))
			}
		})
	}
}
