package eventstream

import "context"

// TrySend queues a message without waiting: false means that the queue is full, or
// that the connection is closing.
func (c *Conn) TrySend(f *Frame) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		return false
	}
	if !c.fitsLocked(f) {
		c.order.miss(f.stamp.Seq)
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

// GoOn says how far the client has come on another connection: call it before anything
// is queued. What came later is Replay's.
func (c *Conn) GoOn(from Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.at = from
}

// Skip says that a message that was broadcast is not for the client, which came later,
// so it is not one that it misses.
func (c *Conn) Skip(seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.overtake(seq)
}

// Replay queues messages of the past before Open. They may be more than QueueFrames,
// but not more than QueueBytes: then it reports false and queues nothing.
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
	if c.polls != nil {
		most *= pollDepth
	}
	return len(c.queue) == 0 ||
		len(c.queue) < most && (c.o.QueueBytes == 0 || c.queued+int64(len(f.payload)) <= c.o.QueueBytes)
}

// pushLocked queues a message. What is queued before Open gets no ID: a client that has
// half of it has not come as far as the IDs say.
func (c *Conn) pushLocked(f *Frame) {
	e := entry{frame: f}
	if f.stamp.Seq != 0 {
		c.order.push(f.stamp)
		if c.open {
			e.at = c.order.position()
		}
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
