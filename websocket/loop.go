package websocket

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"ephpm/wheel"
)

// A Loop serves connections: it reads what clients send, wakes who waits for
// room, and keeps time. One is enough for a whole server. Its methods may be
// called from any goroutine; Close once.
type Loop struct {
	start time.Time
	wheel *wheel.Wheel[*Conn]
	fan   fan
	crew  crew
	next  atomic.Uint32 // whose poller the next connection gets

	mu      sync.Mutex // guards the following
	pollers []*poller  // started by the first connection that can be parked
	conns   int        // started and not reported as closed
	empty   *sync.Cond // conns became 0
}

// NewLoop returns a Loop, for which nothing runs before the first connection.
func NewLoop() *Loop {
	l := &Loop{start: time.Now()}
	l.empty = sync.NewCond(&l.mu)
	l.wheel = wheel.New(l.now, func(c *Conn) *wheel.Place[*Conn] { return &c.timed }, (*Conn).tick)
	return l
}

// New returns a Conn whose client has not been answered yet. Frames may be
// queued, and Close or Kill takes effect behind the 101. o may be shared by
// many and does not change.
func (l *Loop) New(o *Options) *Conn {
	return &Conn{loop: l, o: o, fd: -1}
}

// Close waits until the last connection has ended and stops what runs. Close or
// Cut the connections before, and start none after.
func (l *Loop) Close() {
	l.mu.Lock()
	for l.conns > 0 {
		l.empty.Wait()
	}
	pollers := l.pollers
	l.mu.Unlock()
	l.crew.close()
	l.fan.close()
	for _, p := range pollers {
		p.turns.Close()
	}
	l.wheel.Close()
}

// ProbeRings finds out whether batches can be sent by io_uring, and returns nil or
// why they are sent one by one. Without it they are until somebody asks.
func (l *Loop) ProbeRings() error { return l.fan.probe() }

// now is the time since the Loop began, in nanoseconds: a connection keeps many
// times, and this is a third of a time.Time.
func (l *Loop) now() int64 { return int64(time.Since(l.start)) }

func (l *Loop) began() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns++
}

func (l *Loop) ended() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns--; l.conns == 0 {
		l.empty.Broadcast()
	}
}

var errNoPoller = errors.New("no epoll set")

// poller returns the poller for one more connection.
func (l *Loop) poller() (*poller, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pollers == nil {
		for range max(1, min(runtime.GOMAXPROCS(0), 8)) {
			p, err := newPoller()
			if err != nil {
				break
			}
			l.pollers = append(l.pollers, p)
		}
	}
	if len(l.pollers) == 0 {
		return nil, errNoPoller
	}
	return l.pollers[int(l.next.Add(1))%len(l.pollers)], nil
}
