package kv

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// ServerOptions are what a Server is made of.
type ServerOptions struct {
	// Log gets what happens to connections.
	Log *slog.Logger
	// Default is the Store of a client that did not authenticate. Nil means that
	// it has to.
	Default *Store
	// Authenticate returns the Store for a user and a password, nil if they are
	// wrong. A client that names no user is "default". Nil means that there is
	// no password.
	Authenticate func(user, password string) *Store
	// Publish gets what clients publish to channels that start with
	// PublishPrefix, without the prefix, and returns how many got it. Nil means
	// that no prefix is special.
	Publish       func(s *Store, channel string, payload []byte) int
	PublishPrefix string
	// MaxConnections limits the connections; one more gets an error. Zero means
	// 1000.
	MaxConnections int
	// MaxInput limits one command in bytes. Zero means 1 MiB.
	MaxInput int
	// ClientsMemory limits, in bytes, what all clients together hold: of commands
	// that have not ended, of transactions, of replies and messages that they do
	// not read, and of subscriptions, each client's first 32 KiB aside. Over it
	// the one that holds most is cut. Zero means MaxValue and 64 MiB.
	ClientsMemory int64
	// MaxReply limits the reply to one command or transaction in bytes: a short
	// one can name a long value many times. Zero means MaxValue and 1 MiB, or
	// ClientsMemory if that is less.
	MaxReply int
	// MaxOutput limits, in bytes, the messages that wait for a subscriber who
	// does not read; more cuts its connection. Zero means 8 MiB.
	MaxOutput int
	// IdleTimeout cuts a connection, unless it subscribed to something, that
	// sent nothing for this long. Zero means never.
	IdleTimeout time.Duration
	// WriteTimeout cuts a connection to which nothing could be written for this
	// long. Zero means 10 s.
	WriteTimeout time.Duration
	// Version is what INFO and HELLO say of this server.
	Version string
}

// A Server lets clients of Redis reach Stores.
type Server struct {
	opts     ServerOptions
	commands map[string]*command // by their names in lower case
	started  time.Time
	now      atomic.Int64 // whole seconds since started
	stats    serverStats

	clientsMemory atomic.Int64 // what all clients hold, in bytes

	mu      sync.Mutex // guards the following
	clients map[int64]*client
	last    int64              // the ID that was given last
	scripts map[string]*script // those that clients sent, by their SHA-1
}

type serverStats struct {
	connections atomic.Uint64
	refused     atomic.Uint64
	commands    atomic.Uint64
	evicted     atomic.Uint64
}

// ServerStats are what a Server has counted.
type ServerStats struct {
	Open        int    // connections now
	Connections uint64 // accepted
	Refused     uint64 // over MaxConnections
	Commands    uint64
	Memory      int64  // bytes that clients hold now, of ServerOptions.ClientsMemory
	Evicted     uint64 // connections cut because of that
}

// NewServer returns a Server that serves nobody yet.
func NewServer(o ServerOptions) *Server {
	if o.MaxConnections == 0 {
		o.MaxConnections = 1000
	}
	if o.ClientsMemory == 0 {
		o.ClientsMemory = MaxValue + 64<<20
	}
	if o.MaxReply == 0 {
		o.MaxReply = int(min(MaxValue+1<<20, o.ClientsMemory))
	}
	if o.MaxInput == 0 {
		o.MaxInput = 1 << 20
	}
	if o.MaxOutput == 0 {
		o.MaxOutput = 8 << 20
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = 10 * time.Second
	}
	return &Server{
		opts:     o,
		commands: newCommands(),
		started:  time.Now(),
		clients:  make(map[int64]*client),
		scripts:  make(map[string]*script),
	}
}

// Stats returns the counts.
func (s *Server) Stats() ServerStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ServerStats{
		Open:        len(s.clients),
		Connections: s.stats.connections.Load(),
		Refused:     s.stats.refused.Load(),
		Commands:    s.stats.commands.Load(),
		Memory:      s.clientsMemory.Load(),
		Evicted:     s.stats.evicted.Load(),
	}
}

// Serve accepts connections until ctx is done, closes the listener and all of
// its connections, and returns when nothing of them runs any more. The error is
// nil then, else what kept it from accepting.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	loops := loops{server: s, ctx: ctx, wg: &wg}
	wg.Go(func() { s.watch(ctx, l) })
	wg.Go(func() { <-ctx.Done(); _ = l.Close() }) // ends Accept
	for {
		conn, err := l.Accept()
		if err == nil {
			s.admit(ctx, &wg, l, conn, loops.next(conn))
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		if !isTemporary(err) {
			return err
		}
		s.opts.Log.Warn("cannot accept a Redis client", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// isTemporary reports whether accepting can work later: the process or the
// system has no descriptors left.
func isTemporary(err error) bool {
	var ne interface{ Temporary() bool }
	return errors.As(err, &ne) && ne.Temporary()
}

// admit starts a client, or refuses it. Once ctx is done it only closes it, since
// watch may have cut all that it found.
func (s *Server) admit(ctx context.Context, wg *sync.WaitGroup, l net.Listener, conn net.Conn, loop *loop) {
	s.mu.Lock()
	if ctx.Err() != nil {
		s.mu.Unlock()
		_ = conn.Close() // nothing was asked on it
		return
	}
	if len(s.clients) >= s.opts.MaxConnections {
		s.mu.Unlock()
		s.stats.refused.Add(1)
		s.opts.Log.Info("Redis client refused", "address", conn.RemoteAddr().String(), "reason", "max_connections")
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = conn.Write([]byte("-ERR max number of clients reached\r\n")) // it goes anyway
		_ = conn.Close()
		return
	}
	s.last++
	c := newClient(s, l, conn, s.last)
	s.clients[c.id] = c
	s.mu.Unlock()
	s.stats.connections.Add(1)
	if s.opts.Default != nil {
		c.enter(s.opts.Default)
	}
	c.loop = loop
	if !c.park() {
		wg.Go(c.live)
	}
}

// Cut closes the connections of the clients of a Store that goes away.
func (s *Server) Cut(store *Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		if c.site.Load() == store {
			c.cut()
		}
	}
}

func (s *Server) remove(c *client) {
	c.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c.id)
}

// watch keeps the clock and cuts connections that take too long, until ctx is
// done: then it cuts all.
func (s *Server) watch(ctx context.Context, l net.Listener) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			now := int64(time.Since(s.started) / time.Second)
			s.now.Store(now)
			for _, c := range s.ofListener(l) {
				c.cutIfStale(now)
			}
		case <-ctx.Done():
			_ = l.Close()
			for _, c := range s.ofListener(l) {
				c.cut()
			}
			return
		}
	}
}

func (s *Server) ofListener(l net.Listener) []*client {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*client, 0, len(s.clients))
	for _, c := range s.clients {
		if c.listener == l {
			list = append(list, c)
		}
	}
	return list
}
