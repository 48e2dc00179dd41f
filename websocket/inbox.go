package websocket

// The inbox lets the reader go on while a message is handled, so that pings are
// answered. Full, it stops the reader, and TCP stops the client. The bytes may
// be exceeded by one message.
const (
	inboxMessages = 8
	inboxBytes    = 64 << 10
)

// A Message is one data message. Its fragments are joined; text is UTF-8.
type Message struct {
	Binary bool
	Data   []byte // the handler's to keep
}

// inboxFull reports whether the reader has to wait; wakeReader is called when it
// need not any more.
func (c *Conn) inboxFull() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = c.end == nil && (len(c.inbox) >= inboxMessages || c.inboxBytes >= inboxBytes)
	return c.stopped
}

// deliver puts m into the inbox and has it handled unless a handler runs.
// Messages that come after Close are dropped.
func (c *Conn) deliver(m Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		c.droppedLocked(1)
		return
	}
	c.passed.in(len(m.Data))
	if c.o.Stats != nil {
		c.o.Stats.in(len(m.Data))
	}
	c.inbox = append(c.inbox, m)
	c.inboxBytes += len(m.Data)
	if !c.handling {
		c.handling = true
		c.loop.crew.run(c.handleAll)
	}
}

// handleAll empties the inbox.
func (c *Conn) handleAll() {
	for {
		m, ok := c.take()
		if !ok {
			break
		}
		if err := c.handler.Message(m); err != nil {
			c.Close(CodeInternal, "", CauseServer)
		}
	}
	c.report()
}

func (c *Conn) take() (Message, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.inbox) == 0 {
		c.inbox, c.inboxBytes = nil, 0
		c.handling = false
		c.handled = c.loop.now()
		c.endLaterLocked()
		c.wakeReaderLocked()
		return Message{}, false
	}
	m := c.inbox[0]
	c.inbox[0] = Message{}
	c.inbox = c.inbox[1:]
	c.inboxBytes -= len(m.Data)
	c.wakeReaderLocked()
	return m, true
}

// dropInboxLocked drops what was not handled yet.
func (c *Conn) dropInboxLocked() {
	c.droppedLocked(len(c.inbox))
	c.inbox = nil
}

func (c *Conn) droppedLocked(n int) {
	if c.o.Stats != nil {
		c.o.Stats.Dropped.Add(int64(n))
	}
}

// A Backlog is what waits in a connection.
type Backlog struct {
	Frames   int   // that the client did not take yet
	Bytes    int64 // of those
	Messages int   // that wait for the one before them to be handled
}

// Backlog returns what waits now. It may be called at any time.
func (c *Conn) Backlog() Backlog {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Backlog{len(c.queue), c.queued - int64(c.off), len(c.inbox)}
}

// wakeReaderLocked lets a reader that found the inbox full look again.
func (c *Conn) wakeReaderLocked() {
	if !c.stopped {
		return
	}
	c.stopped = false
	c.line.wakeReader(c)
}
