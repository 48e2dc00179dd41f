package server

import (
	"container/list"
	"slices"
	"sync"

	"ephpm/eventstream"
)

const (
	// maxHistory is how many messages one channel can remember.
	maxHistory = 100
	// historyOverhead is about what a history or a message costs besides its bytes.
	historyOverhead = 200
)

// histories are what the channels of one site remember. The methods may be called
// from any goroutine.
type histories struct {
	most int64 // bytes of all

	mu    sync.Mutex // guards the following and all histories
	seq   uint64     // of the last message that was added; counted from 2
	way   []uint64   // sequence numbers of those under way, ascending
	bytes int64
	of    map[string]*history // those that remember or have users
	used  list.List           // of *history that remember, most recently used first
}

// A history is the end of what was broadcast to one channel. A channel that
// remembers nothing has one as long as it has users, so that all who are at it at
// the same time take turns.
type history struct {
	// line is held while a broadcast is queued for the members, and while a
	// newcomer joins and gets the past. Broadcasts of which nothing is remembered
	// share it.
	line sync.RWMutex

	// Guarded by histories.mu.
	from     uint64 // all messages after this sequence number are remembered
	channel  string
	users    int
	depth    int // so many messages are remembered; 0 until somebody asks
	messages []remembered
	bytes    int64
	place    *list.Element // nil when it remembers nothing, or was forgotten
}

type remembered struct {
	payload []byte // nobody changes it
	binary  bool
	seq     uint64 // among all of the site; set by add
}

func newHistories(most int64) *histories {
	return &histories{most: most, seq: 1, of: map[string]*history{}}
}

// A turn is at a channel, from joining or broadcasting to end.
type turn struct {
	*history
	all    *histories
	shared bool   // nothing is remembered, and others broadcast meanwhile
	seq    uint64 // of the message that was added; 0: none
}

// broadcasting begins a broadcast, which must not mix with others or with newcomers
// if the channel remembers it.
func (a *histories) broadcasting(channel string) turn {
	p, depth := a.use(channel, 0)
	if depth == 0 {
		p.line.RLock()
		if a.depth(p) == 0 {
			return turn{history: p, all: a, shared: true}
		}
		p.line.RUnlock() // somebody asked meanwhile
	}
	return a.alone(p)
}

// joining begins a subscription to a channel that remembers at least depth messages
// from now on.
func (a *histories) joining(channel string, depth int) turn {
	p, _ := a.use(channel, depth)
	return a.alone(p)
}

func (a *histories) alone(p *history) turn {
	p.line.Lock()
	return turn{history: p, all: a}
}

// end lets the next one have its turn. What was added was queued for all by now.
func (t *turn) end() {
	if t.shared {
		t.line.RUnlock()
	} else {
		t.line.Unlock()
	}
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	if i, found := slices.BinarySearch(t.all.way, t.seq); found {
		t.all.way = slices.Delete(t.all.way, i, i+1)
	}
	if t.users--; t.users == 0 && t.place == nil {
		delete(t.all.of, t.channel)
	}
}

// use returns the history of a channel and its depth, which is at least the given
// one from now on.
func (a *histories) use(channel string, depth int) (*history, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.of[channel]
	if p == nil {
		p = &history{channel: channel}
		a.of[channel] = p
	}
	p.users++
	p.depth = max(p.depth, depth)
	if p.place == nil && p.depth > 0 {
		a.placeLocked(p)
	}
	return p, p.depth
}

func (a *histories) depth(p *history) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return p.depth
}

// placeLocked counts a history among those that remember.
func (a *histories) placeLocked(p *history) {
	p.place, p.from = a.used.PushFront(p), a.seq
	a.growLocked(p, int64(len(p.channel)+historyOverhead))
}

// remembers reports whether a broadcast is to be added.
func (t *turn) remembers() bool { return !t.shared }

// add remembers a message, whose stamp it returns, once in a turn.
func (t *turn) add(m remembered) eventstream.Stamp {
	a, p := t.all, t.history
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.place == nil {
		a.placeLocked(p) // it was forgotten a moment ago; what comes now is not
	}
	a.seq++
	m.seq, t.seq = a.seq, a.seq
	a.way = append(a.way, m.seq)
	stamp := eventstream.Stamp{Seq: m.seq, Settled: m.seq}
	if a.way[0] != m.seq {
		stamp.Settled = a.way[0] - 1
	}
	size := int64(len(m.payload) + historyOverhead)
	if p.place == nil || size > a.most { // there is no memory for any, or for this
		p.from = m.seq
		return stamp
	}
	a.used.MoveToFront(p.place)
	if len(p.messages) == p.depth {
		a.dropLocked(p)
	}
	p.messages = append(p.messages, m)
	a.growLocked(p, size)
	return stamp
}

// dropLocked forgets the oldest message of a history.
func (a *histories) dropLocked(p *history) {
	size := int64(len(p.messages[0].payload) + historyOverhead)
	p.from = p.messages[0].seq
	p.messages[0] = remembered{}
	p.messages = p.messages[1:]
	p.bytes -= size
	a.bytes -= size
}

// growLocked counts what a history got. When it is too much in all, those used
// least recently are forgotten, and last the older messages of p itself.
func (a *histories) growLocked(p *history, size int64) {
	p.bytes += size
	a.bytes += size
	for a.bytes > a.most {
		last := a.used.Back().Value.(*history)
		if last == p && len(p.messages) > 1 {
			a.dropLocked(p)
			continue
		}
		a.bytes -= last.bytes
		a.used.Remove(last.place)
		last.place, last.messages, last.bytes = nil, nil, 0
		if last.users == 0 {
			delete(a.of, last.channel)
		}
		if last == p {
			return
		}
	}
}

// last returns the n newest messages, oldest first.
func (t *turn) last(n int) []remembered {
	a, p := t.all, t.history
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.place != nil {
		a.used.MoveToFront(p.place)
	}
	return append([]remembered(nil), p.messages[max(0, len(p.messages)-n):]...)
}
