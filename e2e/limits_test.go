package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// wantCut checks that an answer began with 200 and a body and was then cut: its
// end must not look like an end. A script that its time limit hits before it has
// begun shows nothing, and runs again.
func wantCut(t *testing.T, req *http.Request, begin string) {
	t.Helper()
	resp, body, err := fetch(req)
	for deadline := time.Now().Add(patience); resp != nil && resp.StatusCode == 504 && time.Now().Before(deadline); {
		resp, body, err = fetch(req)
	}
	if resp == nil {
		t.Fatalf("%s: no answer at all: %v", req.URL.RequestURI(), err)
	}
	if resp.StatusCode != 200 || !strings.HasPrefix(body, begin) {
		t.Errorf("%s: %s %.100q, want 200 %q", req.URL.RequestURI(), resp.Status, body, begin)
	}
	if err == nil {
		t.Errorf("%s: the answer was completed as if it were whole", req.URL.RequestURI())
	}
}

func TestScriptOverTheTimeLimitIs504(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"sleeping":                `sleep(60);`,
		"computing":               `while (true);`,
		"in C":                    `posix_mkfifo(__DIR__ . '/pipe', 0600); file_get_contents(__DIR__ . '/pipe');`,
		"in a shutdown function":  `echo "all done"; register_shutdown_function(fn () => sleep(60));`,
		"in a destructor":         `class D { function __destruct() { sleep(60); } } $d = new D; echo "all done";`,
		"with its own idea of it": `set_time_limit(0); ignore_user_abort(true); echo "x"; sleep(60);`,
		"catching everything":     `try { sleep(60); } finally { sleep(60); }`,
		"blocking signals":        `pcntl_sigprocmask(SIG_BLOCK, [SIGTERM, SIGINT, SIGALRM, SIGPROF]); sleep(60);`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startApp(t, appOptions{
				TOML:  "[server.timeouts]\nrequest = \"100ms\"\n[php]\nworkers = 1\n",
				Files: map[string]string{"slow.php": "<?php " + code, "index.php": `<?php echo "fine";`},
			})
			resp, body := a.get("/slow.php")
			if resp.StatusCode != http.StatusGatewayTimeout || body != "504 Gateway Timeout\n" {
				t.Errorf("%s %.100q, want 504", resp.Status, body)
			}
			a.waitLine(`level=WARN msg="script ran over the time limit"`, `site=default`, `request=\S+`, `script=\S+/slow\.php `)
			a.wantBodyUnless(504, "/", "fine")
		})
	}
}

func TestAnswerOverTheTimeLimitIsCut(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[server.timeouts]\nrequest = \"200ms\"\n",
		Files: map[string]string{
			"chunks.php": unbuffered + `echo "begun"; flush(); sleep(60);`,
			"length.php": unbuffered + `header("Content-Length: 10"); echo "begun"; flush(); sleep(60);`,
			"large.php":  unbuffered + `echo str_repeat("x", 1000000); sleep(60);`, // begun because it is large
		}})
	wantCut(t, a.request("GET", "/chunks.php", ""), "begun")
	wantCut(t, a.request("GET", "/length.php", ""), "begun")
	wantCut(t, a.request("GET", "/large.php", "", "Accept-Encoding", "identity"), "xxx")
}

// hangSite is a site, hang.test, that has a limit for scripts, while others with the
// same workers have none that a test could meet on a busy machine.
func hangSite(root, limit string) string {
	return fmt.Sprintf("[[site]]\nnames = [\"hang.test\"]\nroot = %q\ntimeouts.request = %q\n", root, limit)
}

// A time limit ends one script, whatever else runs.
func TestTimeLimitHitsOnlyItsScript(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeFiles(t, root, map[string]string{"index.php": `<?php if ($_GET['i'] % 10 == 0) sleep(600); usleep(random_int(0, 3000)); echo $_GET['i'];`})
	a := startApp(t, appOptions{Root: root, TOML: hangSite(root, "500ms") + "[php]\nworkers = 32\n"})
	hundred(t, func(i int) error {
		req := a.request("GET", fmt.Sprintf("/?i=%d", i), "")
		if i%10 != 0 {
			return wantBody(req, fmt.Sprint(i))
		}
		req.Host = "hang.test"
		resp, _, err := fetch(req)
		if err == nil && resp.StatusCode != http.StatusGatewayTimeout {
			err = fmt.Errorf("%s, want 504", resp.Status)
		}
		return err
	})
}

// The time that a request waits for a worker is not the script's.
func TestTimeLimitStartsWithTheScript(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[server.timeouts]\nrequest = \"2s\"\n[php]\nworkers = 1\n",
		Files: map[string]string{"index.php": `<?php usleep(600_000); echo "done";`},
	})
	round := func() error {
		var wg sync.WaitGroup
		errs := make([]error, 4) // together longer than the limit
		for i := range errs {
			wg.Go(func() { errs[i] = wantBody(a.request("GET", "/", ""), "done") })
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	err := round()
	for range 5 { // a busy machine may stretch a script beyond the limit
		if err == nil {
			return
		}
		t.Logf("once more: %v", err)
		err = round()
	}
	t.Error(err)
}

// PHP's own limits are fatal errors, which PHP answers.
func TestLimitsOfPHP(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[php]\nworkers = 1\nmemory_limit = \"32M\"\nmax_execution_time = 20\n",
		Files: map[string]string{
			"memory.php": `<?php $s = str_repeat("x", 64 << 20);`,
			"time.php":   `<?php set_time_limit(1); while (true);`,
			"index.php":  `<?php echo ini_get('memory_limit'), ' ', ini_get('max_execution_time'), ' ', strlen(str_repeat("x", 16 << 20));`,
		}})
	for path, message := range map[string]string{
		"/memory.php": `Allowed memory size of 33554432 bytes exhausted`,
		"/time.php":   `Maximum execution time of 1 second exceeded`,
	} {
		if resp, _ := a.get(path); resp.StatusCode != 500 {
			t.Errorf("%s: %s, want 500", path, resp.Status)
		}
		a.waitLine(`text="PHP Fatal error:  `+message, `script=\S+`+path+`\b`, `request=\S+`)
		if err := wantBody(a.request("GET", "/", ""), "32M 20 16777216"); err != nil {
			t.Errorf("the next request: %v", err)
		}
	}
}

func TestFatalErrorIs500AndTheNextRequestIsClean(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"a function that is not there": `missing();`,
		"a class that is not there":    `new Missing;`,
		"an exception":                 `throw new Exception("thrown");`,
		"a type error":                 `strlen([]);`,
		"a file that is not there":     `require "missing.php";`,
		"a syntax error":               `if (;`,
		"in a callback":                `array_map(fn () => missing(), [1]);`,
		"in an output buffer":          `ob_start(function () { missing(); }); echo "x"; ob_end_flush();`,
		"in a shutdown function":       `register_shutdown_function(fn () => missing());`,
		"declared twice":               `eval('class A { function f() {} function f() {} }');`,
		"by the script":                `trigger_error("enough", E_USER_ERROR);`,
		"in a session handler":         `session_set_save_handler(new class extends SessionHandler { function read($id): string|false { missing(); } }); session_start();`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startApp(t, appOptions{
				TOML: "[php]\nworkers = 1\n",
				Files: map[string]string{
					"broken.php": "<?php " + code,
					"index.php":  `<?php function once() { return ob_get_level() . "-" . http_response_code(); } echo once();`,
				}})
			before := "1-200"
			if err := wantBody(a.request("GET", "/", ""), before); err != nil {
				t.Fatal(err)
			}
			resp, body := a.get("/broken.php")
			if resp.StatusCode != 500 {
				t.Errorf("%s, want 500", resp.Status)
			}
			if strings.Contains(body, "broken.php") {
				t.Errorf("the error is shown to the client: %q", body)
			}
			a.waitLine(`level=ERROR msg="PHP message"`, `text="PHP (Fatal|Parse) error: `, `site=default`, `script=\S+/broken.php\b`, `request=\S+`)
			if err := wantBody(a.request("GET", "/", ""), before); err != nil {
				t.Errorf("the next request: %v", err)
			}
		})
	}
}

func TestShutdownFunctionsRunAfterAFatalError(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	a := serveIndex(t, `
		register_shutdown_function(function () {
			echo "sorry"; http_response_code(503); file_put_contents($_GET['mark'], error_get_last()['message']);
		});
		missing();`)
	if resp, body := a.get("/?mark=" + mark); resp.StatusCode != 503 || body != "sorry" {
		t.Errorf("%s %q, want what the shutdown function answers", resp.Status, body)
	}
	if got, err := os.ReadFile(mark); err != nil || !strings.Contains(string(got), "missing()") {
		t.Errorf("error_get_last() was %q, %v", got, err)
	}
}

func TestErrorsOfManyRequestsStayApart(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `if ($_GET['i'] % 3 == 0) throw new Exception("number {$_GET['i']}"); echo $_GET['i'];`)
	hundred(t, func(i int) error {
		req := a.request("GET", fmt.Sprintf("/?i=%d", i), "")
		if i%3 != 0 {
			return wantBody(req, fmt.Sprint(i))
		}
		resp, _, err := fetch(req)
		if err == nil && resp.StatusCode != 500 {
			err = fmt.Errorf("%s, want 500", resp.Status)
		}
		return err
	})
}
