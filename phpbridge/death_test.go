package phpbridge

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestServeKillsAScriptOverItsTime(t *testing.T) {
	p := testPool(t, nil)
	for _, code := range []string{`sleep(60);`, `while (1);`} {
		r := script(t, code)
		r.Timeout = 50 * time.Millisecond
		if _, err := p.Serve(t.Context(), httptest.NewRecorder(), r); !errors.Is(err, ErrTimeout) {
			t.Errorf("%s: Serve returned %v, want ErrTimeout", code, err)
		}
	}
	if got := body(t, run(t, p, script(t, `echo "fine";`))); got != "fine" {
		t.Errorf("the next request got %q", got)
	}
	if got := p.Stats().Timeouts; got != 2 {
		t.Errorf("%d timeouts counted, want 2", got)
	}
}

func TestServeReportsACrash(t *testing.T) {
	p := testPool(t, nil)
	r := script(t, `echo "x"; ephpm_ws_send("now"); sleep(60);`)
	r.Host = hostFunc(func(*Call) { p.kill(jobOf(p, r).state().slot(), syscall.SIGSEGV) })
	_, err := p.Serve(t.Context(), httptest.NewRecorder(), r)
	var crash *CrashError
	if !errors.As(err, &crash) || !strings.Contains(crash.Reason, "signal 11") {
		t.Fatalf("Serve returned %v, want a CrashError with signal 11", err)
	}
	if got := body(t, run(t, p, script(t, `echo "fine";`))); got != "fine" {
		t.Errorf("the next request got %q", got)
	}
}

func TestNewReportsThatPHPDoesNotStart(t *testing.T) {
	if _, set := os.LookupEnv("PHP_INI_SCAN_DIR"); set {
		t.Skip("needs OPcache, which is left out under valgrind")
	}
	_, err := New(Options{
		MinWorkers: 1, MaxWorkers: 1, Log: slog.New(slog.DiscardHandler),
		INI: []INI{{"opcache.preload", "/does/not/exist.php"}},
	})
	if err == nil || !strings.Contains(err.Error(), "PHP") {
		t.Errorf("New returned %v, want an error about PHP", err)
	}
}

// kills is how many workers the test of kills under load kills.
var kills = flag.Int("kills", 300, "workers to kill under load")

// A storm of kills under load: each costs at most the request that the worker
// ran, and the pool is whole again afterwards, with nothing left over.
func TestKilledWorkersCostOnlyTheirRequests(t *testing.T) {
	dir := temporary(t)
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers = 4, 4 })
	r := script(t, `usleep(random_int(0, 300)); echo "answer";`)
	idle := func() bool { s := p.Stats(); return s.Workers == 4 && s.Busy == 0 && pids(p) == 4 }
	waitFor(t, "four workers", idle)
	front, zygote := descriptors(t, os.Getpid()), descriptors(t, zygotePID(p))
	var failed, served atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				w := httptest.NewRecorder()
				_, err := p.Serve(t.Context(), w, r)
				var crash *CrashError
				switch {
				case err == nil && w.Body.String() == "answer":
					served.Add(1)
				case errors.As(err, &crash):
					failed.Add(1)
				default:
					t.Errorf("Serve: %v, body %q", err, w.Body)
				}
			}
		})
	}
	for i := range *kills {
		p.kill(i%4, syscall.SIGKILL)
		for before := served.Load(); served.Load() < before+5; {
			time.Sleep(100 * time.Microsecond) // between two looks
		}
	}
	close(stop)
	wg.Wait()
	if failed.Load() > int64(*kills) {
		t.Errorf("%d requests failed for %d kills", failed.Load(), *kills)
	}
	t.Logf("%d served, %d failed", served.Load(), failed.Load())
	waitFor(t, "four idle workers", idle)
	for class := range classes {
		if got := len(p.backlogs[class].free); got != len(p.jobs)/int(classes) {
			t.Errorf("%d free jobs of class %s, want %d", got, class, len(p.jobs)/int(classes))
		}
	}
	waitFor(t, "as many descriptors as before", func() bool {
		return descriptors(t, os.Getpid()) <= front && descriptors(t, zygotePID(p)) <= zygote
	})
	waitFor(t, "directories for the uploads of four workers", func() bool {
		list, err := filepath.Glob(dir + "/*/*")
		return err == nil && len(list) == 4
	})
}

// pids returns how many workers are known to run.
func pids(p *Pool) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.slots {
		if p.slots[i].pid != 0 && p.slots[i].status == slotRunning {
			n++
		}
	}
	return n
}

func zygotePID(p *Pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.zygote.cmd.Process.Pid
}

// descriptors returns how many descriptors a process has open.
func descriptors(t *testing.T, pid int) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestZygoteIsReplaced(t *testing.T) {
	p := testPool(t, nil)
	run(t, p, script(t, `echo 1;`))
	p.mu.Lock()
	zygote := p.zygote
	p.mu.Unlock()
	if err := zygote.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "an answer from new workers", func() bool {
		w := httptest.NewRecorder()
		_, err := p.Serve(t.Context(), w, script(t, `echo "back";`))
		return err == nil && w.Body.String() == "back"
	})
}

func TestNonsenseInSharedMemoryCostsOneWorker(t *testing.T) {
	p := testPool(t, nil)
	for name, record := range map[string][]byte{
		"more than the ring holds":  make([]byte, responseSize+1),
		"an unknown record":         appendRecord(nil, 99, ""),
		"a record that is too long": {0xff, 0xff, 0xff, 0xff, byte(recCall), 0, 0, 0},
	} {
		r := script(t, `echo "x"; flush(); sleep(60);`)
		r.Timeout = time.Hour
		w := &flushed{httptest.NewRecorder(), make(chan struct{}, 1)}
		go func() {
			<-w.ch
			j := jobOf(p, r)
			tail := atomic.LoadUint64(u64(&j.c.out_tail))
			copy(j.response[tail:], record[:min(len(record), 64)])
			atomic.StoreUint64(u64(&j.c.out_tail), tail+uint64(len(record)))
			j.notify()
		}()
		_, err := p.Serve(t.Context(), w, r)
		var crash *CrashError
		if !errors.As(err, &crash) || !strings.Contains(crash.Reason, "protocol") {
			t.Errorf("%s: Serve returned %v, want a CrashError about the protocol", name, err)
		}
	}
	if got := body(t, run(t, p, script(t, `echo "fine";`))); got != "fine" {
		t.Errorf("the next request got %q", got)
	}
	if got := p.Stats().Broken; got != 3 {
		t.Errorf("%d are counted, want 3", got)
	}
}

func jobOf(p *Pool, r *Request) *job {
	for _, j := range p.jobs {
		if slices.Contains(j.label.attributes(), any(r.Script)) {
			return j
		}
	}
	return nil
}

func TestCloseEndsARequestWhoseStateWasOverwritten(t *testing.T) {
	p := testPool(t, nil)
	r := script(t, `echo "x"; flush(); sleep(60);`)
	w := &flushed{httptest.NewRecorder(), make(chan struct{}, 1)}
	result := make(chan error, 1)
	go func() {
		_, err := p.Serve(context.Background(), w, r)
		result <- err
	}()
	<-w.ch
	jobOf(p, r).setState(0xdeadbeef)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Close returned %v, want context.Canceled", err)
	}
	var crash *CrashError
	if err := <-result; !errors.As(err, &crash) {
		t.Errorf("Serve returned %v, want a CrashError", err)
	}
}

// The state word is the worker's to write. Whatever it says, the time limit holds.
func TestTimeLimitHoldsWhateverTheStateOfTheJobSays(t *testing.T) {
	for name, state := range map[string]func(s jobState) jobState{
		"zero":             func(jobState) jobState { return 0 },
		"free":             func(s jobState) jobState { return newJobState(s.generation(), 0, stateFree) },
		"killed":           func(s jobState) jobState { return newJobState(s.generation(), s.slot(), stateKilled) },
		"a slot too high":  func(s jobState) jobState { return newJobState(s.generation(), 1<<20, stateTaken) },
		"a foreign number": func(s jobState) jobState { return newJobState(s.generation()+1, s.slot(), stateTaken) },
	} {
		p := testPool(t, nil)
		limit := 500 * time.Millisecond
		for written := false; !written; limit *= 2 { // on a busy machine the time may be over before
			r := script(t, `echo "x"; flush(); sleep(60);`)
			r.Timeout = limit
			w := &flushed{httptest.NewRecorder(), make(chan struct{}, 1)}
			var wg sync.WaitGroup
			over := make(chan struct{})
			wg.Go(func() {
				select {
				case <-w.ch:
				case <-over:
					return
				}
				if j := jobOf(p, r); j != nil {
					j.setState(state(j.state()))
					written = true
				}
			})
			_, err := p.Serve(t.Context(), w, r)
			close(over)
			wg.Wait()
			if err == nil {
				t.Errorf("%s: Serve returned without an error", name)
			}
		}
		// All workers may be replaced, so the first to take the next request may
		// be one that is about to go.
		next := script(t, `echo "fine";`)
		waitFor(t, "a worker that lives", func() bool {
			w := httptest.NewRecorder()
			_, err := p.Serve(t.Context(), w, next)
			return err == nil && w.Body.String() == "fine"
		})
	}
}

// A worker writes nonsense, dies, and another takes its place before the front
// reads the nonsense: the other is not hit.
func TestASuccessorIsNotKilledForItsPredecessor(t *testing.T) {
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers = 1, 1 })
	r := script(t, `echo "x"; flush(); sleep(60);`)
	w := &slowWriter{flushed: flushed{httptest.NewRecorder(), make(chan struct{}, 1)}, goOn: make(chan struct{})}
	result := make(chan error, 1)
	go func() {
		_, err := p.Serve(context.Background(), w, r)
		result <- err
	}()
	<-w.ch // Serve waits in Flush
	j := jobOf(p, r)
	tail := atomic.LoadUint64(u64(&j.c.out_tail))
	copy(j.response[tail:], appendRecord(nil, 99, ""))
	atomic.StoreUint64(u64(&j.c.out_tail), tail+8)
	p.kill(0, syscall.SIGKILL)
	release := block(t, p, Page, 1)
	waitFor(t, "a successor that runs", func() bool { return p.Stats().Busy == 2 })
	close(w.goOn)
	var crash *CrashError
	if err := <-result; !errors.As(err, &crash) {
		t.Errorf("Serve returned %v, want a CrashError", err)
	}
	release() // fails the test if the successor died
}

// A slowWriter waits in Flush.
type slowWriter struct {
	flushed
	goOn chan struct{}
}

func (w *slowWriter) Flush() {
	w.flushed.Flush()
	<-w.goOn
}

// A ResponseWriter that panics costs its worker, not the job.
func TestAPanicInTheWriterLeavesNothingBehind(t *testing.T) {
	p := testPool(t, nil)
	func() {
		defer func() { _ = recover() }() // http.Server does the same
		_, _ = p.Serve(t.Context(), panicWriter{httptest.NewRecorder()}, script(t, `echo str_repeat("x", 5000); flush(); sleep(60);`))
		t.Error("Serve did not panic")
	}()
	waitFor(t, "free jobs", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.backlogs[Page].held == 0
	})
}

type panicWriter struct{ *httptest.ResponseRecorder }

func (panicWriter) Write([]byte) (int, error) { panic(http.ErrAbortHandler) }
