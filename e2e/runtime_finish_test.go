package e2e

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// finishScript finishes its answer, waits at a gate, and does what may be done
// behind an answer.
const finishScript = `<?php
	header("X-Number: {$_GET['i']}");
	http_response_code(201);
	echo "first {$_GET['i']}";
	$done = [$_GET['f'](), $_GET['f']()];
	echo "never seen";
	flush();
	@header("X-Late: 1");
	if (isset($_GET['gate'])) file_get_contents($_GET['gate']);
	$done[] = file_get_contents('php://input');
	register_shutdown_function(function () use ($done) {
		echo "nor this";
		error_log("finished {$_GET['i']}: " . json_encode($done));
	});`

func TestAnswerIsFinishedEarly(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": finishScript}})
	hundred(t, func(i int) error {
		function := []string{"fastcgi_finish_request", "frankenphp_finish_request"}[i%2]
		resp, body, err := fetch(a.request("POST", fmt.Sprintf("/?i=%d&f=%s", i, function), fmt.Sprintf("input %d", i)))
		if err != nil || resp.StatusCode != 201 || body != fmt.Sprintf("first %d", i) || resp.Header.Get("X-Late") != "" ||
			resp.Header.Get("X-Number") != fmt.Sprint(i) || resp.ContentLength != int64(len(body)) {
			return fmt.Errorf("%v %v %q", err, resp, body)
		}
		return nil
	})
	for i := range 100 {
		a.waitLine(fmt.Sprintf(`text="finished %d: \[true,false,\\"input %d\\"\]"`, i, i))
	}
}

// The client has everything while the script still runs, on a connection that
// goes on as on one that ends.
func TestClientDoesNotWaitForAFinishedScript(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[php]\nworkers = 3\nini_overrides = [[\"enable_post_data_reading\", \"0\"]]\n",
		Files: map[string]string{"index.php": finishScript, "next.php": `<?php echo "next";`},
	})
	g := newGate(t)
	w := a.connect()
	w.send("POST /?i=1&f=fastcgi_finish_request&gate=" + g.path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\ninput" + getText("/next.php"))
	for _, want := range []string{"first 1", "next"} {
		if _, body := w.answer(); body != want {
			t.Errorf("%q, want %q", body, want)
		}
	}
	closing := newGate(t)
	w = a.connect()
	w.send(getText("/?i=2&f=fastcgi_finish_request&gate="+closing.path, "Connection: close"))
	if resp, body := w.answer(); body != "first 2" || !resp.Close {
		t.Errorf("with Connection: close: %q, close %v", body, resp.Close)
	}
	if rest, err := w.rest(); rest != "" || err != nil {
		t.Errorf("behind the answer: %q, %v", rest, err)
	}
	for _, gate := range []*gate{g, closing} {
		gate.wait()
		gate.open()
	}
	a.waitLine(`text="finished 1: \[true,false,\\"input\\"\]"`)
	a.waitLine(`text="finished 2: `)
}

// The time limit is for the whole script, and the pool is whole again.
func TestFinishedScriptIsLimitedToo(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  metricsOn + "[server.timeouts]\nrequest = \"200ms\"\nrequest_grace = 0\n[php]\nworkers = 1\n",
		Files: map[string]string{"index.php": `<?php echo "first"; fastcgi_finish_request(); sleep(60);`, "next.php": `<?php echo "next";`},
	})
	if err := wantBody(a.request("GET", "/", ""), "first"); err != nil {
		t.Error(err)
	}
	if err := wantBody(a.request("GET", "/next.php", ""), "next"); err != nil {
		t.Error(err)
	}
	a.waitLine(`level=WARN`, `after it finished`, `request=\S+`, `time limit`)
	a.waitMetric("ephpm_php_script_timeouts_total", 1)
}

func TestStopWaitsForFinishedScripts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php
		echo "first"; fastcgi_finish_request(); file_get_contents($_GET['gate']); file_put_contents($_GET['mark'], 'done');`}})
	g := newGate(t)
	a.get("/?gate=" + g.path + "&mark=" + dir + "/mark")
	g.wait()
	stopped := make(chan int)
	go func() { stopped <- a.Stop() }()
	a.waitLog(`msg=stopping`)
	g.open()
	if status := <-stopped; status != 0 {
		t.Errorf("exit status %d", status)
	}
	waitFile(t, filepath.Join(dir, "mark"), "done")
}

func TestEarlyHints(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php
		header("Link: </style{$_GET['i']}.css>; rel=preload; as=style");
		header("X-Kept: {$_GET['i']}");
		headers_send(103);
		header_remove("Link");
		headers_send(103); // as often as it likes
		echo "body {$_GET['i']}";`}})
	hundred(t, func(i int) error {
		w := a.connect()
		w.send(getText(fmt.Sprintf("/?i=%d", i)))
		for n, link := range []string{fmt.Sprintf("</style%d.css>; rel=preload; as=style", i), "", ""} {
			resp, err := http.ReadResponse(w.in, nil)
			if err != nil {
				return err
			}
			want := []int{103, 103, 200}[n]
			if resp.StatusCode != want || resp.Header.Get("Link") != link || resp.Header.Get("X-Kept") != fmt.Sprint(i) {
				return fmt.Errorf("answer %d: %s %v, want %d with Link %q", n, resp.Status, resp.Header, want, link)
			}
			if want == 200 {
				if body, err := io.ReadAll(resp.Body); err != nil || string(body) != fmt.Sprintf("body %d", i) {
					return fmt.Errorf("%q %v", body, err)
				}
			}
		}
		return nil
	})
}

// A client that stops reading blocks only its script, and only for a while.
func TestClientThatStopsReadingLosesItsWorker(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: metricsOn + "[server.timeouts]\nidle = \"500ms\"\n[php]\nworkers = 2\n",
		Files: map[string]string{
			"endless.php": unbuffered + `register_shutdown_function(fn () => error_log('ended by ' . connection_status())); while (true) echo str_repeat("x", 100000);`,
			"index.php":   `<?php echo $_GET['i'];`,
		}})
	w := a.connect()
	w.send(getText("/endless.php"))
	if _, err := w.in.Peek(1); err != nil {
		t.Fatal(err)
	}
	hundred(t, func(i int) error { return wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""), fmt.Sprint(i)) })
	a.waitLine(`text="ended by 1"`)
	a.waitMetric(`ephpm_php_workers{state="busy"}`, 0)
	if rest, _ := w.rest(); strings.HasSuffix(rest, "\r\n0\r\n\r\n") { // cut by a reset or not
		t.Error("the answer was completed as if it were whole")
	}
}
