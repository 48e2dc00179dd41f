package kv

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// A subscriber is the part of a client that gets messages. From its first
// subscription on, a goroutine of its own writes to the socket, so that nobody
// who publishes waits for it.
type subscriber struct {
	resp atomic.Int32 // 2 or 3

	// Owned by the client's goroutine.
	runs     bool // the writer does
	channels map[string]bool
	patterns map[string]bool
	named    int // bytes of their names
	writer   sync.WaitGroup

	mu    sync.Mutex // guards the following
	bytes []byte     // to be written
	ended bool
	wake  *sync.Cond // of mu; there is something to do
}

// startWriter starts the goroutine that writes.
func (c *client) startWriter() {
	s := &c.subscriber
	if s.runs {
		return
	}
	s.runs = true
	s.channels, s.patterns = make(map[string]bool), make(map[string]bool)
	s.wake = sync.NewCond(&s.mu)
	s.writer.Go(c.writeQueue)
}

// stopWriter ends it. What is queued is written, if the socket still takes it.
func (c *client) stopWriter() {
	s := &c.subscriber
	if !s.runs {
		return
	}
	s.mu.Lock()
	s.ended = true
	s.wake.Signal()
	s.mu.Unlock()
	s.writer.Wait()
}

// queue hands bytes to the writer and reports whether it takes them. When
// ServerOptions.MaxOutput wait already, the connection is cut. Any goroutine may
// call it once the writer runs.
func (c *client) queue(b []byte) bool {
	if !c.enqueue(b) {
		return false
	}
	c.charge(int64(len(b)))
	return true
}

func (c *client) enqueue(b []byte) bool {
	s := &c.subscriber
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	if len(s.bytes) > 0 && len(s.bytes)+len(b) > c.server.opts.MaxOutput {
		c.server.opts.Log.Debug("Redis client cut", "address", c.address, "reason", "too many messages wait for it")
		s.ended, s.bytes = true, nil
		s.wake.Signal()
		c.cut()
		return false
	}
	s.bytes = append(s.bytes, b...)
	s.wake.Signal()
	return true
}

func (c *client) writeQueue() {
	s := &c.subscriber
	var spare []byte
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.bytes) == 0 {
			if s.ended {
				return
			}
			s.wake.Wait()
		}
		full := s.bytes
		s.bytes = spare[:0]
		s.mu.Unlock()
		ok := c.write(full)
		c.charge(-int64(len(full)))
		if spare = full; cap(spare) > 2*flushAfter {
			spare = nil
		}
		s.mu.Lock()
		if !ok {
			s.ended, s.bytes = true, nil
			c.cut()
		}
	}
}

// subscribed is how many channels and patterns there are.
func (c *client) subscribed() int {
	return len(c.subscriber.channels) + len(c.subscriber.patterns)
}

// hears reports whether the client gets what it does not ask for.
func (c *client) hears() bool { return c.subscribed() > 0 || c.unmonitor != nil }

// endMonitor ends what MONITOR began, if it did.
func (c *client) endMonitor() {
	if c.unmonitor != nil {
		c.unmonitor()
		c.unmonitor = nil
		c.listens.Store(c.hears())
	}
}

func (c *client) names(pattern bool) map[string]bool {
	if pattern {
		return c.subscriber.patterns
	}
	return c.subscriber.channels
}

// subscribe answers SUBSCRIBE and PSUBSCRIBE.
func (c *client) subscribe(names [][]byte, pattern bool, verb string) {
	if !c.subscriber.runs && !c.flush() {
		c.closing = true
		return
	}
	c.subscriber.resp.Store(int32(c.reply.resp))
	c.startWriter()
	for _, name := range names {
		if have := c.names(pattern); !have[string(name)] {
			if c.subscribed() >= maxSubscriptions || c.subscriber.named+len(name) > maxSubscriptionNames {
				c.reply.error("ERR too many subscriptions")
				return
			}
			have[string(name)] = true
			c.subscriber.named += len(name)
		}
		c.listens.Store(true)
		c.confirm(verb, name)
		// Behind the confirmation, so that no message comes before it.
		if !c.flush() {
			c.closing = true
			return
		}
		c.store.hub.add(string(name), pattern, c)
	}
}

// unsubscribe answers UNSUBSCRIBE and PUNSUBSCRIBE; no names are all.
func (c *client) unsubscribe(names [][]byte, pattern bool, verb string) {
	if len(names) == 0 {
		for _, name := range slices.Sorted(maps.Keys(c.names(pattern))) {
			names = append(names, []byte(name))
		}
		if len(names) == 0 {
			c.confirm(verb, nil)
			return
		}
	}
	for _, name := range names {
		if have := c.names(pattern); have[string(name)] {
			delete(have, string(name))
			c.subscriber.named -= len(name)
			c.store.hub.remove(string(name), pattern, c)
		}
		c.listens.Store(c.hears())
		c.confirm(verb, name)
	}
}

// confirm tells of a change; name may be nil.
func (c *client) confirm(verb string, name []byte) {
	c.reply.push(3)
	c.reply.text(verb)
	c.reply.value(name)
	c.reply.integer(int64(c.subscribed()))
}

// unsubscribeAll leaves the hub without a word.
func (c *client) unsubscribeAll() {
	for _, pattern := range []bool{false, true} {
		for name := range c.names(pattern) {
			delete(c.names(pattern), name)
			c.subscriber.named -= len(name)
			c.store.hub.remove(name, pattern, c)
		}
	}
	c.listens.Store(c.hears())
}
