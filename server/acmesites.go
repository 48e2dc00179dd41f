package server

import (
	"context"
	"crypto/tls"
	"slices"
	"sync"
	"time"
)

const (
	// obtainPatience is how long a handshake waits for the first certificate of its
	// name. An authority takes a few seconds.
	obtainPatience = 10 * time.Second
	// maxOrders is how many names may wait to be asked for. One more gets no
	// certificate by this handshake.
	maxOrders = 64
)

// acmeSites obtains the certificates of sites that are directories, each when a client
// asks for its name by SNI for the first time: there may be thousands of directories,
// and authorities limit how many certificates one may ask for. Names that no
// directory has are never asked for. Its methods may be called from any goroutine.
type acmeSites struct {
	acme  *acme
	queue chan string // names to be asked for

	mu     sync.Mutex // guards the following
	known  func(name string) bool
	orders map[string]*order
}

// An order is the wish for one certificate, and for the next before it expires.
type order struct {
	settled chan struct{} // closed when there is a certificate, or none at the first try
	done    bool          // settled is closed
	cancel  func()        // ends it; nil while it is in the queue
}

func newACMESites(a *acme) *acmeSites {
	return &acmeSites{acme: a, queue: make(chan string, maxOrders), orders: map[string]*order{}}
}

// open tells which names directories have.
func (s *acmeSites) open(known func(name string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = known
}

// run asks for what is in the queue, until ctx ends.
func (s *acmeSites) run(ctx context.Context) {
	for {
		select {
		case name := <-s.queue:
			s.begin(ctx, name)
		case <-ctx.Done():
			return
		}
	}
}

func (s *acmeSites) begin(ctx context.Context, name string) {
	s.mu.Lock()
	o := s.orders[name]
	if o == nil || o.cancel != nil {
		s.mu.Unlock()
		return // forgotten meanwhile, or asked for twice
	}
	ctx, o.cancel = context.WithCancel(ctx)
	s.mu.Unlock()
	s.acme.obtain(ctx, name)
}

// await lets a handshake wait for the certificate of its name, if a directory has that
// name and nobody has asked for it before. Whether there is one then is for the caller
// to see.
func (s *acmeSites) await(hello *tls.ClientHelloInfo) {
	name, ok := hostName(hello.ServerName)
	if !ok {
		return
	}
	settled := s.order(name)
	if settled == nil {
		return
	}
	late := time.NewTimer(obtainPatience)
	defer late.Stop()
	select {
	case <-settled:
	case <-late.C:
	case <-hello.Context().Done():
	}
}

// order returns what tells that the order of a name is settled, or nil when there is
// nothing to wait for.
func (s *acmeSites) order(name string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[name]
	switch {
	case o != nil && o.done:
		return nil
	case o != nil:
		return o.settled
	case s.known == nil || slices.Contains(s.acme.domains, name) || !isPublicName(name) || !s.known(name):
		return nil
	}
	o = &order{settled: make(chan struct{})}
	select {
	case s.queue <- name:
		s.orders[name] = o
		return o.settled
	default:
		return nil
	}
}

// settle lets those go on who wait for certificates.
func (s *acmeSites) settle(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if o := s.orders[name]; o != nil && !o.done {
			o.done = true
			close(o.settled)
		}
	}
}

// forget ends the orders of a directory that is gone. Its certificate stays in the
// cache on disk.
func (s *acmeSites) forget(names []string) {
	s.mu.Lock()
	var gone []string
	for _, name := range names {
		o := s.orders[name]
		if o == nil {
			continue
		}
		if o.cancel != nil {
			o.cancel()
		}
		if !o.done {
			close(o.settled)
		}
		delete(s.orders, name)
		gone = append(gone, name)
	}
	s.mu.Unlock()
	s.acme.drop(gone)
}

// asked reports whether a name was asked for.
func (s *acmeSites) asked(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orders[name] != nil
}

// names returns what was asked for.
func (s *acmeSites) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for name := range s.orders {
		all = append(all, name)
	}
	return all
}
