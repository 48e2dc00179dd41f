package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// accessTo is the configuration of an access log in a new file.
func accessTo(t testing.TB, format string) (toml, file string) {
	file = filepath.Join(t.TempDir(), "access.log")
	return fmt.Sprintf("[server.logging]\naccess = %q\naccess_format = %q\n", file, format), file
}

// waitAccessFile waits until a line of a file matches a pattern, and returns the match and
// its groups.
func waitAccessFile(t testing.TB, file, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(`(?m)` + pattern)
	var m []string
	err := eventually(func() error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if m = re.FindStringSubmatch(string(text)); m == nil {
			return fmt.Errorf("it has\n%s", text)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("no line of the file matches %s: %v", pattern, err)
	}
	return m
}

func TestAccessLogHasALineForEveryRequest(t *testing.T) {
	t.Parallel()
	toml, file := accessTo(t, "combined")
	a := startApp(t, appOptions{TOML: toml, Files: map[string]string{
		"hello.php": `<?php echo "hello";`, "a.txt": "text", "fatal.php": `<?php missing();`,
	}})
	for _, target := range []string{"/hello.php?a=1", "/a.txt", "/a%00", "/fatal.php", "/_ephpm/health"} {
		a.getExactly(target, "User-Agent: test \"quoted\" \xff", "Referer: https://x.example/")
	}
	a.do(a.request("HEAD", "/a.txt", "", "Authorization", "Basic YWxpY2U6c2VjcmV0"))
	a.do(a.request("POST", "/a.txt", "x"))
	a.exchange("GET / HTTP/1.1\r\n\r\n")
	a.exchange(getText("/", "X-Long: "+strings.Repeat("x", 64<<10)))
	hundred(t, func(i int) error { return wantBody(a.request("GET", fmt.Sprintf("/hello.php?i=%d", i), ""), "hello") })
	a.Stop()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const at = `127\.0\.0\.1 - (alice|-) \[[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9:]{8} [-+][0-9]{4}\] `
	const from = ` "https://x\.example/" "test \\"quoted\\" \\xff"`
	for pattern, n := range map[string]int{
		at + `"GET /hello\.php\?a=1 HTTP/1\.1" 200 5` + from:   1,
		at + `"GET /a\.txt HTTP/1\.1" 200 4` + from:            1,
		at + `"GET /a%00 HTTP/1\.1" 400 16` + from:             1,
		at + `"GET /fatal\.php HTTP/1\.1" 500 [-0-9]+` + from:  1,
		at + `"GET /_ephpm/health HTTP/1\.1" 200 16` + from:    1,
		at + `"HEAD /a\.txt HTTP/1\.1" 200 - "-" "Go-http`:     1,
		at + `"POST /a\.txt HTTP/1\.1" 405 [0-9]+ `:            1,
		at + `"-" 400 - "-" "-"$`:                              1,
		at + `"-" 431 - "-" "-"$`:                              1,
		at + `"GET /hello\.php\?i=[0-9]+ HTTP/1\.1" 200 5 "-"`: 100,
	} {
		if got := len(regexp.MustCompile(`(?m)^`+pattern).FindAllString(string(text), -1)); got != n {
			t.Errorf("%d lines match %s, want %d", got, pattern, n)
		}
	}
	if n := strings.Count(string(text), "\n"); n != 109 {
		t.Errorf("%d lines in all, want 109:\n%s", n, text)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v, want mode 0640", info.Mode(), err)
	}
	if !strings.Contains(string(text), " - alice ") {
		t.Error("the user of basic authentication is not there")
	}
}

// An accessLine is what the JSON of a line has.
type accessLine struct {
	Time, Event, Request, Site, Addr, Port, Method, Target, Proto, TLS, Host, Handler, Agent, Cause, Reason string
	Status, Bytes, Code, FramesIn, FramesOut, BytesIn, BytesOut                                             int
	Duration, PHP, Queue                                                                                    float64
	Cut                                                                                                     bool
}

// waitAccess waits for the line of a target in the JSON of a file, and its event.
func waitAccess(t testing.TB, file, target, event string) (line accessLine) {
	t.Helper()
	err := eventually(func() error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for one := range strings.Lines(string(text)) {
			// The names of Go's fields lack the underscores.
			line = accessLine{}
			if err := json.Unmarshal([]byte(strings.NewReplacer("frames_", "frames", "bytes_", "bytes").Replace(one)), &line); err != nil {
				return fmt.Errorf("%q: %w", one, err)
			}
			if line.Target == target && line.Event == event {
				return nil
			}
		}
		return errors.New(string(text))
	})
	if err != nil {
		t.Fatalf("no line of %s, event %q: %v", target, event, err)
	}
	return line
}

func TestAccessLogInJSON(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	toml, file := accessTo(t, "json")
	root := t.TempDir()
	writeFiles(t, root, map[string]string{"hello.php": `<?php usleep(20_000); echo $_SERVER['REQUEST_ID'];`, "slow.php": `<?php echo str_repeat("x", 9000); flush(); sleep(600);`})
	a := startApp(t, appOptions{
		Root: root,
		TOML: toml + "request_id_header = true\n" + tlsIn(dir) + hangSite(root, "300ms") + "[php]\nworkers = 1\n",
	})
	resp, id := visitWith(t, ca.client(http2), "https://"+a.Addr+"/hello.php?q=%22")
	got := waitAccess(t, file, "/hello.php?q=%22", "")
	if resp.Header.Get("X-Request-Id") != id || got.Request != id || id == "" {
		t.Errorf("request ID %q in PHP, %q in the answer, %q in the log", id, resp.Header.Get("X-Request-Id"), got.Request)
	}
	if got.Addr != "127.0.0.1" || got.Method != "GET" || got.Proto != "HTTP/2.0" || got.TLS != "TLS 1.3" || got.Host != a.Addr || got.Site != "-" ||
		got.Handler != "php" || got.Status != 200 || got.Bytes != len(id) || got.Agent != "Go-http-client/2.0" || got.Cut {
		t.Errorf("%+v", got)
	}
	if got.PHP < 0.02 || got.Duration < got.PHP || got.Queue < 0 {
		t.Errorf("duration %v, php %v, queue %v; the script takes 20ms", got.Duration, got.PHP, got.Queue)
	}
	target := ""
	for i := range 100 { // on a busy machine the time may be over before the answer has begun
		target = fmt.Sprintf("/slow.php?%d", i)
		req, err := http.NewRequest("GET", "https://"+a.Addr+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "hang.test"
		resp, err := ca.client(http1).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body) // it is cut
		_ = resp.Body.Close()
		if resp.StatusCode != 504 {
			break
		}
	}
	if got := waitAccess(t, file, target, ""); !got.Cut || got.Status != 200 || got.Bytes == 0 || got.Proto != "HTTP/1.1" {
		t.Errorf("%+v, want it cut", got)
	}
}

func TestSocketsHaveALineAtTheirBeginningAndTheirEnd(t *testing.T) {
	t.Parallel()
	toml, file := accessTo(t, "json")
	a := startPlay(t, toml)
	target := events("", "")
	s := a.join("", "")
	if got := waitAccess(t, file, target, ""); got.Status != 101 || got.Handler != "websocket" || got.PHP == 0 {
		t.Errorf("at the beginning: %+v", got)
	}
	s.wantRun(`return "four";`, `"four"`)
	s.send(`ephpm_ws_close(4321, "enough");`)
	s.recvClose() // or the server waits for the answer
	got := waitAccess(t, file, target, "close")
	begin := waitAccess(t, file, target, "")
	if got.Code != 4321 || got.Reason != "enough" || got.Cause != "server" || got.FramesIn != 2 || got.FramesOut != 1 || got.BytesOut != len(`"four"`) ||
		got.BytesIn == 0 || got.Duration <= 0 || got.Request != begin.Request || got.Addr != "127.0.0.1" || got.Site != "default" {
		t.Errorf("at the end: %+v", got)
	}
	left := a.join("", "") // open when the server stops
	left.wantRun("return 1;", "1")
	a.Stop()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), `"cause":"shutdown"`); n != 1 {
		t.Errorf("%d sockets were closed by the stop, want 1:\n%s", n, text)
	}
}

func TestRefusedSocketsAreInTheAccessLog(t *testing.T) {
	t.Parallel()
	toml, file := accessTo(t, "json")
	a := startPlay(t, toml)
	target := events(`http_response_code(401); return "no";`, "")
	a.refusal(target, nil)
	if got := waitAccess(t, file, target, ""); got.Status != 401 {
		t.Errorf("%+v", got)
	}
	a.getExactly("/bad", "Connection: Upgrade", "Upgrade: websocket")
	if got := waitAccess(t, file, "/bad", ""); got.Status != 400 {
		t.Errorf("%+v", got)
	}
}

func TestAccessLogIsReopenedOnSIGUSR1(t *testing.T) {
	t.Parallel()
	toml, file := accessTo(t, "common")
	a := startApp(t, appOptions{TOML: toml, Files: map[string]string{"a.txt": "text"}})
	a.get("/a.txt?1")
	if err := os.Rename(file, file+".1"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(a.PID(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	a.waitLog(`access log opened anew`)
	a.get("/a.txt?2")
	waitAccessFile(t, file, `"GET /a\.txt\?2 HTTP`)
	waitAccessFile(t, file+".1", `"GET /a\.txt\?1 HTTP`)
	b := startApp(t, appOptions{Files: map[string]string{"a.txt": "text"}})
	if err := syscall.Kill(b.PID(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if _, body := b.get("/a.txt"); body != "text" {
		t.Errorf("without an access log, after SIGUSR1: %q", body)
	}
}

func TestAccessLogOnStdout(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[server.logging]\naccess = \"stdout\"\n",
		Files: map[string]string{"a.txt": "text"},
	})
	a.get("/a.txt")
	a.waitLog(`(?m)^127\.0\.0\.1 - - \[.*\] "GET /a\.txt HTTP/1\.1" 200 4 "-" "Go-http-client/1\.1"$`)
}

func TestAccessLogThatCannotBeOpenedIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"ephpm.toml": "[server.logging]\naccess = \"/nowhere/access.log\"\n"})
	out, err := exec.Command(binary, "config", "check", "-c", filepath.Join(dir, "ephpm.toml")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "its directory cannot be read") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestAccessLogHasTheClientOfATrustedProxy(t *testing.T) {
	t.Parallel()
	toml, file := accessTo(t, "common")
	a := startApp(t, appOptions{TOML: toml + trustLoopback, Files: map[string]string{"a.txt": "text"}})
	a.getExactly("/a.txt", "X-Forwarded-For: 203.0.113.7")
	waitAccessFile(t, file, `^203\.0\.113\.7 - - \[`)
}

func TestLogInJSON(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[server.logging]\nformat = \"json\"\n",
		Files: map[string]string{"index.php": `<?php error_log("told \"you\""); trigger_error("odd", E_USER_WARNING); echo $_SERVER['REQUEST_ID'];`},
	})
	_, id := a.get("/")
	line := a.waitLog(`(?m)^\{.*odd.*\}$`)[0]
	got := fromJSON[map[string]any](t, line)
	if got["level"] != "WARN" || got["msg"] != "PHP message" || got["site"] != "default" || got["request"] != id {
		t.Errorf("%s", line)
	}
	for line := range strings.Lines(a.Log()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

func TestAScriptThatFloodsStderrDoesNotFloodTheLog(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[server.logging]\nstderr_rate = 5\n[php]\nworkers = 1\n",
		Files: map[string]string{"flood.php": `<?php $e = fopen('php://stderr', 'w'); for ($i = 0; $i < 20000; $i++) fwrite($e, "line $i\n"); echo "done";`},
	})
	if _, body := a.get("/flood.php"); body != "done" {
		t.Errorf("%q", body)
	}
	a.waitLine(`msg="PHP stderr"`, `text="line 49"`)
	// The rest is told with the next line that may come, a second later.
	err := eventually(func() error {
		a.get("/flood.php")
		if n := a.countLines(`level=WARN msg="PHP stderr, lines left out"`, `lines=[1-9][0-9]{3,}`); n == 0 {
			return errors.New("what was left out is not told")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if n := a.countLines(`msg="PHP stderr"`); n > 500 {
		t.Errorf("%d lines are in the log", n)
	}
}
