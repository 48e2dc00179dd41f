package websocket

import (
	"runtime"
	"sync"
)

// chunkLen is how many connections are sent to at a time.
const chunkLen = 256

// A chunk is a part of those to whom a Batch sends.
type chunk struct {
	conns [chunkLen]*Conn
	n     int
}

var chunks = sync.Pool{New: func() any { return new(chunk) }}

// A Batch sends one message to many connections: Add for each of them, then
// Send. It is used by one goroutine.
type Batch struct {
	loop    *Loop
	message *Prepared
	chunk   *chunk
}

// Batch returns an empty Batch.
func (l *Loop) Batch(m *Prepared) *Batch { return &Batch{loop: l, message: m} }

// Add queues the message for c and reports, like TrySend, whether it could. The
// senders send it soon, and others of c's messages in front of it first; whatever
// is sent to c meanwhile stays behind it.
func (b *Batch) Add(c *Conn) bool {
	c.mu.Lock()
	if !c.pushLocked(b.message, true) {
		c.mu.Unlock()
		return false
	}
	handOver := c.line != nil && !c.due && !c.sending && !c.blocked
	c.due = c.due || handOver
	c.mu.Unlock()
	if !handOver { // whoever is at it, or Accept, or the poller goes on with this
		return true
	}
	if b.chunk == nil {
		b.chunk = chunks.Get().(*chunk)
	}
	b.chunk.conns[b.chunk.n] = c
	if b.chunk.n++; b.chunk.n == chunkLen {
		b.Send()
	}
	return true
}

// Send lets the senders begin with what was added. It does not wait for them.
func (b *Batch) Send() {
	if b.chunk == nil {
		return
	}
	b.loop.fan.send(b.chunk)
	b.chunk = nil
}

// A fan sends chunks on as many goroutines as there are processors, which live
// while there is something to send. A connection is in one chunk at a time, so
// what waits is bounded by the connections.
type fan struct {
	wg sync.WaitGroup

	mu       sync.Mutex // guards the following
	waiting  []*chunk
	running  int
	rings    []*ring // those that are not in use
	useRings bool    // the kernel has them for us
}

// few is how many connections are not worth another goroutine.
const few = 4

func (f *fan) send(c *chunk) {
	if c.n <= few {
		_ = f.sendChunk(c, nil) // only a ring fails
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = append(f.waiting, c)
	if f.running < runtime.GOMAXPROCS(0) {
		f.running++
		f.wg.Go(f.run)
	}
}

// run sends until nothing waits, and is then gone.
func (f *fan) run() {
	r := f.ring()
	for {
		f.mu.Lock()
		if len(f.waiting) == 0 {
			f.waiting = nil
			f.running--
			if r != nil {
				f.rings = append(f.rings, r)
			}
			f.mu.Unlock()
			return
		}
		c := f.waiting[0]
		f.waiting[0] = nil
		f.waiting = f.waiting[1:]
		f.mu.Unlock()
		if err := f.sendChunk(c, r); err != nil {
			r.close()
			r = nil
			f.mu.Lock()
			f.useRings = false
			f.mu.Unlock()
		}
	}
}

// ring returns a ring, or nil when the kernel has none.
func (f *fan) ring() *ring {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.rings); n > 0 {
		r := f.rings[n-1]
		f.rings = f.rings[:n-1]
		return r
	}
	if !f.useRings {
		return nil
	}
	r, err := newRing(chunkLen)
	if err != nil { // no memory: this one does without
		return nil
	}
	return r
}

// probe reports why there are no rings, or nil.
func (f *fan) probe() error {
	r, err := newRing(chunkLen)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.useRings = err == nil; f.useRings {
		f.rings = append(f.rings, r)
	}
	return err
}

func (f *fan) close() {
	f.wg.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rings {
		r.close()
	}
	f.rings, f.useRings = nil, false
}

// sendChunk sends to all in c, with the ring those frames that stand alone. After
// an error the ring is not usable any more.
func (f *fan) sendChunk(c *chunk, r *ring) (err error) {
	var sends [chunkLen]piece // of the conns of the same index
	for i, conn := range c.conns[:c.n] {
		conn.mu.Lock()
		conn.due = false
		if r != nil && conn.aloneLocked() {
			sends[i] = conn.nextLocked(nil)
			conn.sending, conn.edge, conn.writing = true, false, sends[i].frames
			r.push(int(conn.fd), sends[i].b, i)
		} else {
			conn.flushLocked()
		}
		conn.mu.Unlock()
	}
	if r != nil {
		err = r.submit(func(i, result int) {
			c.conns[i].sent(sends[i], result)
			sends[i].b = nil
		})
	}
	if err != nil {
		for i, p := range sends[:c.n] {
			if p.b != nil {
				c.conns[i].sent(p, -errnoAgain)
				c.conns[i].retry()
			}
		}
	}
	clear(c.conns[:c.n]) // keep no connection alive
	c.n = 0
	chunks.Put(c)
	return err
}

// aloneLocked reports whether one frame is all there is to send, now, on a
// descriptor without TLS.
func (c *Conn) aloneLocked() bool {
	return c.fd >= 0 && c.tls == nil && !c.gone && !c.sending && !c.blocked &&
		len(c.queue) == 1 && len(c.part) == 0 && c.end == nil
}

// retry sends without a ring what a ring did not.
func (c *Conn) retry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocked = false
	c.flushLocked()
}

// sent accounts for a piece that a ring has sent: result is the number of bytes,
// or an error number below zero.
func (c *Conn) sent(p piece, result int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sending, c.writing = false, 0
	switch {
	case result < 0 && result != -errnoAgain:
		c.cutLocked(CauseGone)
	default:
		if result > 0 {
			c.tookLocked(p, result)
		}
		if c.blocked = result < len(p.b) && !c.edge; c.blocked {
			c.stuckLocked(result > 0)
			break
		}
		c.flushLocked()
	}
	if c.overLocked() {
		c.line.hangUp(c) // it waited for us
	}
}
