package eventstream

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"ephpm/wheel"
)

// A Loop keeps the time of connections and serves those that are parked. One is
// enough for a whole server. Its methods may be called from any goroutine; Close
// once.
type Loop struct {
	start time.Time
	wheel *wheel.Wheel[*Conn]
	next  atomic.Uint32 // whose poller the next connection gets

	mu      sync.Mutex // guards the following
	pollers []*poller  // started by the first connection that is parked
	parked  int        // connections
	empty   *sync.Cond // parked became 0
}

// NewLoop returns a Loop, for which nothing runs before the first connection.
func NewLoop() *Loop {
	l := &Loop{start: time.Now()}
	l.empty = sync.NewCond(&l.mu)
	l.wheel = wheel.New(l.now, func(c *Conn) *wheel.Place[*Conn] { return &c.timed }, (*Conn).tick)
	return l
}

// Close waits until the last parked connection has ended and stops what runs. Close
// or Cut the connections before, and open none after.
func (l *Loop) Close() {
	l.mu.Lock()
	for l.parked > 0 {
		l.empty.Wait()
	}
	pollers := l.pollers
	l.mu.Unlock()
	for _, p := range pollers {
		p.turns.Close()
	}
	l.wheel.Close()
}

// now is the time since the Loop began, in nanoseconds.
func (l *Loop) now() int64 { return int64(time.Since(l.start)) }

// maxPollers is where more would only wait for one another.
const maxPollers = 8

var errNoPoller = errors.New("eventstream: no epoll set")

// poller returns the poller for one more connection, which is counted.
func (l *Loop) poller() (*poller, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pollers == nil {
		for range min(runtime.GOMAXPROCS(0), maxPollers) {
			p, err := newPoller(l)
			if err != nil {
				break
			}
			l.pollers = append(l.pollers, p)
		}
	}
	if len(l.pollers) == 0 {
		return nil, errNoPoller
	}
	l.parked++
	return l.pollers[int(l.next.Add(1))%len(l.pollers)], nil
}

// left is called when a parked connection has ended.
func (l *Loop) left() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.parked--; l.parked == 0 {
		l.empty.Broadcast()
	}
}

// tick is called by the wheel: it ends a connection whose client has taken nothing or
// not polled for too long, has a comment sent, and asks for the next call.
func (c *Conn) tick() {
	c.mu.Lock()
	now := c.loop.now()
	switch {
	case c.gone:
	case c.expiry != 0 && now >= c.expiry:
		c.expireLocked()
	case c.nextPing != 0 && now >= c.nextPing:
		c.nextPing = now + int64(c.o.PingInterval)
		c.pingDue = true
		c.signalLocked()
	}
	c.watchLocked()
	c.mu.Unlock()
	c.report()
}

// expireLocked ends a connection that is over its time. report follows.
func (c *Conn) expireLocked() {
	if c.polls != nil {
		c.lostLocked(CauseGone)
		return
	}
	c.expiry = 0
	c.endLocked(&ending{Ending: Ending{codeAbnormal, "", CauseSlow}})
	c.end.silent = true
	c.signalLocked()
}

// watchLocked has tick called when something is due next.
func (c *Conn) watchLocked() {
	due := c.nextPing
	if c.expiry != 0 && (due == 0 || c.expiry < due) {
		due = c.expiry
	}
	if due != 0 && !c.gone {
		c.loop.wheel.Set(c, due)
	}
}
