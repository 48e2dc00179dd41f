package registry

import (
	"errors"
	"sync"
)

// Errors of Add.
var (
	// ErrFull means that Options.MaxConnections are connected.
	ErrFull = errors.New("registry: too many connections")
	// ErrInUse means that the ID is already connected.
	ErrInUse = errors.New("registry: ID is in use")
)

// Options limits a Registry.
type Options struct {
	// MaxChannels is how many channels one connection may have joined at a
	// time. Zero means 64.
	MaxChannels int
	// MaxConnections is how many connections there may be. Zero means no limit.
	MaxConnections int
}

// DefaultOptions returns the limits that the documentation promises.
func DefaultOptions() Options {
	return Options{MaxChannels: 64}
}

// A Registry holds the connections and channels of one site: for each connection
// a sink, which takes its frames. All methods may be called from any goroutine.
type Registry[S any] struct {
	opts      Options
	snapshots sync.Pool // *[]*member[S]; Broadcast's copies, empty

	mu       sync.RWMutex // guards the following and all they hold
	members  map[ID]*member[S]
	channels map[string]*channel[S] // none is empty
	seats    int                    // in all channels
}

// A member is one connection. Its id and sink never change.
type member[S any] struct {
	id     ID
	sink   S
	joined []seat[S] // one per channel, in no order
}

// New returns an empty Registry.
func New[S any](o Options) *Registry[S] {
	if o.MaxChannels == 0 {
		o.MaxChannels = DefaultOptions().MaxChannels
	}
	return &Registry[S]{
		opts:      o,
		snapshots: sync.Pool{New: func() any { return new([]*member[S]) }},
		members:   make(map[ID]*member[S]),
		channels:  make(map[string]*channel[S]),
	}
}

// Add enters a connection, which is in no channel yet. It fails with ErrFull at
// the limit and with ErrInUse for an ID that is there already.
func (r *Registry[S]) Add(id ID, sink S) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.members[id]; ok {
		return ErrInUse
	}
	if r.opts.MaxConnections > 0 && len(r.members) >= r.opts.MaxConnections {
		return ErrFull
	}
	r.members[id] = &member[S]{id: id, sink: sink}
	return nil
}

// Remove takes a connection out of all its channels and forgets it. A Subscribe
// that comes later, or at the same time, finds nobody. Removing an ID that is
// not there does nothing.
func (r *Registry[S]) Remove(id ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.members[id]
	if !ok {
		return
	}
	delete(r.members, id)
	for len(m.joined) > 0 {
		r.leaveLocked(m, len(m.joined)-1)
	}
}

// Lookup returns a connection's sink, and whether it is connected.
func (r *Registry[S]) Lookup(id ID) (S, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if m, ok := r.members[id]; ok {
		return m.sink, true
	}
	var none S
	return none, false
}

// Len returns the number of connections.
func (r *Registry[S]) Len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.members)
}
