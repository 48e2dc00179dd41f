package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestErrorPages(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: `[server]
fallback = ["$uri", "=404"]
error_pages = { 404 = "/errors/404.html", 403 = "/errors/own.php", 405 = "/errors/plain.php", 5xx = "/errors/5xx.php", 410 = "/errors/nothing.html", 413 = "/errors/crash.php" }
[server.request]
max_body_size = 100
[server.response]
intercept_errors = true
`,
		Files: map[string]string{
			"errors/404.html":  "<p>nothing here",
			"errors/own.php":   `<?php http_response_code(418); echo "own status";`,
			"errors/plain.php": `<?php echo json_encode([$_SERVER['REDIRECT_STATUS'], $_SERVER['REDIRECT_URL'], $_SERVER['REQUEST_METHOD'], $_SERVER['REQUEST_URI'], $_SERVER['QUERY_STRING'], $_POST]);`,
			"errors/5xx.php":   `<?php echo "sorry ", $_SERVER['REDIRECT_STATUS'];`,
			"errors/crash.php": `<?php posix_kill(getmypid(), SIGKILL);`,
			"a.txt":            "file",
			"missing.php":      `<?php http_response_code(404); header('X-Secret: 1'); echo "details";`,
			"broken.php":       `<?php undefined_function();`,
			"gone.php":         `<?php http_response_code(410); echo "the script's own page";`,
			"login.php":        `<?php http_response_code(401); header('WWW-Authenticate: Basic'); echo "log in";`,
			"dies.php":         `<?php posix_kill(getmypid(), SIGKILL);`,
			"fine.php":         `<?php echo "fine";`,
			"late.php":         `<?php ob_end_flush(); echo "x"; flush(); http_response_code(404);`,
		}})
	for _, test := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/nothing", 404, "<p>nothing here"},
		{"HEAD", "/nothing", 404, ""},
		{"GET", "/.env", 418, "own status"},
		{"POST", "/a.txt?q=1", 405, `["405","\/a.txt","GET","\/a.txt?q=1","q=1",[]]`},
		{"GET", "/missing.php", 404, "<p>nothing here"},
		{"GET", "/broken.php", 500, "sorry 500"},
		{"GET", "/dies.php", 502, "sorry 502"},
		{"GET", "/gone.php", 410, "410 Gone\n"},
		{"GET", "/login.php", 401, "log in"},
		{"GET", "/fine.php", 200, "fine"},
		{"GET", "/late.php", 200, "x"},
		{"GET", "/errors/404.html", 200, "<p>nothing here"},
	} {
		resp, body := a.do(a.request(test.method, test.path, ""))
		if resp.StatusCode != test.status || body != test.body {
			t.Errorf("%s %s: %s %q; want %d %q", test.method, test.path, resp.Status, body, test.status, test.body)
		}
		if resp.Header.Get("X-Secret") != "" {
			t.Errorf("%s %s: the header of the script's page is there", test.method, test.path)
		}
	}
	if resp, body := a.do(a.request("POST", "/fine.php", repeat(1000))); resp.StatusCode != 413 || body != "413 Request Entity Too Large\n" {
		t.Errorf("an error whose page dies: %s %q", resp.Status, body)
	}
	if resp, _ := a.get("/nothing"); resp.Header.Get("Content-Type") != "text/html; charset=utf-8" || resp.Header.Get("Etag") != "" {
		t.Errorf("the header of a page for an error: %v", resp.Header)
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: `[server]
fallback = ["$uri", "=404"]
[server.response]
headers = [["X-Added", "one"], ["X-Added", "two"]]
set_headers = [["x-set", "ours"]]
remove_headers = ["x-powered-by", "X-Gone"]
`,
		Files: map[string]string{"a.txt": "file", "p.php": `<?php header('X-Added: script'); header('X-Set: script'); header('X-Gone: 1'); echo "page";`}})
	for path, added := range map[string]string{"/a.txt": "one two", "/p.php": "script one two", "/nothing": "one two"} {
		resp, _ := a.get(path)
		h := resp.Header
		if got := strings.Join(h["X-Added"], " "); got != added || strings.Join(h["X-Set"], " ") != "ours" || h["X-Gone"] != nil || h["X-Powered-By"] != nil {
			t.Errorf("GET %s: %v", path, h)
		}
	}
}

func TestListings(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[server]\nfallback = [\"$uri\", \"$uri/\", \"=404\"]\n[server.static]\nautoindex = true\n",
		Files: map[string]string{
			"dir/<b>&\"x\".txt": "1", "dir/sub/a.txt": "2", "dir/.hidden": "3", "dir/javascript:alert(1)": "4", "dir/source.PHP": "<?php",
			"dir/big.bin": repeat(3 << 20), "with/index.html": "index",
		}})
	if err := os.Symlink("/etc/passwd", filepath.Join(a.options.Root, "dir/passwd")); err != nil {
		t.Fatal(err)
	}
	resp, body := a.get("/dir/")
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	for _, want := range []string{"<title>Index of /dir/</title>", `href="./sub/"`, `href="../"`, "3.0 MiB", `href="./%3Cb%3E&amp;%22x%22.txt"`, "&lt;b&gt;", `href="./javascript:alert%281%29"`, `<html lang="en">`} {
		if !strings.Contains(body, want) {
			t.Errorf("the listing has no %q:\n%s", want, body)
		}
	}
	for _, secret := range []string{"hidden", "passwd", "source", "<b>"} {
		if strings.Contains(body, secret) {
			t.Errorf("the listing has %q", secret)
		}
	}
	if resp, _ := a.getExactly("/dir"); resp.StatusCode != 301 || resp.Header.Get("Location") != "/dir/" {
		t.Errorf("GET /dir: %s to %q", resp.Status, resp.Header.Get("Location"))
	}
	if _, body := a.get("/with/"); body != "index" {
		t.Errorf("a directory with an index: %q", body)
	}
	if resp, body := a.get("/"); resp.StatusCode != 200 || strings.Contains(body, "Parent directory") {
		t.Errorf("the root: %s %q", resp.Status, body)
	}
	if resp, _ := a.do(a.request("POST", "/dir/", "")); resp.StatusCode != 405 {
		t.Errorf("POST: %s, want 405", resp.Status)
	}
}

// A client that reads nothing is cut; one that is slow is not, however long it takes.
func TestFileForSlowReaders(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]string{"watched": "", "not watched": "[server.limits]\nmin_data_rate = 0\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readSlowly(t, limits)
		})
	}
}

func readSlowly(t *testing.T, limits string) {
	const limit = 2 * time.Second
	a := startApp(t, appOptions{
		TOML:  fmt.Sprintf("[server.timeouts]\nidle = %q\n", limit) + limits,
		Files: map[string]string{"a.bin": repeat(1)}})
	// More than all buffers between here and there hold, and no room on the disk.
	if err := os.Truncate(filepath.Join(a.options.Root, "a.bin"), 24<<20); err != nil {
		t.Fatal(err)
	}
	retryWhenPaused(t, limit, func(p *pulse) error { return readForLongerThan(a, p, limit) })
	stuck := a.connect()
	stuck.send(getText("/a.bin", "Connection: close"))
	// It has the file open until it is cut: what it finds is not all.
	if _, err := stuck.in.Peek(1); err != nil {
		t.Fatal(err)
	}
	err := eventually(func() error {
		if n := openFiles(t, a.PID(), "a.bin"); n != 0 {
			return fmt.Errorf("the file is open %d times", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if n, err := io.Copy(io.Discard, stuck.in); n >= 24<<20 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client that read nothing got %d bytes, %v; want a part", n, err)
	}
}

// readForLongerThan reads the file in more than two limits, without a pause of one.
func readForLongerThan(a *app, p *pulse, limit time.Duration) error {
	slow, err := a.tryConnect()
	if err != nil {
		return err
	}
	defer slow.Close()
	if err := slow.tcp().SetReadBuffer(64 << 10); err != nil {
		return err
	}
	if _, err := io.WriteString(slow, getText("/a.bin", "Connection: close")); err != nil {
		return err
	}
	// A piece every so often, of which there are enough.
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	received := 0
	piece := make([]byte, 16<<10)
	p.beat()
	for start := time.Now(); time.Since(start) < 2*limit+limit/4; {
		n, err := slow.in.Read(piece)
		if received += n; err != nil {
			return fmt.Errorf("the slow client was cut at %d bytes: %w", received, err)
		}
		p.beat()
		<-pace.C
	}
	if received >= 12<<20 {
		return fmt.Errorf("read %d bytes, too many to be slow", received)
	}
	rest, err := io.Copy(io.Discard, slow.in)
	if got := int64(received) + rest; err != nil || got < 24<<20 {
		return fmt.Errorf("the slow client got %d bytes, %w; want all", got, err)
	}
	return nil
}

// openFiles returns how often a process has a file open.
func openFiles(t *testing.T, pid int, name string) int {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && filepath.Base(target) == name {
			n++
		}
	}
	return n
}

// Over plain TCP the kernel copies large files.
func TestLargeFilesGoOutBySendfile(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"large.bin": repeat(1 << 20), "small.bin": repeat(1 << 10)}})
	trace := filepath.Join(t.TempDir(), "trace")
	strace := exec.Command("strace", "-f", "-qq", "-e", "trace=sendfile", "-o", trace, "-p", fmt.Sprint(a.PID()))
	if err := strace.Start(); err != nil {
		t.Fatalf("%v; build/setup.sh test installs it", err)
	}
	defer func() {
		_ = strace.Process.Signal(os.Interrupt)
		_ = strace.Wait() // it says that it was interrupted
	}()
	err := eventually(func() error {
		if _, body := a.get("/large.bin"); body != repeat(1<<20) {
			return errors.New("another body")
		}
		lines, err := os.ReadFile(trace)
		if err == nil && !strings.Contains(string(lines), "sendfile(") {
			err = fmt.Errorf("no sendfile in %q", lines)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
