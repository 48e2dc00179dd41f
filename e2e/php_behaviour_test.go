package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// sessionHandler keeps sessions in files that it locks by trying, which takes
// processor time.
const sessionHandler = `<?php
	class Handler implements SessionHandlerInterface, SessionIdInterface, SessionUpdateTimestampHandlerInterface {
		private $f;
		function open($path, $name): bool { return true; }
		function close(): bool { if ($this->f) fclose($this->f); $this->f = null; return true; }
		function create_sid(): string { return bin2hex(random_bytes(16)); }
		function validateId(string $id): bool { return is_file(__DIR__ . "/sess/$id"); }
		function updateTimestamp(string $id, string $data): bool { return true; }
		function destroy($id): bool { return unlink(__DIR__ . "/sess/$id"); }
		function gc($max): int|false { return 0; }
		function write($id, $data): bool { return (bool) file_put_contents(__DIR__ . "/sess/$id", $data); }
		function read($id): string|false {
			touch(__DIR__ . "/sess/$id");
			$this->f = fopen(__DIR__ . "/sess/$id.lock", 'c');
			while (!flock($this->f, LOCK_EX | LOCK_NB)) { }
			return file_get_contents(__DIR__ . "/sess/$id");
		}
	}
	ini_set('session.use_strict_mode', '1');
	session_set_save_handler(new Handler, true);
	if (isset($_GET['limit'])) set_time_limit(1);
	session_start();
	$_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1;
	if (isset($_GET['gate'])) file_get_contents($_GET['gate']);
	echo session_id(), ' ', $_SESSION['n'];`

// A script that ends at its limit inside of its own session handler leaves no lock
// behind, and no handler to the next.
func TestSessionHandlerOfAScriptThatEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[php]\nworkers = 2\nmin_workers = 2\n",
		Files: map[string]string{"index.php": sessionHandler, "sess/.keep": "", "plain.php": `<?php echo session_module_name();`},
	})
	c := visitor(t)
	first, err := visit(c, a.URL+"/")
	id, n, _ := strings.Cut(first, " ")
	if err != nil || n != "1" {
		t.Fatalf("the first visit: %q, %v", first, err)
	}
	g := newGate(t)
	cookie := []string{"Cookie", "PHPSESSID=" + id}
	holder := a.later(a.request("GET", "/?gate="+g.path, "", cookie...))
	g.wait()
	if resp, body := a.do(a.request("GET", "/?limit", "", cookie...)); resp.StatusCode != 500 || strings.Contains(body, id) {
		t.Errorf("one that waits for the lock in its handler: %s %q, want 500", resp.Status, body)
	}
	if err := wantBody(a.request("GET", "/plain.php", ""), "files"); err != nil {
		t.Errorf("a script without a handler: %v", err)
	}
	g.open()
	if _, body := holder.wait(); body != id+" 2" {
		t.Errorf("one that held the lock: %q, want its second visit", body)
	}
	if err := wantBody(a.request("GET", "/", "", cookie...), id+" 3"); err != nil {
		t.Errorf("the next: %v", err)
	}
}

// An id that a client made up is not taken in strict mode.
func TestStrictModeRefusesASessionOfTheClientsMaking(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": sessionHandler, "sess/.keep": ""}})
	hundred(t, func(i int) error {
		made := fmt.Sprintf("%032d", i)
		_, body, err := fetch(a.request("GET", "/", "", "Cookie", "PHPSESSID="+made))
		if err != nil || strings.Contains(body, made) || !strings.HasSuffix(body, " 1") {
			return fmt.Errorf("%q, %v; want a new session", body, err)
		}
		return nil
	})
}

// OPcache keeps the included file compiled; the variable is made anew for each
// request that asks for it.
func TestGlobalsMadeOnDemandAreOfThisRequest(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[php]\nworkers = 4\nini_overrides = [[\"auto_globals_jit\", \"1\"], [\"opcache.file_update_protection\", \"0\"]]\n",
		Files: map[string]string{
			"index.php": `<?php if ($_GET['i'] % 2) include 'part.php'; else echo 'none';`,
			"part.php":  `<?php ksort($_REQUEST); echo json_encode($_REQUEST), isset($_SERVER['REMOTE_ADDR']) ? 1 : 0;`,
		}})
	for range 2 {
		hundred(t, func(i int) error {
			want := "none"
			if i%2 == 1 {
				want = fmt.Sprintf(`{"i":"%d","val":"%d"}1`, i, i)
			}
			return wantBody(a.request("POST", fmt.Sprintf("/?i=%d", i), fmt.Sprintf("val=%d", i), "Content-Type", "application/x-www-form-urlencoded"), want)
		})
	}
}

// As debuggers of frameworks do it: the answer is what a destructor prints behind
// exit(1).
func TestDestructorPrintsBehindExit(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php
		class Dump { function __destruct() { echo "dump{$_GET['i']}"; } }
		$d = new Dump;
		http_response_code(500);
		exit(1);`}})
	hundred(t, func(i int) error {
		resp, body, err := fetch(a.request("GET", fmt.Sprintf("/?i=%d", i), ""))
		if err != nil || resp.StatusCode != 500 || body != fmt.Sprintf("dump%d", i) {
			return fmt.Errorf("%v %v %q", err, resp, body)
		}
		return nil
	})
}

// The body is the script's to read behind the answer, which is complete over
// HTTP/2 by the end of its stream.
func TestFinishedScriptReadsItsBodyOverHTTP2(t *testing.T) {
	t.Parallel()
	a, ca := startTLS(t, appOptions{
		TOML:  "[php]\nworkers = 4\nini_overrides = [[\"enable_post_data_reading\", \"0\"]]\n",
		Files: map[string]string{"index.php": finishScript},
	})
	client := ca.client(http2)
	hundred(t, func(i int) error {
		resp, body, err := send(client, a.request("POST", fmt.Sprintf("/?i=%d&f=fastcgi_finish_request", i), fmt.Sprintf("input %d", i)))
		if err != nil || resp.ProtoMajor != 2 || resp.StatusCode != 201 || body != fmt.Sprintf("first %d", i) || resp.Header.Get("X-Late") != "" {
			return fmt.Errorf("%v %v %q", err, resp, body)
		}
		return nil
	})
	for i := range 100 {
		a.waitLine(fmt.Sprintf(`text="finished %d: \[true,false,\\"input %d\\"\]"`, i, i))
	}
}
