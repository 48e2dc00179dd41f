package server

import (
	"sync/atomic"
	"time"
)

// quietTime is how long a request may take before the server looks whether its
// client leaves; it may be twice as long.
const quietTime = 10 * time.Millisecond

// A quietRead stands for the read that net/http begins behind every request, to
// learn whether the client leaves meanwhile. Starting it and breaking it off costs
// four calls of the kernel and the poller, more than all else of a small request,
// so it waits here first and begins only when the request lasts. The methods may be
// called from any goroutine.
type quietRead struct {
	over    atomic.Bool   // the deadline is past
	reading atomic.Int32  // reads that only the descriptor's deadline ends
	ended   chan struct{} // one token: over was set
}

// wait returns true when the read is to begin, and false when the deadline came
// first.
func (q *quietRead) wait(w *waves) bool {
	if q.over.Load() {
		return false
	}
	select {
	case <-q.ended:
		return false
	case <-w.next():
		return true
	}
}

// enter is called before a read of the descriptor, and leave after it. It returns
// false if the deadline is past: end, which did not see this read, may have left
// that to it.
func (q *quietRead) enter() bool {
	q.reading.Add(1)
	return !q.over.Load()
}

func (q *quietRead) leave() { q.reading.Add(-1) }

// end puts the deadline in the past, and reports whether the descriptor must know.
func (q *quietRead) end() bool {
	q.over.Store(true)
	select {
	case q.ended <- struct{}{}:
	default:
	}
	return q.reading.Load() > 0
}

// begin takes the deadline out of the past.
func (q *quietRead) begin() {
	if !q.over.Load() {
		return
	}
	q.over.Store(false)
	select {
	case <-q.ended:
	default:
	}
}

// waves wake together those who have waited for quietTime or longer.
type waves struct {
	second atomic.Pointer[chan struct{}] // closed after the one that is under way
	asked  atomic.Bool                   // somebody waits for second
	rolls  atomic.Bool                   // timer is set
	timer  *time.Timer

	// Owned by roll.
	first chan struct{} // closed at the end of the one that is under way
	had   bool          // somebody waits for first
}

func newWaves() *waves {
	w := &waves{first: make(chan struct{})}
	second := make(chan struct{})
	w.second.Store(&second)
	w.timer = time.AfterFunc(time.Hour, w.roll)
	w.timer.Stop()
	return w
}

// next returns what is closed in one to two times quietTime.
func (w *waves) next() <-chan struct{} {
	c := *w.second.Load()
	if !w.asked.Load() {
		w.asked.Store(true)
	}
	if !w.rolls.Load() && w.rolls.CompareAndSwap(false, true) {
		w.timer.Reset(quietTime)
	}
	return c
}

func (w *waves) roll() {
	close(w.first)
	asked := w.asked.Swap(false)
	w.first = *w.second.Load()
	c := make(chan struct{})
	w.second.Store(&c)
	if !asked && !w.had {
		w.rolls.Store(false)
		if !w.asked.Load() || !w.rolls.CompareAndSwap(false, true) {
			return
		}
	}
	w.had = asked
	w.timer.Reset(quietTime)
}
