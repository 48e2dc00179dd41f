package kv

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"ephpm/descriptor"
)

const (
	inputSize  = 16 << 10 // of a client's buffer, when it has nothing long to say
	flushAfter = 64 << 10 // bytes of replies

	// manyArguments is how many a parser keeps room for.
	manyArguments = 1 << 8
)

// What a client may say before it has authenticated.
var strangerLimits = limits{bytes: 16 << 10, arguments: 10}

// A client is one connection of a Server. The goroutine that serves it, its own or
// that of a loop, owns it, but for what says otherwise.
type client struct {
	server   *Server
	listener net.Listener
	loop     *loop // where it may be parked; nil: nowhere
	socket   socket
	id       int64
	address  string // of the client
	local    string // our own

	store    *Store // nil: it has to authenticate
	user     string
	commands int   // since the last flush
	closing  bool  // after the replies that are there
	torn     bool  // the first part of the reply that is there was written
	counted  int64 // of account, by recount
	over     bool  // nothing more is read
	leaving  bool  // its loop, for a goroutine
	parser   parser
	in       []byte // what has come and was not parsed
	reply    reply
	tx       transaction

	// The command before, which is often the next one.
	last     *command
	lastName string

	account account
	evicted atomic.Bool // it held most, and has to go

	// For the server's watch.
	heardAt   atomic.Int64          // Server.now when it last sent something
	writingAt atomic.Int64          // 1 + Server.now when a write began; 0: none runs
	listens   atomic.Bool           // it subscribed to something
	site      atomic.Pointer[Store] // store, for others

	nameMu  sync.Mutex // guards the following
	name    string
	library string

	subscriber subscriber
	unmonitor  func() // ends what MONITOR began; nil: nothing did
}

func newClient(s *Server, l net.Listener, conn net.Conn, id int64) *client {
	local := conn.LocalAddr().String()
	address := conn.RemoteAddr().String()
	if conn.RemoteAddr().Network() == "unix" {
		address = local + ":0" // as Redis has it
	}
	c := &client{
		server:   s,
		listener: l,
		socket:   socket{conn: conn, fd: -1},
		id:       id,
		address:  address,
		local:    local,
		parser:   newParser(strangerLimits),
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

// live serves the client in a goroutine of its own, until it ends or is parked.
func (c *client) live() {
	if !c.serve() {
		c.server.remove(c)
	}
}

// serve answers commands, at first those that have come, until the connection
// ends or, then it reports true, the client is parked.
func (c *client) serve() (parked bool) {
	for c.over = c.over || !c.answer(); !c.over && !c.closing; {
		if c.park() {
			return true
		}
		c.makeRoom()
		if cap(c.reply.b) > inputSize {
			c.reply.b = nil // it is empty, and the client may say nothing for long
		}
		if c.recount(); c.evicted.Load() {
			break
		}
		n, err := c.socket.conn.Read(c.in[len(c.in):cap(c.in)])
		c.heardAt.Store(c.server.now.Load())
		c.in = c.in[:len(c.in)+n]
		c.over = n > 0 && !c.answer() || err != nil
	}
	c.farewell()
	return false
}

// makeRoom makes room behind what has come. The buffer doubles when it is full
// of one command, so it never has more than twice the bytes that were sent.
func (c *client) makeRoom() {
	switch {
	case len(c.in) == cap(c.in):
		grown := make([]byte, len(c.in), max(inputSize, 2*cap(c.in)))
		copy(grown, c.in)
		c.in = grown
	case len(c.in) == 0 && cap(c.in) > inputSize:
		c.in = make([]byte, 0, inputSize)
	}
}

// answer runs the commands that have come and writes the replies, until one may
// not run in the client's loop. It reports whether the connection goes on.
func (c *client) answer() bool {
	done := 0
	for !c.closing && !c.leaving {
		args, n, err := c.parser.next(c.in[done:])
		if err != nil {
			c.reply.error(err.Error())
			return false
		}
		if n == 0 {
			break
		}
		if len(args) > 0 && !c.run(args) {
			break
		}
		done += n
		if len(c.reply.b) >= flushAfter && !c.flush() {
			return false
		}
	}
	if cap(c.in) > inputSize || cap(c.parser.args) > manyArguments {
		c.parser.forget()
	}
	c.in = c.in[:copy(c.in, c.in[done:])]
	return c.flush()
}

// flush writes the replies and reports whether it could. In a loop some may be
// left; then the client leaves.
func (c *client) flush() bool {
	c.server.stats.commands.Add(uint64(c.commands))
	c.commands = 0
	if c.parked() && len(c.reply.b) <= 2*flushAfter {
		return len(c.reply.b) == 0 || c.send() // the loop counts what is left
	}
	if c.recount(); c.evicted.Load() {
		return false
	}
	return c.send()
}

// send is flush for replies that have been counted.
func (c *client) send() bool {
	if len(c.reply.b) == 0 {
		return true
	}
	ok, n := false, len(c.reply.b)
	switch {
	case c.subscriber.runs:
		ok = c.queue(c.reply.b)
	case c.parked():
		var err error
		n, err = descriptor.Write(c.socket.fd, c.reply.b)
		ok, c.leaving = err == nil, err == nil && n < len(c.reply.b)
		c.torn = n > 0 && c.leaving
	default:
		ok = c.write(c.reply.b)
		c.torn = !ok
	}
	c.reply.b = c.reply.b[:copy(c.reply.b, c.reply.b[n:])]
	if len(c.reply.b) == 0 && cap(c.reply.b) > 2*flushAfter {
		c.reply.b = nil
	}
	return ok
}

// write writes to the socket.
func (c *client) write(b []byte) bool {
	c.writingAt.Store(1 + c.server.now.Load())
	_, err := c.socket.conn.Write(b)
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
	if c.evicted.Load() { // a second ago, and it is still there
		c.cut()
	}
	if reason != "" {
		o.Log.Debug("Redis client cut", "address", c.address, "reason", reason)
		c.cut()
	}
}

// end frees what the client holds.
func (c *client) end() {
	c.unsubscribeAll()
	c.endMonitor()
	c.stopWriter()
	c.close()
	c.server.clientsMemory.Add(-c.account.close())
}

// info is the client's line of CLIENT LIST. Any goroutine may call it.
func (c *client) info() string {
	c.nameMu.Lock()
	name, library := c.name, c.library
	c.nameMu.Unlock()
	var b strings.Builder
	b.WriteString("id=" + strconv.FormatInt(c.id, 10))
	b.WriteString(" addr=" + c.address)
	b.WriteString(" laddr=" + c.local)
	b.WriteString(" name=" + name)
	b.WriteString(" idle=" + strconv.FormatInt(c.server.now.Load()-c.heardAt.Load(), 10))
	flags := "N"
	if c.listens.Load() {
		flags = "P"
	}
	b.WriteString(" flags=" + flags + " db=0")
	b.WriteString(" tot-mem=" + strconv.FormatInt(c.account.held(), 10))
	b.WriteString(" lib-name=" + library)
	return b.String()
}
