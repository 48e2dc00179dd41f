package server

import "sync"

// errands runs functions in the order in which they came, a bounded number at a
// time, on goroutines that live as long as there is something to run. Thousands
// that wait cost a pointer each. Whoever calls do waits for what it started.
type errands struct {
	most int // at a time, at least 1

	mu      sync.Mutex // guards the following
	waiting []func()
	running int
}

// do has f run. It does not wait.
func (e *errands) do(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = append(e.waiting, f)
	if e.running < e.most {
		e.running++
		go e.run() // ends when nothing waits
	}
}

func (e *errands) run() {
	for {
		e.mu.Lock()
		if len(e.waiting) == 0 {
			e.waiting = nil // keep no memory of a crowd
			e.running--
			e.mu.Unlock()
			return
		}
		f := e.waiting[0]
		e.waiting[0] = nil
		e.waiting = e.waiting[1:]
		e.mu.Unlock()
		f()
	}
}
