package websocket

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// goroutine returns which one calls.
func goroutine() string {
	b := make([]byte, 64)
	return string(b[:runtime.Stack(b, false)])
}

func (w *crew) resting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.idle)
}

func TestCrewKeepsWhoIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w crew
		defer w.close()
		var first, next string
		w.run(func() { first = goroutine() })
		synctest.Wait()
		for range 10 { // half a sweep from one to the next
			time.Sleep(crewSweep / 2)
			w.run(func() { next = goroutine() })
			synctest.Wait()
			if next != first {
				t.Fatalf("%s works, not %s", next, first)
			}
		}
		time.Sleep(2 * crewSweep)
		synctest.Wait()
		if n := w.resting(); n != 0 {
			t.Fatalf("%d goroutines are idle after two sweeps", n)
		}
	})
}

func TestCrewLetsGoOfACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w crew
		defer w.close()
		begin := make(chan struct{})
		for range 50 {
			w.run(func() { <-begin }) // all begin at once
		}
		close(begin)
		synctest.Wait()
		if n := w.resting(); n != 50 {
			t.Fatalf("%d goroutines are idle, want 50", n)
		}
		for range 5 {
			time.Sleep(crewSweep / 2)
			w.run(func() {})
		}
		synctest.Wait()
		if n := w.resting(); n != 1 {
			t.Fatalf("%d goroutines are idle, and one had work to do", n)
		}
	})
}

func TestCrewCloseWaitsForTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w crew
		var ran atomic.Int32
		for range 3 {
			w.run(func() {
				time.Sleep(time.Minute)
				ran.Add(1)
			})
		}
		w.close()
		if n := ran.Load(); n != 3 {
			t.Fatalf("%d of 3 tasks ended", n)
		}
	})
}
