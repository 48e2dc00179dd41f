package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// serveIndex starts a server with one script.
func serveIndex(t *testing.T, code string) *app {
	t.Helper()
	return startApp(t, appOptions{Files: map[string]string{"index.php": "<?php " + code}})
}

func TestResponseHeadersAndStatus(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `
		http_response_code(201);
		header("Foo: bar");
		header("Foo2:bar2");
		header("Invalid");
		header("X-Number: {$_GET['i']}");
		header("X-Twice: one");
		header("X-Twice: two", false);
		header("X-Replaced: one");
		header("X-Replaced: two");
		header("X-Removed: one");
		header_remove("X-Removed");
		echo "Hi";`)
	hundred(t, func(i int) error {
		resp, body, err := fetch(a.request("GET", fmt.Sprintf("/?i=%d", i), ""))
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusCreated || body != "Hi" {
			return fmt.Errorf("%s %q, want 201 \"Hi\"", resp.Status, body)
		}
		for name, want := range map[string][]string{
			"Foo":            {"bar"},
			"Foo2":           {"bar2"},
			"Invalid":        nil,
			"X-Number":       {fmt.Sprint(i)},
			"X-Twice":        {"one", "two"},
			"X-Replaced":     {"two"},
			"X-Removed":      nil,
			"Content-Type":   {"text/html; charset=UTF-8"},
			"Content-Length": {"2"},
		} {
			if got := resp.Header.Values(name); !slices.Equal(got, want) {
				return fmt.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		return nil
	})
}

func TestScriptCannotSplitTheResponse(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `
		@header("X-Bad: one\r\nX-Injected: two");
		@header("X Bad: blank in the name");
		@header("Transfer-Encoding: chunked");
		header("X-Good: 1");
		echo "body";`)
	resp, body := a.get("/")
	if resp.Header.Get("X-Good") != "1" || body != "body" || len(resp.TransferEncoding) != 0 {
		t.Errorf("%v %q, want X-Good and a plain body", resp.Header, body)
	}
	for name := range resp.Header {
		if strings.Contains(name, "Injected") || strings.Contains(name, "Bad") {
			t.Errorf("the answer has the header %q", name)
		}
	}
}

func TestStatusLines(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `header($_GET['line']); echo "body";`)
	for line, want := range map[string]int{
		"HTTP/1.1 418 I'm a teapot":     418,
		"HTTP/1.0 404":                  404,
		"HTTP/":                         200,
		"Location: /elsewhere":          302,
		"WWW-Authenticate: Basic":       401,
		"X-Anything: else":              200,
		"HTTP/1.1 299 Never heard of":   299,
		"HTTP/1.1 599 Never heard of":   599,
		"HTTP/1.1 308 Moved for good":   308,
		"HTTP/1.1 100 Continue":         500,
		"HTTP/1.1 101 Switching":        500,
		"HTTP/1.1 199 Informational":    500,
		"HTTP/1.1 600 Over the top":     500,
		"HTTP/1.1 99999999999999999 No": 500,
	} {
		req := a.request("GET", "/", "")
		req.URL.RawQuery = "line=" + strings.NewReplacer(" ", "+", "'", "%27", ":", "%3A").Replace(line)
		if resp, body := a.do(req); resp.StatusCode != want || body != "body" {
			t.Errorf("header(%q): %s %q, want %d", line, resp.Status, body, want)
		}
	}
	a.waitLog(`level=ERROR msg="script set an impossible status.*status=101`)
}

func TestStatusesOfManyRequests(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `http_response_code(200 + (int) $_GET['i']); header("X-Number: {$_GET['i']}");`)
	hundred(t, func(i int) error {
		resp, _, err := fetch(a.request("GET", fmt.Sprintf("/?i=%d", i), ""))
		if err == nil && (resp.StatusCode != 200+i || resp.Header.Get("X-Number") != fmt.Sprint(i)) {
			err = fmt.Errorf("%s, X-Number %q", resp.Status, resp.Header.Get("X-Number"))
		}
		return err
	})
}

func TestNoContentHasNoBody(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `header("HTTP/1.1 {$_GET['s']} x"); echo "body"; ob_end_flush(); flush(); echo "more";`)
	for _, status := range []int{204, 304} {
		w := a.connect()
		w.send(getText(fmt.Sprintf("/?s=%d", status)))
		// A body would be taken for the start of the second answer.
		w.send(getText(fmt.Sprintf("/?s=%d", status), "Connection: close"))
		for range 2 {
			resp, body := w.answer()
			if resp.StatusCode != status || body != "" {
				t.Errorf("%s %q, want %d without a body", resp.Status, body, status)
			}
		}
		if rest, err := w.rest(); rest != "" || err != nil {
			t.Errorf("behind a %d came %q, %v", status, rest, err)
		}
	}
	if log := a.Log(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "level=WARN") {
		t.Errorf("a body where none may be is in the log:\n%s", log)
	}
}

func TestSetCookieReachesTheClient(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `
		setcookie("a", "one two", ["expires" => 2000000000, "path" => "/p", "secure" => true, "httponly" => true, "samesite" => "Lax"]);
		setcookie("b", $_GET['i']);
		header("Set-Cookie: c=3", false);`)
	hundred(t, func(i int) error {
		resp, _, err := fetch(a.request("GET", fmt.Sprintf("/?i=%d", i), ""))
		if err != nil {
			return err
		}
		cookies := resp.Cookies()
		if len(cookies) != 3 {
			return fmt.Errorf("Set-Cookie is %q, want three", resp.Header["Set-Cookie"])
		}
		first := cookies[0]
		if first.Value != "one%20two" || first.Path != "/p" || !first.Secure || !first.HttpOnly ||
			first.SameSite != http.SameSiteLaxMode || first.Expires.Unix() != 2000000000 {
			return fmt.Errorf("the first cookie is %q", first.Raw)
		}
		if cookies[1].Value != fmt.Sprint(i) || cookies[2].Value != "3" {
			return fmt.Errorf("the other cookies are %q and %q, want %d and 3", cookies[1].Raw, cookies[2].Raw, i)
		}
		return nil
	})
}

func TestLargeResponseIsComplete(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `for ($i = 0; $i < 200; $i++) echo str_repeat(chr(65 + $i % 26), 10000);`)
	var want strings.Builder
	for i := range 200 {
		want.WriteString(strings.Repeat(string(rune('A'+i%26)), 10000))
	}
	hundred(t, func(int) error {
		_, body, err := fetch(a.request("GET", "/", ""))
		if err == nil && body != want.String() {
			err = fmt.Errorf("%d bytes, want %d, or others", len(body), want.Len())
		}
		return err
	})
}

func TestAnnouncedLengthHolds(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `header("Content-Length: 4"); echo "1234567";`)
	w := a.connect()
	w.send(getText("/") + getText("/", "Connection: close"))
	for range 2 {
		if resp, body := w.answer(); resp.StatusCode != 200 || body != "1234" {
			t.Errorf("%s %q, want what was announced and no more", resp.Status, body)
		}
	}
}

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
		echo "end";`)
	hundred(t, func(i int) error {
		return wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""), fmt.Sprintf("Fiber %d %d back again end", i, 2*i))
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

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `echo $_GET['i'];`)
	w := a.connect()
	for i := range 50 {
		w.send(getText(fmt.Sprintf("/?i=%d", i)))
	}
	for i := range 50 {
		if _, body := w.answer(); body != fmt.Sprint(i) {
			t.Fatalf("answer %d is %q", i, body)
		}
	}
}

func TestHTTP10ClientIsAnswered(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `echo json_encode([$_SERVER['SERVER_PROTOCOL'], isset($_SERVER['HTTP_HOST'])]); ob_end_flush(); flush(); echo "end";`)
	w := a.connect()
	w.send("GET / HTTP/1.0\r\n\r\n")
	text, err := io.ReadAll(w)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(text))), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	if string(body) != `["HTTP\/1.0",false]end` || len(resp.TransferEncoding) > 0 {
		t.Errorf("HTTP/1.0 was answered with %q", text)
	}
}

func TestEveryRequestHasAnIDOfItsOwn(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, dump("$_SERVER['REQUEST_ID']")[len("<?php "):])
	seen := make([]string, 100)
	hundred(t, func(i int) error {
		_, body, err := fetch(a.request("GET", "/", ""))
		if err == nil {
			err = json.Unmarshal([]byte(body), &seen[i])
		}
		return err
	})
	slices.Sort(seen)
	if unique := slices.Compact(slices.Clone(seen)); !reflect.DeepEqual(seen, unique) {
		t.Errorf("of 100 request ids %d are different", len(unique))
	}
}
