package descriptor

import "sync"

// turnEvents is how many connections have their turn between two looks for more.
const turnEvents = 256

// A Ticket is what a connection has for the Turns that serve it. The zero value is that
// of none.
type Ticket struct {
	slot    int32 // in Turns.conns, noSlot for none
	claimed bool  // waits for a turn; guarded by Turns.mu
}

// noSlot is that of a connection which has not been added.
const noSlot = 0

// Turns give connections a turn each, on one goroutine: when something happened to the
// descriptor, and when somebody claimed it. So a descriptor that only turns close is
// never closed while another uses it. The methods may be called from any goroutine,
// those of a connection from Add to Leave; Close once, when all have left.
type Turns[C comparable] struct {
	set    *Set // by slot
	ticket func(C) *Ticket
	turn   func(c C, events uint32, claimed bool)
	more   func() bool
	done   chan struct{}

	mu     sync.Mutex // guards the following
	claims []C
	conns  []C     // by slot; noSlot's is none
	free   []int32 // slots
	rung   bool
	closed bool

	served []C // what claims was; owned by run
}

// NewTurns begins to give turns. ticket returns that of a connection. turn is called with
// the events since the last turn, or with none for a claim. more, if there is one, is
// called when nothing is left to do, and returns whether it did something.
func NewTurns[C comparable](ticket func(C) *Ticket, turn func(c C, events uint32, claimed bool), more func() bool) (*Turns[C], error) {
	set, err := NewSet()
	if err != nil {
		return nil, err
	}
	t := &Turns[C]{set: set, ticket: ticket, turn: turn, more: more, done: make(chan struct{}), conns: make([]C, noSlot+1)}
	go t.run() // Close waits for it
	return t, nil
}

// Close ends the turns and frees the set.
func (t *Turns[C]) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.set.Ring()
	<-t.done
	t.set.Close()
}

// Add has events of a descriptor give c its turns. It fails when there is no memory; then
// c has those that are claimed, all the same.
func (t *Turns[C]) Add(c C, fd int, events uint32) error {
	t.mu.Lock()
	slot := int32(len(t.conns))
	if n := len(t.free); n > 0 {
		slot, t.free = t.free[n-1], t.free[:n-1]
	} else {
		var none C
		t.conns = append(t.conns, none)
	}
	t.conns[slot], t.ticket(c).slot = c, slot
	t.mu.Unlock()
	return t.set.Add(fd, events, slot)
}

// Leave is called within the turn in which the descriptor of c was closed.
func (t *Turns[C]) Leave(c C) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slot := t.ticket(c).slot; slot != noSlot {
		var none C
		t.conns[slot] = none
		t.free = append(t.free, slot)
	}
}

// Len returns how many connections have been added and have not left.
func (t *Turns[C]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.conns) - (noSlot + 1) - len(t.free)
}

// Claim gives c a turn.
func (t *Turns[C]) Claim(c C) {
	t.mu.Lock()
	k := t.ticket(c)
	if k.claimed {
		t.mu.Unlock()
		return
	}
	k.claimed = true
	t.claims = append(t.claims, c)
	ring := !t.rung
	t.rung = true
	t.mu.Unlock()
	if ring {
		t.set.Ring()
	}
}

// run gives turns until Close.
func (t *Turns[C]) run() {
	defer close(t.done)
	var none C
	events, conns := make([]Event, turnEvents), make([]C, turnEvents)
	t.set.Serve(func() bool {
		for {
			claimed, closed := t.serveClaims()
			if closed {
				return true
			}
			n := t.set.Take(events)
			t.find(events[:n], conns)
			for i, c := range conns[:n] {
				if c != none {
					t.turn(c, events[i].Events, false)
				}
			}
			clear(conns[:n]) // keep no connection alive
			if n == 0 && !claimed && (t.more == nil || !t.more()) {
				return false // Go's poller wakes us
			}
		}
	})
}

// find sets the connections of events. What leaves meanwhile stays known as gone, whoever
// gets its slot.
func (t *Turns[C]) find(events []Event, conns []C) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, e := range events {
		if e.Fd != Bell {
			conns[i] = t.conns[e.Fd]
		}
	}
}

func (t *Turns[C]) serveClaims() (some, closed bool) {
	t.mu.Lock()
	t.served, t.claims = t.claims, t.served[:0]
	t.rung = false
	for _, c := range t.served {
		t.ticket(c).claimed = false
	}
	closed = t.closed
	t.mu.Unlock()
	for _, c := range t.served {
		t.turn(c, 0, true)
	}
	some = len(t.served) > 0
	clear(t.served) // keep no connection alive
	if cap(t.served) > turnEvents {
		t.served = nil
	}
	return some, closed
}
