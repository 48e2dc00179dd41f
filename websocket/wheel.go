package websocket

import (
	"sync"
	"time"
)

const (
	// wheelTick is the resolution of all times of connections; they are rounded
	// up to it.
	wheelTick = 10 * time.Millisecond
	// wheelSlots is how many ticks one turn of the wheel has: 41 seconds.
	wheelSlots = 1 << 12
)

// A wheel is the timer of all connections: hashed, so that an idle connection
// has two pointers instead of a timer (Varghese and Lauck, "Hashed and
// Hierarchical Timing Wheels", 1987). It sleeps until the next slot that is not
// empty.
type wheel struct {
	loop *Loop

	mu      sync.Mutex // guards the following; taken with Conn.mu held, not before it
	slots   []*Conn    // lists by Conn.timed; made by the first connection
	count   int        // in all slots
	done    int64      // all ticks up to this one were looked at
	timer   *time.Timer
	armed   int64 // the tick for which timer is set; 0 when it is not
	turning bool  // turn is at work and arms the timer itself
	closed  bool
	due     []*Conn // turn's
}

// timed is a Conn's place in the wheel, guarded by wheel.mu.
type timed struct {
	next, prev *Conn
	tick       int64 // 0: in no slot
}

// set has c.tick called at a time since the loop's start, or before: a call that
// comes too early finds nothing due and sets the next one.
func (w *wheel) set(c *Conn, at int64) {
	tick := max(1, (at+int64(wheelTick)-1)/int64(wheelTick))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || c.timed.tick != 0 && c.timed.tick <= tick {
		return
	}
	if w.slots == nil {
		w.slots = make([]*Conn, wheelSlots)
	}
	if w.count == 0 && !w.turning {
		w.done = w.loop.now()/int64(wheelTick) - 1
	}
	w.unlink(c)
	c.timed.tick = max(tick, w.done+1)
	slot := &w.slots[c.timed.tick%wheelSlots]
	c.timed.next, *slot = *slot, c
	if c.timed.next != nil {
		c.timed.next.timed.prev = c
	}
	w.count++
	if !w.turning && (w.armed == 0 || c.timed.tick < w.armed) {
		w.arm(c.timed.tick)
	}
}

// remove has tick not called any more, but for a call that is under way.
func (w *wheel) remove(c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unlink(c)
}

func (w *wheel) unlink(c *Conn) {
	t := &c.timed
	if t.tick == 0 {
		return
	}
	if t.prev != nil {
		t.prev.timed.next = t.next
	} else {
		w.slots[t.tick%wheelSlots] = t.next
	}
	if t.next != nil {
		t.next.timed.prev = t.prev
	}
	*t = timed{}
	w.count--
}

func (w *wheel) arm(tick int64) {
	w.armed = tick
	wait := time.Duration(tick*int64(wheelTick) - w.loop.now())
	if w.timer == nil {
		w.timer = time.AfterFunc(wait, w.turn)
		return
	}
	w.timer.Reset(wait)
}

// turn calls tick of all whose time has come. One runs at a time.
func (w *wheel) turn() {
	w.mu.Lock()
	if w.closed || w.turning {
		w.mu.Unlock()
		return
	}
	w.turning = true
	now := w.loop.now() / int64(wheelTick)
	for w.done = max(w.done, now-wheelSlots); w.done < now; w.done++ {
		for c := w.slots[(w.done+1)%wheelSlots]; c != nil; {
			next := c.timed.next
			if c.timed.tick <= now {
				w.unlink(c)
				w.due = append(w.due, c)
			}
			c = next
		}
	}
	due := w.due
	w.mu.Unlock()

	for _, c := range due {
		c.tick()
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	clear(due) // keep no connection alive
	w.due = due[:0]
	w.turning, w.armed = false, 0
	if w.closed || w.count == 0 {
		return
	}
	tick := w.done + 1
	for w.slots[tick%wheelSlots] == nil {
		tick++
	}
	w.arm(tick)
}

func (w *wheel) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
}
