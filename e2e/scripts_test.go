package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestExitKeepsWhatWasPrinted(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `
		header("X-Number: {$_GET['i']}");
		echo "before {$_GET['i']}";
		function leave($how) { exit($how); }
		leave($_GET['i'] % 2 ? 3 : " bye");
		echo "after";`)
	hundred(t, func(i int) error {
		want := fmt.Sprintf("before %d", i)
		if i%2 == 0 {
			want += " bye"
		}
		return wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""), want)
	})
}

func TestOutputBuffers(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `
		ob_start(fn ($s) => strtoupper($s));
		echo "outer ";
		ob_start();
		echo "inner {$_GET['i']} ";
		$inner = ob_get_clean();
		echo strrev($inner);
		ob_start(); // left open, as the first: PHP's shutdown flushes both
		echo " left";`)
	hundred(t, func(i int) error {
		reversed := []byte(fmt.Sprintf("INNER %d ", i))
		slices.Reverse(reversed)
		return wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""), "OUTER "+string(reversed)+" LEFT")
	})
}

func TestHeadersCanFollowBufferedOutput(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `echo str_repeat("x", 1000); http_response_code(202); header("X-Late: yes"); echo var_export(headers_sent(), true);`)
	if resp, body := a.get("/"); resp.StatusCode != 202 || resp.Header.Get("X-Late") != "yes" || !strings.HasSuffix(body, "xfalse") {
		t.Errorf("%s %v, want 202 and the late header", resp.Status, resp.Header)
	}
}

// The order is PHP's: shutdown functions, destructors of what is left, and the
// session is written behind both.
func TestRequestEndsInPHPsOrder(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: sessionsIn(t),
		Files: map[string]string{"index.php": `<?php
			class D { function __destruct() { echo " destructor"; $_SESSION['d'] = 1; } }
			class H extends SessionHandler { function write($id, $data): bool { error_log("wrote $data"); return parent::write($id, $data); } }
			session_set_save_handler(new H, false);
			session_start();
			$d = new D;
			register_shutdown_function(function () {
				echo " first"; $_SESSION['f'] = 1;
				register_shutdown_function(function () { echo " third"; });
			});
			register_shutdown_function(function ($x) { echo " $x"; header("X-Late: yes"); }, "second");
			echo "main";
			if (isset($_GET['exit'])) exit;`}})
	for _, path := range []string{"/", "/?exit"} {
		resp, body := a.get(path)
		if body != "main first second third destructor" || resp.Header.Get("X-Late") != "yes" {
			t.Errorf("GET %s: %q, X-Late %q", path, body, resp.Header.Get("X-Late"))
		}
	}
	a.waitLog(`text="wrote f\|i:1;d\|i:1;"`)
}

func TestExceptionBehindOutput(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[php]\nini_overrides = [[\"display_errors\", \"On\"]]\n",
		Files: map[string]string{"index.php": `<?php echo "hello"; throw new RuntimeException("unexpected {$_GET['i']}");`},
	})
	hundred(t, func(i int) error {
		_, body, err := fetch(a.request("GET", fmt.Sprintf("/?i=%d", i), ""))
		if err == nil && (!strings.HasPrefix(body, "hello") || !strings.Contains(body, "Uncaught RuntimeException: unexpected "+fmt.Sprint(i)+" ")) {
			err = fmt.Errorf("body %q", body)
		}
		return err
	})
}

func TestFibers(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `
		$f = new Fiber(function (string $i) { echo "Fiber $i "; $back = Fiber::suspend($i * 2); echo "back $back "; });
		echo $f->start($_GET['i']), " ";
		$f->resume("again");
		$silent = new Fiber(fn (int $n) => $n + Fiber::suspend());
		$silent->start((int) $_GET['i']);
		$silent->resume(1000);
		echo "silent ", $silent->getReturn(), " end";`)
	hundred(t, func(i int) error {
		return wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""), fmt.Sprintf("Fiber %d %d back again silent %d end", i, 2*i, i+1000))
	})
}

func TestPHPInfo(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `phpinfo();`)
	hundred(t, func(i int) error {
		_, body, err := fetch(a.request("GET", fmt.Sprintf("/?number=n%dn", i), ""))
		if err != nil {
			return err
		}
		for _, want := range []string{`<tr><td class="e">Server API </td><td class="v">ephpm </td></tr>`, fmt.Sprintf("n%dn", i), "</html>"} {
			if !strings.Contains(body, want) {
				return fmt.Errorf("phpinfo() lacks %q", want)
			}
		}
		return nil
	})
}

// What one request changes must not be seen by the next of the same worker.
func TestRequestLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[php]\nworkers = 1\n",
		Files: map[string]string{
			"look.php": `<?php
				function once() { static $n = 0; return ++$n; }
				class C { static $n = 0; }
				echo json_encode([
					getmypid() => 0, 'once' => once(), 'static' => ++C::$n, 'global' => isset($GLOBALS['left']),
					'constant' => defined('LEFT'), 'function' => function_exists('left'), 'ini' => ini_get('precision'),
					'env' => getenv('LEFT'), 'cwd' => getcwd() === __DIR__, 'zone' => date_default_timezone_get(),
					'locale' => setlocale(LC_ALL, 0), 'buffers' => ob_get_level(), 'errors' => error_reporting(), 'level' => error_get_last(),
					'umask' => umask(), 'encoding' => mb_internal_encoding(), 'handler' => set_error_handler(null) === null,
					'abort' => ignore_user_abort(), 'status' => http_response_code(), 'headers' => headers_list(),
					'wrappers' => in_array('left', stream_get_wrappers()), 'server' => isset($_SERVER['LEFT']),
					'autoload' => count(spl_autoload_functions()), 'includes' => count(get_included_files()), 'limit' => ini_get('max_execution_time'),
				]);`,
			"change.php": `<?php
				$GLOBALS['left'] = 1; define('LEFT', 1); eval('function left() {}'); ini_set('precision', 3); putenv('LEFT=1'); chdir('/');
				date_default_timezone_set('Asia/Tokyo'); setlocale(LC_ALL, 'C.UTF-8'); error_reporting(0); umask(0); mb_internal_encoding('ASCII');
				set_error_handler(fn () => true); ignore_user_abort(true); http_response_code(418); header('X-Left: 1'); setcookie('left', '1');
				class W {} stream_wrapper_register('left', W::class); $_SERVER['LEFT'] = 1; $_GET['left'] = 1; spl_autoload_register(fn () => 0);
				set_time_limit(1000); ob_start(); ob_start(); echo "x"; echo $undefined; if (isset($_GET['fatal'])) missing();`,
		},
	})
	_, before := a.get("/look.php")
	for _, path := range []string{"/change.php", "/change.php?fatal"} {
		a.get(path)
		resp, after := a.get("/look.php")
		if after != before || resp.StatusCode != 200 || resp.Header.Get("X-Left") != "" {
			t.Errorf("before %s:\n%s\nbehind it: %s\n%s", path, before, resp.Status, after)
		}
	}
}
