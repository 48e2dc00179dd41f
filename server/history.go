package server

import (
	"container/list"
	"encoding/json"
	"fmt"
	"sync"

	"ephpm/phpbridge"
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
	bytes int64
	of    map[string]*history
	used  list.List // of *history, most recently used first
}

// A history is the end of what was broadcast to one channel. A nil *history
// remembers nothing.
type history struct {
	// turn is held while a broadcast is queued for the members, and while a
	// newcomer joins and gets the past.
	turn sync.Mutex

	// Guarded by histories.mu.
	channel  string
	depth    int // so many messages are remembered
	messages []remembered
	bytes    int64
	place    *list.Element // nil when it was forgotten
}

type remembered struct {
	payload []byte // nobody changes it
	binary  bool
}

func newHistories(most int64) *histories {
	return &histories{most: most, of: map[string]*history{}}
}

// begin and end enclose what must not mix with another broadcast.
func (p *history) begin() {
	if p != nil {
		p.turn.Lock()
	}
}

func (p *history) end() {
	if p != nil {
		p.turn.Unlock()
	}
}

// find returns the history of a channel, or nil.
func (a *histories) find(channel string) *history {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[channel]
}

// open returns the history of a channel, which remembers at least depth messages
// from now on.
func (a *histories) open(channel string, depth int) *history {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.of[channel]
	if p == nil {
		p = &history{channel: channel}
		p.place = a.used.PushFront(p)
		a.of[channel] = p
		a.growLocked(p, int64(len(channel)+historyOverhead))
	}
	p.depth = max(p.depth, depth)
	return p
}

// add remembers a message.
func (a *histories) add(p *history, m remembered) {
	a.mu.Lock()
	defer a.mu.Unlock()
	size := int64(len(m.payload) + historyOverhead)
	if p.place == nil || size > a.most {
		return
	}
	a.used.MoveToFront(p.place)
	if len(p.messages) == p.depth {
		a.dropLocked(p)
	}
	p.messages = append(p.messages, m)
	a.growLocked(p, size)
}

// dropLocked forgets the oldest message of a history.
func (a *histories) dropLocked(p *history) {
	size := int64(len(p.messages[0].payload) + historyOverhead)
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
		delete(a.of, last.channel)
		if last == p {
			return
		}
	}
}

// last returns the n newest messages, oldest first.
func (a *histories) last(p *history, n int) []remembered {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.place != nil {
		a.used.MoveToFront(p.place)
	}
	return append([]remembered(nil), p.messages[max(0, len(p.messages)-n):]...)
}

// A subscription is what a script asks for besides the channel.
type subscription struct {
	history int // so many messages of the past
}

// parseSubscription reads names and JSON values in turn.
func parseSubscription(options [][]byte) (o subscription, err error) {
	refuse := func(format string, args ...any) (subscription, error) {
		return o, &misuse{phpbridge.ThrowValueError, 1, "options", fmt.Sprintf(format, args...)}
	}
	if len(options)%2 != 0 {
		return refuse("must have a value for each name")
	}
	for i := 0; i < len(options); i += 2 {
		switch name, value := string(options[i]), options[i+1]; name {
		case "history":
			if err := json.Unmarshal(value, &o.history); err != nil || string(value) == "null" || o.history < 0 || o.history > maxHistory {
				return refuse(`must have 0 to %d as "history", %.40s given`, maxHistory, value)
			}
		default:
			return refuse("must not have %.40q; there is only \"history\"", name)
		}
	}
	return o, nil
}
