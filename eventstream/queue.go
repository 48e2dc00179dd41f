package eventstream

import (
	"context"
	"slices"
)

// TrySend queues a message without waiting: false means that the queue is full, or
// that the connection is closing. Messages with sequence numbers must be tried in
// their order.
func (c *Conn) TrySend(f *Frame) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		return false
	}
	if !c.fitsLocked(f) {
		c.order.miss(f.seq)
		return false
	}
	c.pushLocked(f)
	return true
}

// SendWait is TrySend that waits for room, until ctx ends or the connection closes. It
// may send later what TrySend refused. Before Open nothing makes room, so it does not
// wait.
func (c *Conn) SendWait(ctx context.Context, f *Frame) bool {
	for {
		c.mu.Lock()
		if c.end == nil && c.fitsLocked(f) {
			c.pushLocked(f)
			c.mu.Unlock()
			return true
		}
		if c.end != nil || !c.open {
			c.mu.Unlock()
			return false
		}
		if c.room == nil {
			c.room = make(chan struct{})
		}
		room := c.room
		c.mu.Unlock()

		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
}

// Replay queues messages of the past, which have no sequence numbers, before Open.
// They may be more than QueueFrames, but not more than QueueBytes: then it reports
// false and queues nothing.
func (c *Conn) Replay(frames []*Frame) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes := c.queued
	for _, f := range frames {
		bytes += int64(len(f.payload))
	}
	if c.end != nil || c.o.QueueBytes > 0 && bytes > c.o.QueueBytes {
		return false
	}
	for _, f := range frames {
		c.pushLocked(f)
	}
	return true
}

func (c *Conn) fitsLocked(f *Frame) bool {
	most := c.o.QueueFrames
	if c.polled {
		most *= pollDepth
	}
	return len(c.queue) == 0 ||
		len(c.queue) < most && (c.o.QueueBytes == 0 || c.queued+int64(len(f.payload)) <= c.o.QueueBytes)
}

// pushLocked queues a message. What is queued before Open gets no ID: a client that has
// half of it has not come as far as the IDs say.
func (c *Conn) pushLocked(f *Frame) {
	e := entry{frame: f}
	if c.open && f.seq != 0 {
		e.id = c.order.push(f.seq)
	}
	c.queue = append(c.queue, e)
	c.queued += e.size()
	c.signalLocked()
}

// popLocked removes the first n entries.
func (c *Conn) popLocked(n int) {
	for _, e := range c.queue[:n] {
		c.queued -= e.size()
	}
	left := copy(c.queue, c.queue[n:])
	clear(c.queue[left:])
	if c.queue = c.queue[:left]; left == 0 {
		c.queue = nil // an idle connection keeps no memory for it
	}
	c.makeRoomLocked()
}

// An order knows which ID a client may be told behind a frame: one up to which it has
// all, even when frames that found no room come behind those after them. A client
// that comes back may then get a frame twice, but misses none.
type order struct {
	highest uint64
	missed  []uint64 // found no room and have not come later
	lost    bool     // too many to remember: there are no IDs any more
}

// missedMax bounds order.missed. A connection that has missed so much is about to be
// closed.
const missedMax = 256

func (o *order) miss(seq uint64) {
	switch {
	case seq == 0 || o.lost:
	case len(o.missed) == missedMax:
		o.lost, o.missed = true, nil
	default:
		o.missed = append(o.missed, seq)
	}
}

// push returns the ID for a frame that is queued now, 0 for none.
func (o *order) push(seq uint64) (id uint64) {
	if i := slices.Index(o.missed, seq); i >= 0 {
		o.missed = slices.Delete(o.missed, i, i+1)
	}
	o.highest = max(o.highest, seq)
	if o.lost || len(o.missed) > 0 {
		return 0
	}
	return o.highest
}
