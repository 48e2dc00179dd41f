package server

import (
	"net/netip"
	"sync"
	"time"
)

// clients counts the sockets of each address, on all sites or on one. Its size is
// bounded by the sockets there are. A nil *clients has no limit. The methods may be called
// from any goroutine.
type clients struct {
	most int

	mu      sync.Mutex // guards the following
	sockets map[netip.Addr]int
}

// newClients returns nil when most is 0.
func newClients(most int) *clients {
	if most == 0 {
		return nil
	}
	return &clients{most: most, sockets: map[netip.Addr]int{}}
}

// enter counts one more socket of p, unless there are too many. leave takes back
// what it returns, which is not valid for one that is not counted: a trusted proxy
// that does not say who is behind it.
func (c *clients) enter(p *peer) (client netip.Addr, ok bool) {
	if c == nil || p.proxy || !p.ip.IsValid() {
		return netip.Addr{}, true
	}
	client = limitKey(p.ip)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sockets[client] >= c.most {
		return netip.Addr{}, false
	}
	c.sockets[client]++
	return client, true
}

func (c *clients) leave(client netip.Addr) {
	if c == nil || !client.IsValid() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sockets[client]--; c.sockets[client] == 0 {
		delete(c.sockets, client)
	}
}

// clientCounts are those that every socket of a site is counted in.
type clientCounts []*clients

// enter is clients.enter for all of them, or none.
func (a clientCounts) enter(p *peer) (client netip.Addr, ok bool) {
	for i, c := range a {
		one, ok := c.enter(p)
		if !ok {
			a[:i].leave(client)
			return netip.Addr{}, false
		}
		if one.IsValid() {
			client = one
		}
	}
	return client, true
}

func (a clientCounts) leave(client netip.Addr) {
	for _, c := range a {
		c.leave(client)
	}
}

// handledAtOnce is how soon the next message begins that had waited for the one
// before it, with room for a scheduler that is busy.
const handledAtOnce = 5 * time.Millisecond

// A messagePace is how fast any one socket may send messages. A nil *messagePace
// has no limit. It never changes.
type messagePace struct {
	pace  pace
	start time.Time
}

// newMessagePace returns nil when rate is 0.
func newMessagePace(rate Rate, burst int) *messagePace {
	if rate == 0 {
		return nil
	}
	return &messagePace{pace: newPace(rate, burst), start: time.Now()}
}

// traffic is what a messagePace remembers of a socket. Times are since its start.
type traffic struct {
	full  time.Duration // of pace
	since time.Duration // when the messages began that are handled without a pause
	ended time.Duration // when the last one was handled
}

// admits reports whether a message that is to be handled now keeps the pace. When
// it came is not known: those that wait behind a slow one, here or in the kernel,
// may have come at any time since the handler had a pause, and are not counted as
// if they had come together.
func (m *messagePace) admits(t *traffic) bool {
	if m == nil {
		return true
	}
	now := time.Since(m.start)
	if now-t.ended > handledAtOnce {
		t.since = now
	}
	full := max(t.full, t.since) // not now, as pace.take has it
	if full-now > m.pace.slack {
		return false
	}
	t.full = full + m.pace.every
	return true
}

// take admits a message that came just now, or says how long to wait. full is what it
// remembers of the sender.
func (m *messagePace) take(full *time.Duration) (wait time.Duration) {
	if m == nil {
		return 0
	}
	*full, wait = m.pace.take(*full, time.Since(m.start))
	return wait
}

// handled is called when a message that was admitted has been handled.
func (m *messagePace) handled(t *traffic) {
	if m != nil {
		t.ended = time.Since(m.start)
	}
}
