package kv

import (
	"context"
	"net"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"ephpm/descriptor"
)

// loopEvents is how many clients are answered between two looks for more.
const loopEvents = 128

// A loop answers parked clients from one goroutine: of each that sent something
// it reads once, runs the commands and writes the replies, with no wait and no
// other goroutine in between. What could wait or take long is not for it: then a
// client leaves for a goroutine of its own (client.live), which parks it again.
type loop struct {
	server *Server
	away   *sync.WaitGroup // those that left
	set    *descriptor.Set // by descriptor

	mu     sync.Mutex // guards the following
	parked []*client  // by descriptor
	going  []*client  // those that were evicted; some may have left
	closed bool

	// Owned by run. Each client uses them in turn.
	in    []byte
	reply []byte
}

func newLoop(s *Server, away *sync.WaitGroup) (*loop, error) {
	set, err := descriptor.NewSet()
	if err != nil {
		return nil, err
	}
	return &loop{
		server: s, away: away, set: set,
		in: make([]byte, 0, inputSize), reply: make([]byte, 0, flushAfter),
	}, nil
}

// close lets run end its clients and return.
func (l *loop) close() {
	l.mu.Lock()
	defer l.mu.Unlock() // run closes the set once it knows
	l.closed = true
	l.set.Ring()
}

// run answers clients until close.
func (l *loop) run() {
	defer l.set.Close()
	events, clients := make([]descriptor.Event, loopEvents), make([]*client, 0, loopEvents)
	l.set.Serve(func() bool { // ends by close alone
		for {
			n := l.set.Take(events)
			if n == 0 {
				return false // Go's poller wakes us
			}
			var closed bool
			if clients, closed = l.find(events[:n], clients[:0]); closed {
				l.endAll()
				return true
			}
			for _, c := range clients {
				l.turn(c)
			}
			clear(clients) // keep no client alive
			runtime.Gosched()
		}
	})
}

// find returns the clients of events.
func (l *loop) find(events []descriptor.Event, clients []*client) ([]*client, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		if fd := int(e.Fd); fd != descriptor.Bell && l.parked[fd] != nil {
			clients = append(clients, l.parked[fd])
		}
	}
	for _, c := range l.going {
		if slices.Contains(l.parked, c) && !slices.Contains(clients, c) {
			clients = append(clients, c)
		}
	}
	l.going = nil
	return clients, l.closed
}

// dismiss lets run end a client that was evicted. Any goroutine may call it.
func (l *loop) dismiss(c *client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return // all end
	}
	l.going = append(l.going, c)
	l.set.Ring()
}

// turn answers what a client has sent.
func (l *loop) turn(c *client) {
	if c.evicted.Load() {
		l.end(c)
		return
	}
	borrows := len(c.in) == 0
	if borrows {
		c.in = l.in
	} else {
		c.makeRoom()
	}
	n, err := descriptor.Read(c.socket.fd, c.in[len(c.in):cap(c.in)])
	if err == descriptor.ErrWouldBlock {
		err = nil
	}
	c.in = c.in[:len(c.in)+n]
	c.heardAt.Store(l.server.now.Load())
	c.reply.b = l.reply
	c.over = n > 0 && !c.answer() || err != nil || c.closing
	if c.over {
		c.farewell()
	}
	if len(c.reply.b) == 0 && cap(c.reply.b) > 0 {
		l.reply = c.reply.b
		c.reply.b = nil
	} else { // what is left is the client's, and maybe still in use
		l.reply = make([]byte, 0, flushAfter)
	}
	switch {
	case len(c.in) == 0:
		c.in = nil
	case borrows:
		c.in = append([]byte(nil), c.in...)
	}
	if c.recount(); c.evicted.Load() && !c.over {
		l.end(c)
		return
	}
	switch {
	case c.leaving && c.unpark():
		c.leaving = false
		l.away.Go(c.live)
	case c.over || c.leaving:
		l.server.remove(c)
	}
}

// end ends a client that was evicted, without a wait.
func (l *loop) end(c *client) {
	c.farewell()
	l.server.remove(c)
}

// endAll ends all clients.
func (l *loop) endAll() {
	l.mu.Lock()
	clients := slices.DeleteFunc(slices.Clone(l.parked), func(c *client) bool { return c == nil })
	l.mu.Unlock()
	for _, c := range clients {
		l.server.remove(c)
	}
}

// add lets the loop serve a client that owns a descriptor. It fails if the loop
// is closed, or there is no memory.
func (l *loop) add(c *client, fd int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	if l.set.Add(fd, descriptor.In, int32(fd)) != nil {
		return false
	}
	if fd >= len(l.parked) {
		l.parked = append(l.parked, make([]*client, fd+1-len(l.parked))...)
	}
	l.parked[fd] = c
	return true
}

// remove is the opposite of add, for who runs the loop.
func (l *loop) remove(fd int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parked[fd] = nil
	l.set.Remove(fd)
}

// loops are those of one listener, for the goroutine that accepts its clients.
type loops struct {
	server *Server
	ctx    context.Context // that of Serve
	wg     *sync.WaitGroup // that of Serve
	asked  bool
	all    []*loop
	last   int
}

// maxLoops is where more loops would only wait for one another: they share Stores.
const maxLoops = 4

// next returns the loop for one more client; nil if the connection is none of the
// system's.
func (ls *loops) next(conn net.Conn) *loop {
	if _, ok := conn.(syscall.Conn); !ok {
		return nil
	}
	if !ls.asked {
		ls.asked = true
		ls.start()
	}
	if len(ls.all) == 0 {
		return nil
	}
	ls.last++
	return ls.all[ls.last%len(ls.all)]
}

// start starts loops that end with ctx: one for two cores, since who asks needs
// some as well.
func (ls *loops) start() {
	for range min(max(1, runtime.GOMAXPROCS(0)/2), maxLoops) {
		l, err := newLoop(ls.server, ls.wg)
		if err != nil {
			ls.server.opts.Log.Warn("clients of Redis have to do without a loop", "err", err)
			return
		}
		ls.all = append(ls.all, l)
		ls.wg.Go(l.run)
		ls.wg.Go(func() { <-ls.ctx.Done(); l.close() })
	}
}
