package kv

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	inputSize  = 16 << 10 // of a client's buffer, when it has nothing long to say
	flushAfter = 64 << 10 // bytes of replies
)

// What a client may say before it has authenticated.
var strangerLimits = limits{bytes: 16 << 10, arguments: 10}

// A client is one connection of a Server. Its goroutine owns it, but for what
// says otherwise.
type client struct {
	server   *Server
	listener net.Listener
	conn     net.Conn
	id       int64
	address  string

	store    *Store // nil: it has to authenticate
	user     string
	commands int  // since the last flush
	closing  bool // after the replies that are there
	parser   parser
	in       []byte // what has come and was not parsed
	reply    reply
	tx       transaction

	// The command before, which is often the next one.
	last     *command
	lastName string

	// For the server's watch.
	heardAt   atomic.Int64          // Server.now when it last sent something
	writingAt atomic.Int64          // 1 + Server.now when a write began; 0: none runs
	listens   atomic.Bool           // it subscribed to something
	site      atomic.Pointer[Store] // store, for others

	nameMu  sync.Mutex // guards the following
	name    string
	library string

	subscriber subscriber
}

func newClient(s *Server, l net.Listener, conn net.Conn, id int64) *client {
	address := conn.RemoteAddr().String()
	if conn.RemoteAddr().Network() == "unix" {
		address = conn.LocalAddr().String() + ":0" // as Redis has it
	}
	c := &client{
		server:   s,
		listener: l,
		conn:     conn,
		id:       id,
		address:  address,
		parser:   newParser(strangerLimits),
		in:       make([]byte, 0, inputSize),
		reply:    reply{resp: 2},
	}
	c.heardAt.Store(s.now.Load())
	return c
}

// enter gives the client a Store.
func (c *client) enter(s *Store) {
	c.store = s
	c.site.Store(s)
	c.parser.limits = limits{bytes: c.server.opts.MaxInput, arguments: maxArguments}
}

// serve answers commands until the connection ends.
func (c *client) serve() {
	for !c.closing {
		c.makeRoom()
		n, err := c.conn.Read(c.in[len(c.in):cap(c.in)])
		c.heardAt.Store(c.server.now.Load())
		c.in = c.in[:len(c.in)+n]
		if n > 0 && !c.answer() || err != nil {
			break
		}
	}
	c.flush()
}

// makeRoom makes room behind what has come. The buffer doubles when it is full
// of one command, so it never has more than twice the bytes that were sent.
func (c *client) makeRoom() {
	switch {
	case len(c.in) == cap(c.in):
		grown := make([]byte, len(c.in), 2*cap(c.in))
		copy(grown, c.in)
		c.in = grown
	case len(c.in) == 0 && cap(c.in) > inputSize:
		c.in = make([]byte, 0, inputSize)
	}
}

// answer runs the commands that have come and writes the replies. It reports
// whether the connection goes on.
func (c *client) answer() bool {
	done := 0
	for !c.closing {
		args, n, err := c.parser.next(c.in[done:])
		if err != nil {
			c.reply.error(err.Error())
			return false
		}
		if n == 0 {
			break
		}
		if len(args) > 0 {
			c.run(args)
		}
		done += n
		if len(c.reply.b) >= flushAfter && !c.flush() {
			return false
		}
	}
	c.in = c.in[:copy(c.in, c.in[done:])]
	return c.flush()
}

// flush writes the replies and reports whether it could.
func (c *client) flush() bool {
	c.server.stats.commands.Add(uint64(c.commands))
	c.commands = 0
	if len(c.reply.b) == 0 {
		return true
	}
	ok := false
	if c.subscriber.runs {
		ok = c.queue(c.reply.b)
	} else {
		ok = c.write(c.reply.b)
	}
	if cap(c.reply.b) > 2*flushAfter {
		c.reply.b = nil
	}
	c.reply.b = c.reply.b[:0]
	return ok
}

// write writes to the socket.
func (c *client) write(b []byte) bool {
	c.writingAt.Store(1 + c.server.now.Load())
	_, err := c.conn.Write(b)
	c.writingAt.Store(0)
	return err == nil
}

// cutIfStale closes the connection when it took too long. Any goroutine may call
// it.
func (c *client) cutIfStale(now int64) {
	reason := ""
	o := &c.server.opts
	if idle := int64(o.IdleTimeout.Seconds()); idle > 0 && !c.listens.Load() && now-c.heardAt.Load() > idle {
		reason = "idle_timeout_secs"
	}
	if since := c.writingAt.Load(); since > 0 && now+1-since > int64(o.WriteTimeout.Seconds()) {
		reason = "does not read"
	}
	if reason != "" {
		o.Log.Debug("Redis client cut", "address", c.address, "reason", reason)
		_ = c.conn.Close() // ends its goroutines
	}
}

// end frees what the client holds.
func (c *client) end() {
	c.unsubscribeAll()
	c.stopWriter()
	_ = c.conn.Close()
}

// info is the client's line of CLIENT LIST. Any goroutine may call it.
func (c *client) info() string {
	c.nameMu.Lock()
	name, library := c.name, c.library
	c.nameMu.Unlock()
	var b strings.Builder
	b.WriteString("id=" + strconv.FormatInt(c.id, 10))
	b.WriteString(" addr=" + c.address)
	b.WriteString(" laddr=" + c.conn.LocalAddr().String())
	b.WriteString(" name=" + name)
	b.WriteString(" idle=" + strconv.FormatInt(c.server.now.Load()-c.heardAt.Load(), 10))
	flags := "N"
	if c.listens.Load() {
		flags = "P"
	}
	b.WriteString(" flags=" + flags + " db=0 lib-name=" + library)
	return b.String()
}
