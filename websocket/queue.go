package websocket

import "context"

// TrySend sends a message as far as that goes without waiting, and queues the
// rest: false means that the queue is full, the connection is closing, or it has
// gone. Messages queued before Accept leave right behind the 101.
func (c *Conn) TrySend(m *Prepared) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.pushLocked(m, false) {
		return false
	}
	c.flushLocked()
	return true
}

// SendWait is TrySend that waits for room, until ctx ends or the connection
// closes. Before Accept nothing makes room, so it does not wait.
func (c *Conn) SendWait(ctx context.Context, m *Prepared) bool {
	for {
		c.mu.Lock()
		if c.pushLocked(m, false) {
			c.flushLocked()
			c.mu.Unlock()
			return true
		}
		if c.end != nil || c.line == nil && !c.opening {
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

// pushLocked queues a message. A full queue may hold what a Batch has not come to
// send yet; only what the line does not take counts against the client. A shared
// message is compressed once for all who get it.
func (c *Conn) pushLocked(m *Prepared, shared bool) bool {
	if c.end != nil {
		return false
	}
	if len(c.queue) > 0 && !c.fitsLocked(m.frame) {
		if c.flushLocked(); len(c.queue) > 0 && !c.fitsLocked(m.frame) {
			return false
		}
	}
	frame := c.encodeLocked(m, shared)
	c.queue = append(c.queue, frame)
	c.queued += int64(len(frame))
	return true
}

func (c *Conn) fitsLocked(frame []byte) bool {
	return len(c.queue) < c.o.QueueFrames &&
		(c.o.QueueBytes == 0 || c.queued+int64(len(frame)) <= c.o.QueueBytes)
}

// popLocked removes the first n frames, which are written.
func (c *Conn) popLocked(n int) {
	left := copy(c.queue, c.queue[n:])
	clear(c.queue[left:])
	c.queue = c.queue[:left]
	if left == 0 {
		c.queue = nil // an idle connection keeps no memory for it
	}
}

// dropQueueLocked drops what the line did not begin to take.
func (c *Conn) dropQueueLocked() {
	keep := 0
	if c.off > 0 || c.writing > 0 {
		keep = max(1, int(c.writing))
	}
	for _, frame := range c.queue[min(keep, len(c.queue)):] {
		c.queued -= int64(len(frame))
	}
	clear(c.queue[min(keep, len(c.queue)):])
	c.queue = c.queue[:min(keep, len(c.queue))]
}

// signalLocked wakes whoever waits for room in the queue.
func (c *Conn) signalLocked() {
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
}
