package websocket

import (
	"sync"
	"time"
)

// crewSweep is how often goroutines that had nothing to do are let go.
const crewSweep = time.Second

// A crew runs what may wait: the handlers of messages, and connections over
// streams. Every task begins at once. A goroutine that is done stays for the next
// task for up to two sweeps: its stack has grown to what a handler needs, and to
// grow a new one costs as much as reading and answering a small message. The
// methods may be called from any goroutine; close once, and nothing after.
type crew struct {
	tasks sync.WaitGroup // that have not ended
	hands sync.WaitGroup // goroutines

	mu     sync.Mutex // guards the following
	idle   []hand     // the last one is the next to work
	spare  int        // the fewest that were idle since the last sweep
	timer  *time.Timer
	swept  bool // timer is set
	closed bool
}

// A hand is how a goroutine that waits gets its next task; closed, it ends.
type hand chan func()

// run has task run by a goroutine of its own.
func (w *crew) run(task func()) {
	w.tasks.Add(1)
	w.mu.Lock()
	last := len(w.idle) - 1
	if last < 0 {
		w.mu.Unlock()
		w.hands.Go(func() { w.serve(task) })
		return
	}
	h := w.idle[last]
	w.idle = w.idle[:last]
	w.spare = min(w.spare, last)
	w.mu.Unlock()
	h <- task
}

// wait waits until no task is left.
func (w *crew) wait() { w.tasks.Wait() }

// serve is the life of a goroutine.
func (w *crew) serve(task func()) {
	h := make(hand, 1)
	for task != nil {
		task()
		w.tasks.Done()
		if !w.rest(h) {
			return
		}
		task = <-h
	}
}

// rest puts h among the idle, unless the crew is closed.
func (w *crew) rest(h hand) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.idle = append(w.idle, h)
	if !w.swept {
		w.spare = 0
		w.sweepLaterLocked()
	}
	return true
}

func (w *crew) sweepLaterLocked() {
	w.swept = true
	if w.timer == nil {
		w.timer = time.AfterFunc(crewSweep, w.sweep)
		return
	}
	w.timer.Reset(crewSweep)
}

// sweep lets those go whom nobody needed since the last one.
func (w *crew) sweep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.swept = false
	if w.closed {
		return
	}
	w.dismissLocked(w.spare)
	w.spare = len(w.idle)
	if w.spare > 0 {
		w.sweepLaterLocked()
	}
}

// dismissLocked ends the n that have been idle for longest.
func (w *crew) dismissLocked(n int) {
	for _, h := range w.idle[:n] {
		close(h)
	}
	left := copy(w.idle, w.idle[n:])
	clear(w.idle[left:])
	w.idle = w.idle[:left]
}

// close waits for the tasks and ends the goroutines.
func (w *crew) close() {
	w.wait()
	w.mu.Lock()
	w.closed = true
	w.dismissLocked(len(w.idle))
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	w.hands.Wait()
}
