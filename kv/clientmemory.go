package kv

import (
	"sync"
	"time"
	"unsafe"
)

// What a client holds – a command that has not ended, a transaction, replies that it
// does not read, its subscriptions – is bounded for each and, by
// ServerOptions.ClientsMemory, for all together: over that the client that holds
// most is cut, as maxmemory-clients of Redis does. Who holds more tells with charge.

// freeMemory is what a client may hold, in bytes, before it counts: its buffers as
// long as it says nothing long.
const freeMemory = 2 * inputSize

// The price of what has no bytes of its own to count.
const (
	bytesOfSubscription = 256 // in two maps
	bytesOfSpan         = int64(unsafe.Sizeof(span{}))
	bytesOfArgument     = int64(unsafe.Sizeof([]byte(nil)))
)

const textClientsMemory = "ERR clients together hold more memory than clients_memory_limit; this one held most"

// An account is how much a client holds. Its methods may be called from any
// goroutine.
type account struct {
	mu     sync.Mutex // guards the following
	bytes  int64
	closed bool // nothing counts any more
}

// add adds to what the client holds, and returns by how much that changed.
func (a *account) add(delta int64) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return 0
	}
	a.bytes += delta
	return delta
}

// close returns what the client held, and lets nothing count any more.
func (a *account) close() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	held := a.bytes
	a.bytes, a.closed = 0, true
	return held
}

func (a *account) held() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes
}

// charge notes that the client holds so many bytes more, or less. Any goroutine may
// call it, but not one that holds Server.mu.
func (c *client) charge(delta int64) {
	if delta = c.account.add(delta); delta == 0 {
		return
	}
	s := c.server
	if s.clientsMemory.Add(delta) > s.opts.ClientsMemory && delta > 0 {
		s.relieve()
	}
}

// recount charges what the goroutine that serves the client sees of it.
func (c *client) recount() {
	n := int64(cap(c.in)+cap(c.reply.b)+c.tx.bytes+c.subscriber.named) +
		int64(cap(c.parser.spans))*bytesOfSpan + int64(cap(c.parser.args))*bytesOfArgument +
		int64(c.subscribed())*bytesOfSubscription - freeMemory
	if n = max(n, 0); n != c.counted {
		delta := n - c.counted
		c.counted = n
		c.charge(delta)
	}
}

// relieve cuts those that hold most until the others hold no more than they may.
func (s *Server) relieve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.clientsMemory.Load() > s.opts.ClientsMemory {
		var worst *client
		most := int64(0)
		for _, c := range s.clients {
			if n := c.account.held(); n > most {
				worst, most = c, n
			}
		}
		if worst == nil {
			return
		}
		s.clientsMemory.Add(-worst.account.close())
		s.stats.evicted.Add(1)
		s.opts.Log.Info("Redis client cut", "address", worst.address, "reason", "clients_memory_limit", "bytes", most)
		worst.evict()
	}
}

// evict ends the client, with an error if that can be written. Any goroutine may
// call it.
func (c *client) evict() {
	c.evicted.Store(true)
	if c.listens.Load() || c.writingAt.Load() > 0 {
		c.cut() // it gets or is about to get something else
		return
	}
	s := &c.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.conn != nil:
		_ = s.conn.SetReadDeadline(time.Unix(1, 0)) // ends what reads; or it is closed
	case s.fd >= 0:
		c.loop.dismiss(c)
	}
}

// farewell writes what is left of the replies or, to a client that was evicted, why
// it is cut.
func (c *client) farewell() {
	if c.evicted.Load() {
		c.in, c.tx = nil, transaction{}
		if c.torn {
			return
		}
		c.reply.b = nil
		c.reply.error(textClientsMemory)
	}
	c.send()
}
