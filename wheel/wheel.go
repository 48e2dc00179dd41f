// Package wheel is the timer of many things that are rarely due: one timer of Go's for
// all, and two pointers and a number for each (Varghese and Lauck, "Hashed and
// Hierarchical Timing Wheels", 1987). It sleeps until the next slot that is not empty.
package wheel

import (
	"sync"
	"time"
)

const (
	// Tick is the resolution of all times; they are rounded up to it.
	Tick = 10 * time.Millisecond
	// Slots is how many ticks one turn of the wheel has: 41 seconds.
	Slots = 1 << 12
)

// A Wheel calls things of type T, a pointer, at their times. Its methods may be
// called from any goroutine; whoever is called may call them, too.
type Wheel[T comparable] struct {
	now   func() int64
	place func(T) *Place[T]
	due   func(T)

	mu      sync.Mutex // guards the following
	slots   []T        // lists by Place; made by the first Set
	count   int        // in all slots
	done    int64      // all ticks up to this one were looked at
	timer   *time.Timer
	armed   int64 // the tick for which timer is set; 0 when it is not
	turning bool  // turn is at work and arms the timer itself
	closed  bool
	batch   []T // turn's
}

// A Place is that of one thing in its Wheel, which alone uses it. It is a part of the
// thing; the zero value is ready.
type Place[T comparable] struct {
	next, prev T
	tick       int64 // 0: in no slot
}

// New returns a Wheel whose times are those of now: nanoseconds since any moment
// before. place returns that of a thing; due is called when its time has come, on one
// goroutine for all.
func New[T comparable](now func() int64, place func(T) *Place[T], due func(T)) *Wheel[T] {
	return &Wheel[T]{now: now, place: place, due: due}
}

// Set has t called at a time, or before: what is called too early finds nothing due
// and sets its time again.
func (w *Wheel[T]) Set(t T, at int64) {
	tick := max(1, (at+int64(Tick)-1)/int64(Tick))
	p := w.place(t)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || p.tick != 0 && p.tick <= tick {
		return
	}
	if w.slots == nil {
		w.slots = make([]T, Slots)
	}
	if w.count == 0 && !w.turning {
		w.done = w.now()/int64(Tick) - 1
	}
	w.unlinkLocked(p)
	p.tick = max(tick, w.done+1)
	slot := &w.slots[p.tick%Slots]
	var none T
	p.next, *slot = *slot, t
	if p.next != none {
		w.place(p.next).prev = t
	}
	w.count++
	if !w.turning && (w.armed == 0 || p.tick < w.armed) {
		w.armLocked(p.tick)
	}
}

// Remove has t not called any more, but for a call that is under way.
func (w *Wheel[T]) Remove(t T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unlinkLocked(w.place(t))
}

func (w *Wheel[T]) unlinkLocked(p *Place[T]) {
	if p.tick == 0 {
		return
	}
	var none T
	if p.prev != none {
		w.place(p.prev).next = p.next
	} else {
		w.slots[p.tick%Slots] = p.next
	}
	if p.next != none {
		w.place(p.next).prev = p.prev
	}
	*p = Place[T]{}
	w.count--
}

func (w *Wheel[T]) armLocked(tick int64) {
	w.armed = tick
	wait := time.Duration(tick*int64(Tick) - w.now())
	if w.timer == nil {
		w.timer = time.AfterFunc(wait, w.turn)
		return
	}
	w.timer.Reset(wait)
}

// turn calls all whose time has come. One runs at a time.
func (w *Wheel[T]) turn() {
	w.mu.Lock()
	if w.closed || w.turning {
		w.mu.Unlock()
		return
	}
	w.turning = true
	batch := w.takeLocked(w.now() / int64(Tick))
	w.mu.Unlock()

	for _, t := range batch {
		w.due(t)
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	clear(batch) // keep nothing alive
	w.batch = batch[:0]
	w.turning, w.armed = false, 0
	if w.closed || w.count == 0 {
		return
	}
	var none T
	tick := w.done + 1
	for w.slots[tick%Slots] == none {
		tick++
	}
	w.armLocked(tick)
}

// takeLocked takes out those whose time has come at a tick.
func (w *Wheel[T]) takeLocked(now int64) []T {
	var none T
	for w.done = max(w.done, now-Slots); w.done < now; w.done++ {
		for t := w.slots[(w.done+1)%Slots]; t != none; {
			p := w.place(t)
			next := p.next
			if p.tick <= now {
				w.unlinkLocked(p)
				w.batch = append(w.batch, t)
			}
			t = next
		}
	}
	return w.batch
}

// Close has nothing called any more, but for a call that is under way.
func (w *Wheel[T]) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
}
