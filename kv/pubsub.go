package kv

import (
	"maps"
	"slices"
	"sync"
)

// What one client may subscribe to: so many channels and patterns, and so many bytes
// of their names.
const (
	maxSubscriptions     = 10_000
	maxSubscriptionNames = 1 << 20
)

// A hub knows who subscribed to what. Its methods may be called from any
// goroutine.
type hub struct {
	mu       sync.RWMutex // guards the following
	channels map[string]map[*client]struct{}
	patterns map[string]map[*client]struct{}
}

func newHub() hub {
	return hub{
		channels: make(map[string]map[*client]struct{}),
		patterns: make(map[string]map[*client]struct{}),
	}
}

// of returns the patterns or the channels.
func (h *hub) of(pattern bool) map[string]map[*client]struct{} {
	if pattern {
		return h.patterns
	}
	return h.channels
}

func (h *hub) add(name string, pattern bool, c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.of(pattern)
	if all[name] == nil {
		all[name] = make(map[*client]struct{})
	}
	all[name][c] = struct{}{}
}

func (h *hub) remove(name string, pattern bool, c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.of(pattern)
	if delete(all[name], c); len(all[name]) == 0 {
		delete(all, name)
	}
}

// publish sends a message to all subscribers and returns how many there are.
func (h *hub) publish(channel, payload []byte) int {
	type hit struct {
		c       *client
		pattern string
	}
	var hits []hit
	h.mu.RLock()
	for c := range h.channels[string(channel)] {
		hits = append(hits, hit{c: c})
	}
	direct := len(hits)
	for pattern, clients := range h.patterns {
		if globMatch([]byte(pattern), channel) {
			for c := range clients {
				hits = append(hits, hit{c, pattern})
			}
		}
	}
	h.mu.RUnlock()
	for i, to := range hits {
		r := reply{resp: int(to.c.subscriber.resp.Load())}
		if i < direct {
			r.push(3)
			r.text("message")
		} else {
			r.push(4)
			r.text("pmessage")
			r.text(to.pattern)
		}
		r.bulk(channel)
		r.bulk(payload)
		to.c.queue(r.b)
	}
	return len(hits)
}

// count returns how many clients subscribed to a channel.
func (h *hub) count(channel string) int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.channels[channel])
}

// names returns the channels that match a pattern; an empty one is every channel.
func (h *hub) names(pattern []byte) []string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	names := slices.Sorted(maps.Keys(h.channels))
	return slices.DeleteFunc(names, func(name string) bool {
		return len(pattern) > 0 && !globMatch(pattern, []byte(name))
	})
}

// patternCount returns how many patterns there are.
func (h *hub) patternCount() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.patterns)
}
