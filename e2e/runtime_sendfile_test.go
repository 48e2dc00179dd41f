package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sendfileApp serves a script that names the file in its query, and has a
// directory of files for it.
func sendfileApp(t *testing.T) (a *app, dir string) {
	t.Helper()
	dir = t.TempDir()
	writeFiles(t, dir, map[string]string{"ten.txt": "0123456789", "sub/é a.bin": "other"})
	a = startApp(t, appOptions{
		TOML: metricsOn + fmt.Sprintf("[server.sendfile]\nroots = [[\"/protected/\", %q]]\n", dir),
		Files: map[string]string{"index.php": `<?php
			header("X-Accel-Redirect: {$_GET['f']}");
			header("X-Number: " . ($_GET['i'] ?? ''));
			setcookie('c', '1');
			header('Content-Disposition: attachment; filename="n"');
			echo "printed";`,
			"path.php": `<?php header("X-Sendfile: {$_GET['f']}"); header('Content-Type: x/y'); echo str_repeat("printed", 100000); flush();`,
		},
	})
	return a, dir
}

func TestScriptHasAFileSent(t *testing.T) {
	t.Parallel()
	a, dir := sendfileApp(t)
	hundred(t, func(i int) error {
		resp, body, err := fetch(a.request("GET", fmt.Sprintf("/?f=/protected/ten.txt&i=%d", i), ""))
		h := resp.Header
		if err != nil || resp.StatusCode != 200 || body != "0123456789" || resp.ContentLength != 10 || h.Get("X-Number") != fmt.Sprint(i) ||
			h.Get("Set-Cookie") != "c=1" || h.Get("Content-Disposition") == "" || h.Get("Content-Type") != "text/plain; charset=utf-8" ||
			h.Get("X-Accel-Redirect") != "" || h.Get("Accept-Ranges") != "bytes" {
			return fmt.Errorf("%v %v %v %q", err, resp.Status, h, body)
		}
		return nil
	})
	resp, body := a.get("/path.php?f=" + dir + "/sub/%C3%A9+a.bin")
	if resp.StatusCode != 200 || body != "other" || resp.Header.Get("Content-Type") != "x/y" || resp.Header.Get("X-Sendfile") != "" {
		t.Errorf("X-Sendfile: %s %q %v", resp.Status, body, resp.Header)
	}
	resp, body = a.get("/?f=/protected/sub/%25C3%25A9%2520a.bin") // encoded once for the query, once for the header
	if resp.StatusCode != 200 || body != "other" {
		t.Errorf("an encoded name: %s %q", resp.Status, body)
	}
}

func TestFileOfAScriptWithRangesAndConditions(t *testing.T) {
	t.Parallel()
	a, _ := sendfileApp(t)
	const path = "/?f=/protected/ten.txt"
	first, _ := a.get(path)
	etag, modified := first.Header.Get("Etag"), first.Header.Get("Last-Modified")
	for _, test := range []struct {
		method, name, value string
		status              int
		body, contentRange  string
	}{
		{"GET", "Range", "bytes=2-4", 206, "234", "bytes 2-4/10"},
		{"GET", "Range", "bytes=-1", 206, "9", "bytes 9-9/10"},
		{"GET", "Range", "bytes=10-", 416, "invalid range: failed to overlap\n", "bytes */10"},
		{"GET", "If-None-Match", etag, 304, "", ""},
		{"GET", "If-None-Match", `"other"`, 200, "0123456789", ""},
		{"GET", "If-Modified-Since", modified, 304, "", ""},
		{"HEAD", "X-Nothing", "", 200, "", ""},
		{"POST", "Range", "bytes=2-4", 200, "0123456789", ""},
	} {
		resp, body := a.do(a.request(test.method, path, "", test.name, test.value))
		if resp.StatusCode != test.status || body != test.body || resp.Header.Get("Content-Range") != test.contentRange {
			t.Errorf("%s with %s: %s: %s %q %v", test.method, test.name, test.value, resp.Status, body, resp.Header)
		}
		if test.method == "HEAD" && resp.ContentLength != 10 {
			t.Errorf("HEAD: length %d, want 10", resp.ContentLength)
		}
	}
}

func TestScriptGetsNoFileFromElsewhere(t *testing.T) {
	t.Parallel()
	a, dir := sendfileApp(t)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/?f=/protected/missing", "/?f=/protected/out", "/?f=/protected/../etc/passwd", "/?f=/etc/passwd", "/?f=/protected/sub",
		"/path.php?f=/etc/passwd", "/path.php?f=" + dir + "/../../../etc/passwd", "/path.php?f=" + dir + "/out", "/path.php?f=ten.txt",
	} {
		if resp, body := a.get(path); resp.StatusCode != 404 || body != "404 Not Found\n" || resp.Header.Get("Set-Cookie") != "" {
			t.Errorf("GET %s: %s %q, want a plain 404", path, resp.Status, body)
		}
	}
	a.waitLine(`level=WARN msg="file that a script named is not sent"`, `script=\S+/index\.php`, `request=\S+`, `file=/protected/missing`)
}

// A client that takes its time with the file holds no worker.
func TestFileOfAScriptHoldsNoWorker(t *testing.T) {
	t.Parallel()
	a, dir := sendfileApp(t)
	writeFiles(t, dir, map[string]string{"large": repeat(64 << 20)})
	w := a.connect()
	w.send(getText("/?f=/protected/large"))
	if _, err := w.in.Peek(1); err != nil {
		t.Fatal(err)
	}
	a.waitMetric(`ephpm_php_workers{state="busy"}`, 0)
	if _, body := w.answer(); body != repeat(64<<20) {
		t.Errorf("%d bytes came, or others", len(body))
	}
}

func TestNamesOfFilesAreHeadersWithoutRoots(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php header('X-Sendfile: /etc/passwd'); echo "printed";`}})
	if resp, body := a.get("/"); body != "printed" || resp.Header.Get("X-Sendfile") != "/etc/passwd" {
		t.Errorf("%q %v, want the script's answer as it is", body, resp.Header)
	}
}

func TestOverloadIsShed(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  metricsOn + "[php]\nworkers = 2\noverload_policy = \"shed\"\n",
		Files: holdFiles,
	})
	g1, l1 := hold(a)
	g2, l2 := hold(a)
	before, err := a.metric(`ephpm_php_shed_total{engine="pool",reason="busy"}`) // a busy machine may have had some of those
	if err != nil {
		t.Fatal(err)
	}
	resp, body := a.get("/")
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || !strings.HasPrefix(body, "503 ") {
		t.Errorf("%s %q, want 503 with Retry-After", resp.Status, body)
	}
	a.waitMetric(`ephpm_php_shed_total{engine="pool",reason="busy"}`, before+1)
	a.waitMetric(`ephpm_php_refused_total{class="page"}`, before+1)
	g1.open()
	g2.open()
	l1.wait()
	l2.wait()
	a.wantBodyUnless(503, "/?i=7", "7") // the last answer is out a moment before its worker is free
}

func TestOverloadIsShedAfterAWhile(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  metricsOn + "[php]\nworkers = 1\noverload_policy = \"shed\"\nshed_after_ms = 1000\n",
		Files: holdFiles,
	})
	g, l := hold(a)
	if resp, _ := a.get("/"); resp.StatusCode != 503 {
		t.Errorf("%s, want 503", resp.Status)
	}
	g.open()
	l.wait()
	retryWhenPaused(t, time.Second, func(p *pulse) error {
		g, l := hold(a)
		p.beat()
		patient := a.later(a.request("GET", "/?i=8", ""))
		err := eventually(func() error {
			n, err := a.metric(`ephpm_php_backlog{class="page"}`)
			if err == nil && n != 1 && !patient.there() {
				err = fmt.Errorf("%v wait", n)
			}
			return err
		})
		g.open()
		l.wait()
		if resp, body := patient.wait(); err == nil && (resp.StatusCode != 200 || body != "8") {
			err = fmt.Errorf("one for which a worker came free in time: %s %q", resp.Status, body)
		}
		return err
	})
}
