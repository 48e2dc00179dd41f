package phpbridge

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// block runs a script that waits for a file, n times at once, and returns a
// function that lets them go and waits for their ends.
func block(t *testing.T, p *Pool, class Class, n int) (release func()) {
	t.Helper()
	r := script(t, `while (!file_exists($_SERVER['GO'])) { usleep(1000); clearstatcache(); } echo "went";`)
	file := r.Script + ".go"
	r.Vars = r.Vars.Add("GO", file)
	r.Class = class
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			w := httptest.NewRecorder()
			if _, err := p.Serve(context.Background(), w, r); err != nil || w.Body.String() != "went" {
				t.Errorf("blocked script: %v, %q", err, w.Body)
			}
		})
	}
	return func() {
		touch(t, file)
		wg.Wait()
	}
}

func TestPoolGrowsWhenRequestsWaitAndShrinksWhenIdle(t *testing.T) {
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers, o.WorkerIdle = 1, 6, time.Millisecond })
	release := block(t, p, Page, 6)
	waitFor(t, "six busy workers", func() bool { return p.Stats().Busy == 6 })
	release()
	waitFor(t, "one worker", func() bool { return p.Stats().Workers == 1 })
}

func TestAClassIsNotStarvedByTheOther(t *testing.T) {
	p := testPool(t, nil)
	release := block(t, p, Page, 10)
	waitFor(t, "two busy workers", func() bool { return p.Stats().Busy == 2 })
	r := script(t, `echo "event";`)
	r.Class = Event
	if got := body(t, run(t, p, r)); got != "event" {
		t.Errorf("the event got %q", got)
	}
	release()
}

func TestBacklogIsBoundedInNumberAndTime(t *testing.T) {
	p := testPool(t, func(o *Options) {
		o.MinWorkers, o.MaxWorkers, o.Backlog = 1, 1, 2
	})
	release := block(t, p, Page, 1)
	waitFor(t, "a busy worker", func() bool { return p.Stats().Busy == 1 })
	var wg sync.WaitGroup
	for range 5 { // two wait too long, three find it full
		wg.Go(func() {
			r := script(t, ``)
			r.Wait = 50 * time.Millisecond
			if _, err := p.Serve(t.Context(), httptest.NewRecorder(), r); !errors.Is(err, ErrBusy) {
				t.Errorf("Serve returned %v, want ErrBusy", err)
			}
		})
	}
	wg.Wait()
	if s := p.Stats(); s.Waiting != [2]int{} {
		t.Errorf("%v requests still wait", s.Waiting)
	}
	release()
	if got := body(t, run(t, p, script(t, `echo "fine";`))); got != "fine" {
		t.Errorf("the next request got %q", got)
	}
}

func TestAWaiterWhoseClientLeftIsDropped(t *testing.T) {
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers = 1, 1 })
	release := block(t, p, Page, 1)
	waitFor(t, "a busy worker", func() bool { return p.Stats().Busy == 1 })
	r := script(t, `touch(__FILE__ . ".ran");`)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := p.Serve(ctx, httptest.NewRecorder(), r)
		result <- err
	}()
	waitFor(t, "a waiting request", func() bool { return p.Stats().Waiting[Page] == 1 })
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("Serve returned %v, want context.Canceled", err)
	}
	release()
	run(t, p, script(t, ``))
	if exists(r.Script + ".ran") {
		t.Error("the script ran without a client")
	}
}

func TestWorkersAreRecycled(t *testing.T) {
	p := testPool(t, func(o *Options) { o.MaxRequests = 5 })
	r := script(t, `echo getmypid();`)
	served := map[string]int{}
	for range 50 {
		served[body(t, run(t, p, r))]++
	}
	for pid, n := range served {
		if n > 5 {
			t.Errorf("worker %s served %d requests, want at most 5", pid, n)
		}
	}
	waitFor(t, "recycled workers", func() bool { return p.Stats().Recycles >= 8 })
	if got := p.Stats().Crashes; got != 0 {
		t.Errorf("%d crashes counted, want 0", got)
	}
}

func TestCloseLetsRunningScriptsEnd(t *testing.T) {
	p := testPool(t, nil)
	release := block(t, p, Page, 2)
	waitFor(t, "busy workers", func() bool { return p.Stats().Busy == 2 })
	done := make(chan error)
	go func() { done <- p.Close(t.Context()) }()
	waitFor(t, "a closing pool", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.closing
	})
	if _, err := p.Serve(t.Context(), httptest.NewRecorder(), script(t, ``)); !errors.Is(err, ErrClosed) {
		t.Errorf("Serve returned %v, want ErrClosed", err)
	}
	release()
	if err := <-done; err != nil {
		t.Errorf("Close returned %v", err)
	}
}

func TestCloseKillsWhatDoesNotEnd(t *testing.T) {
	p := testPool(t, nil)
	result := make(chan error, 1)
	go func() {
		_, err := p.Serve(context.Background(), httptest.NewRecorder(), script(t, `sleep(60);`))
		result <- err
	}()
	waitFor(t, "a busy worker", func() bool { return p.Stats().Busy == 1 })
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

func TestWorkersWithMuchMemoryAreReplaced(t *testing.T) {
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers, o.WorkerMaxMemory = 1, 1, 64<<20 })
	grow := script(t, `ini_set("memory_limit", -1); $x = str_repeat("x", 300 << 20); echo getmypid(); while (!file_exists(__FILE__ . ".go")) { usleep(1000); clearstatcache(); }`)
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := p.Serve(t.Context(), w, grow); err != nil {
			t.Errorf("Serve: %v", err)
		}
	}()
	waitFor(t, "a worker that is to be replaced", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.slots[0].replaced
	})
	touch(t, grow.Script+".go")
	<-done
	if got := body(t, run(t, p, script(t, `echo getmypid();`))); got == w.Body.String() {
		t.Errorf("worker %s serves on", got)
	}
	if s := p.Stats(); s.Recycles != 1 || s.Crashes != 0 {
		t.Errorf("%d recycles and %d crashes counted, want 1 and 0", s.Recycles, s.Crashes)
	}
}

func TestWaitersAreServedInTheirOrder(t *testing.T) {
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers, o.Backlog = 1, 1, 1000 })
	release := block(t, p, Page, 1)
	waitFor(t, "a busy worker", func() bool { return p.Stats().Busy == 1 })
	file := script(t, `file_put_contents($_SERVER['OUT'], $_SERVER['N'] . "\n", FILE_APPEND);`)
	out := file.Script + ".out"
	const n = 300
	var wg sync.WaitGroup
	for i := range n {
		r := *file
		r.Vars = slices.Concat(file.Vars, Vars{}.Add("N", strconv.Itoa(i)).Add("OUT", out))
		wg.Go(func() {
			if _, err := p.Serve(t.Context(), httptest.NewRecorder(), &r); err != nil {
				t.Errorf("Serve: %v", err)
			}
		})
		waitFor(t, "one more that waits", func() bool { return p.Stats().Waiting[Page] == i+1 })
	}
	release()
	wg.Wait()
	for i, got := range strings.Fields(read(t, out)) {
		if got != strconv.Itoa(i) {
			t.Fatalf("number %s came in place %d", got, i)
		}
	}
}

func TestPagesAloneGetNoReserve(t *testing.T) {
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers, o.Backlog = 1, 1, 1000 })
	r := script(t, `usleep(2000);`)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if _, err := p.Serve(t.Context(), httptest.NewRecorder(), r); err != nil {
				t.Errorf("Serve: %v", err)
			}
		})
	}
	wg.Wait()
	if got := p.Stats().Spawns; got != 1 {
		t.Errorf("%d workers were forked, want 1", got)
	}
}
