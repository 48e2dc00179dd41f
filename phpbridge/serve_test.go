package phpbridge

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestServeRunsAScript(t *testing.T) {
	p := testPool(t, nil)
	w := run(t, p, script(t, `header("X-A: 1"); header("X-A: 2", false); http_response_code(201); echo "hello ", PHP_SAPI;`))
	if w.Code != 201 {
		t.Errorf("status %d, want 201", w.Code)
	}
	if got := body(t, w); got != "hello ephpm" {
		t.Errorf("body %q", got)
	}
	if got := w.Result().Header.Values("X-A"); len(got) != 2 {
		t.Errorf("X-A is %q, want two values", got)
	}
}

func TestServePassesTheRequest(t *testing.T) {
	p := testPool(t, nil)
	r := script(t, `echo json_encode([$_GET, $_POST, $_COOKIE, $_SERVER['X_Y'], file_get_contents('php://input')]);`)
	r.Vars = r.Vars.Add("X_Y", "z").Add("HTTP_COOKIE", "c=1; d=2")
	r.Vars = r.Vars.Add("QUERY_STRING", "a=1&b[]=2")
	post(r, "application/x-www-form-urlencoded", "p=1&q=2")
	if got, want := body(t, run(t, p, r)), `[{"a":"1","b":["2"]},{"p":"1","q":"2"},{"c":"1","d":"2"},"z","p=1&q=2"]`; got != want {
		t.Errorf("body %s, want %s", got, want)
	}
}

func TestServeReadsALongBody(t *testing.T) {
	p := testPool(t, nil)
	long := strings.Repeat("0123456789", 500_000)
	r := post(script(t, `echo strlen(file_get_contents('php://input')), ' ', md5(file_get_contents('php://input'));`), "text/plain", long)
	want := "5000000 " + fmt.Sprintf("%x", md5.Sum([]byte(long)))
	if got := body(t, run(t, p, r)); got != want {
		t.Errorf("body %q, want %q", got, want)
	}
}

func TestServeWritesALongAnswer(t *testing.T) {
	p := testPool(t, nil)
	w := run(t, p, script(t, `for ($i = 0; $i < 100; $i++) echo str_repeat(chr(65 + $i % 26), 100_000);`))
	got := body(t, w)
	if len(got) != 10_000_000 || got[0] != 'A' || got[len(got)-1] != 'V' {
		t.Errorf("got %d bytes from %q to %q", len(got), got[:1], got[len(got)-1:])
	}
}

func TestServeAnswersAFatalErrorWith500(t *testing.T) {
	p := testPool(t, nil)
	w := run(t, p, script(t, `echo "x"; register_shutdown_function(function () { echo "down"; }); undefined_function();`))
	if w.Code != 500 {
		t.Errorf("status %d, want 500", w.Code)
	}
	if got := body(t, run(t, p, script(t, `echo "fine";`))); got != "fine" {
		t.Errorf("the next request got %q", got)
	}
}

func TestServeTellsAScriptThatItsClientHasGone(t *testing.T) {
	p := testPool(t, nil)
	mark := filepath.Join(t.TempDir(), "mark")
	ctx, cancel := context.WithCancel(t.Context())
	r := script(t, `register_shutdown_function(function () { file_put_contents($_SERVER['MARK'], connection_status()); });
		echo "x"; flush(); while (true) { usleep(1000); echo "y"; flush(); }`)
	r.Vars = r.Vars.Add("MARK", mark)
	w := &flushed{httptest.NewRecorder(), make(chan struct{}, 1000)}
	go func() { <-w.ch; cancel() }()
	if _, err := p.Serve(ctx, w, r); !errors.Is(err, context.Canceled) {
		t.Errorf("Serve returned %v, want context.Canceled", err)
	}
	if got, _ := os.ReadFile(mark); string(got) != "1" {
		t.Errorf("connection_status() is %q in the shutdown function, want 1", got)
	}
}

func TestMaxExecutionTimeIsPHPs(t *testing.T) {
	p := testPool(t, func(o *Options) {
		o.INI = []INI{{"max_execution_time", "1"}, {"display_errors", "1"}, {"html_errors", "0"}}
	})
	for name, code := range map[string]string{
		"configured":       `echo ini_get("max_execution_time");`,
		"set_time_limit()": `set_time_limit(1); echo 1;`,
	} {
		w := run(t, p, script(t, code+`register_shutdown_function(function () { echo "down"; }); while (true);`))
		got := body(t, w)
		if !strings.HasPrefix(got, "1") || !strings.Contains(got, "Maximum execution time of 1 second exceeded") || !strings.HasSuffix(got, "down") {
			t.Errorf("%s: body %q", name, got)
		}
	}
	got := body(t, run(t, p, script(t, `set_time_limit(0); for ($end = microtime(true) + 2.2; microtime(true) < $end;); echo "unlimited";`)))
	if got != "unlimited" {
		t.Errorf("set_time_limit(0): body %q", got)
	}
}

func TestWorkingDirectoryIsTheScripts(t *testing.T) {
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers = 1, 1 })
	for range 2 {
		r := script(t, `echo getcwd(); chdir("/"); `)
		for range 2 {
			if got := body(t, run(t, p, r)); got != filepath.Dir(r.Script) {
				t.Errorf("working directory %q, want %q", got, filepath.Dir(r.Script))
			}
		}
	}
}

func TestProgramsThatPHPStartsGetNothingOfOurs(t *testing.T) {
	p := testPool(t, nil)
	got := body(t, run(t, p, script(t, `echo shell_exec('ls -l /proc/self/fd; grep SigIgn /proc/self/status; env');`)))
	for _, bad := range []string{"eventfd", "memfd", "socket", "libphp", "EPHPM_"} {
		if strings.Contains(got, bad) {
			t.Errorf("a program finds %s in\n%s", bad, got)
		}
	}
	_, after, _ := strings.Cut(got, "SigIgn:\t")
	ignored, err := strconv.ParseUint(after[:16], 16, 64)
	if err != nil || ignored&(1<<31-1) != 0 { // those of signal(7), real-time ones may come from without
		t.Errorf("a program ignores the signals %x (%v)", ignored, err)
	}
}

func TestResultTellsOfAFatalErrorThatIsDisplayed(t *testing.T) {
	p := testPool(t, func(o *Options) { o.INI = []INI{{"display_errors", "1"}} })
	for code, want := range map[string]bool{
		`throw new Exception("x");`:             true,
		`undefined_function();`:                 true,
		`trigger_error("x", E_USER_ERROR);`:     true,
		`trigger_error("x", E_USER_WARNING);`:   false,
		`try { undefined(); } catch (Error) {}`: false,
		`exit(255);`:                            false,
	} {
		result, err := p.Serve(t.Context(), httptest.NewRecorder(), script(t, code))
		if err != nil || result.Fatal != want {
			t.Errorf("%s: Fatal is %t, %v, want %t", code, result.Fatal, err, want)
		}
	}
}

func TestEnvIsInTheEnvironmentAndTheServerArray(t *testing.T) {
	p := testPool(t, func(o *Options) {
		o.MinWorkers, o.MaxWorkers = 1, 1
		o.Env = map[string]string{"APP_ENV": "prod", "QUERY_STRING": "never"}
	})
	r := script(t, `$now = getenv('APP_ENV'); putenv('APP_ENV=changed');
		echo json_encode([$now, getenv('APP_ENV'), $_SERVER['APP_ENV'], $_SERVER['QUERY_STRING'], trim(shell_exec('echo $APP_ENV'))]);`)
	for range 2 {
		if got, want := body(t, run(t, p, r)), `["prod","changed","prod","","changed"]`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// The child of a script is no worker: it neither answers nor takes the next job.
func TestAScriptThatForksLeavesNoSecondWorker(t *testing.T) {
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers = 1, 1 })
	r := script(t, `
		if (!function_exists('pcntl_fork')) { echo "no pcntl"; exit; }
		$pid = pcntl_fork();
		if ($pid === 0) { echo "child"; flush(); file_put_contents(__FILE__ . ".child", getmypid()); exit(3); }
		pcntl_waitpid($pid, $status);
		echo "parent ", pcntl_wexitstatus($status);`)
	got := body(t, run(t, p, r))
	if got == "no pcntl" {
		t.Skip("this libphp has no pcntl")
	}
	if got != "parent 3" {
		t.Errorf("body %q", got)
	}
	child := read(t, r.Script+".child")
	for range 20 {
		if got := body(t, run(t, p, script(t, `echo getmypid();`))); got == child {
			t.Fatal("the child of a script serves")
		}
	}
	if exists("/proc/" + child) {
		t.Error("the child lives on")
	}
}
