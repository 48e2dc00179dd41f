package phpbridge

import (
	"net/http/httptest"
	"syscall"
	"testing"
	"time"
)

func TestSoftStopRunsShutdownFunctions(t *testing.T) {
	p := testPool(t, func(o *Options) { o.Grace = patience })
	timeouts := 0
	for _, code := range []string{
		`sleep(600);`,
		`while (true);`,
		`fread(fopen(__FILE__ . ".fifo", "r+"), 1);`, // PHP tries a read again that a signal has ended
	} {
		r := script(t, `register_shutdown_function(function () { touch(__FILE__ . ".down"); }); touch(__FILE__ . ".mark"); `+code)
		r.Timeout = 50 * time.Millisecond
		if err := syscall.Mkfifo(r.Script+".fifo", 0o600); err != nil {
			t.Fatal(err)
		}
		timeouts += serveOverLimit(t, p, r)
		if !exists(r.Script + ".down") {
			t.Errorf("%s: the shutdown function did not run", code)
		}
	}
	if s := p.Stats(); s.Crashes != 0 || s.Timeouts != uint64(timeouts) {
		t.Errorf("%d crashes and %d timeouts counted, want 0 and %d", s.Crashes, s.Timeouts, timeouts)
	}
	if got := body(t, run(t, p, script(t, `echo "fine";`))); got != "fine" {
		t.Errorf("the next request got %q", got)
	}
}

func TestAScriptThatIgnoresTheSoftStopIsKilled(t *testing.T) {
	p := testPool(t, func(o *Options) { o.Grace = 50 * time.Millisecond })
	for name, code := range map[string]string{
		"endless shutdown function": `register_shutdown_function(function () { while (true); }); while (true);`,
		"a peer that is silent":     `$s = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0); fread($s[0], 1);`,
		"a lock that is held":       `$f = fopen(__FILE__, "r"); flock($f, LOCK_EX); while (true) { $g = fopen(__FILE__, "r"); flock($g, LOCK_EX); }`,
		"a regular expression":      `ini_set("pcre.jit", 0); ini_set("pcre.backtrack_limit", PHP_INT_MAX); preg_match('/^(a+)+$/', str_repeat("a", 60) . "b");`,
	} {
		r := script(t, code)
		r.Timeout = 50 * time.Millisecond
		if _, err := p.Serve(t.Context(), httptest.NewRecorder(), r); err != ErrTimeout {
			t.Errorf("%s: Serve returned %v, want ErrTimeout", name, err)
		}
	}
	waitFor(t, "two workers", func() bool { s := p.Stats(); return s.Workers == 2 && s.Busy == 0 })
}

// The first look at a job's clock may come while it still waits for a worker.
// The time limit of its script must not be looked at only when the time for
// waiting is over.
func TestTimeLimitOfAJobThatWaitedLongerThanIt(t *testing.T) {
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers, o.BacklogWait = 1, 1, time.Hour })
	entered := &flushed{httptest.NewRecorder(), make(chan struct{}, 1)}
	held := make(chan error, 1)
	go func() {
		_, err := p.Serve(t.Context(), entered, script(t, `echo "in"; flush(); usleep(500000);`))
		held <- err
	}()
	<-entered.ch
	r := script(t, `sleep(60);`) // and not all of the hour
	r.Timeout = 50 * time.Millisecond
	if _, err := p.Serve(t.Context(), httptest.NewRecorder(), r); err != ErrTimeout {
		t.Errorf("Serve returned %v, want ErrTimeout", err)
	}
	if err := <-held; err != nil {
		t.Error(err)
	}
}

// The signals that end a script do not reach the next one of its worker.
func TestSoftStopIsOverWithItsScript(t *testing.T) {
	p := testPool(t, func(o *Options) { o.Grace, o.MinWorkers, o.MaxWorkers = patience, 1, 1 })
	over := script(t, `touch(__FILE__ . ".mark"); while (true);`)
	over.Timeout = 50 * time.Millisecond
	next := script(t, `$began = hrtime(true); usleep(200_000); echo hrtime(true) - $began >= 200_000_000 ? "slept" : "woken";`)
	for range 3 {
		serveOverLimit(t, p, over)
		if got := body(t, run(t, p, next)); got != "slept" {
			t.Fatalf("the next script was %s", got)
		}
	}
}
