package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"ephpm/phpbridge"
)

// workers is a *phpbridge.Pool, an *ownPool, or a fake in tests.
type workers interface {
	runner
	// Close refuses new requests and waits for running ones until ctx ends,
	// which kills them.
	Close(ctx context.Context) error
	// Reload starts PHP anew and replaces the workers one by one.
	Reload(ctx context.Context) error
	// Stats returns the state and the totals, after Close the totals.
	Stats() phpbridge.Stats
	// Running returns the requests that have a job, in no order.
	Running() []phpbridge.Running
	// Workers returns the workers that there are.
	Workers() phpbridge.Crew
	// OPcache returns what OPcache holds, after Close the totals. It may take a
	// second.
	OPcache() phpbridge.OPcache
}

// pools are all workers of a server. A pool is a trust boundary: sites that do not
// trust one another have pools of their own.
type pools struct {
	shared workers // of the sites that have none of their own; nil when all have
	start  func(phpbridge.Options) (workers, error)
	have   machine
	log    *slog.Logger

	mu     sync.Mutex // guards the following
	own    map[*ownPool]struct{}
	shares map[*share]struct{}
	past   phpbridge.Stats // totals of those that are gone

	pastOPcache phpbridge.OPcache // as past
}

// newPools returns the pools of a server. shared may be nil.
func newPools(shared workers, have machine, log *slog.Logger) *pools {
	return &pools{
		shared: shared, start: startPool, have: have, log: log,
		own: map[*ownPool]struct{}{}, shares: map[*share]struct{}{},
	}
}

// startPool starts PHP.
func startPool(o phpbridge.Options) (workers, error) {
	pool, err := phpbridge.New(o)
	if err != nil {
		return nil, fmt.Errorf("start PHP: %w", err)
	}
	return pool, nil
}

// poolOptions are those of a pool for all sites, or of one for the site whose
// configuration it is.
func poolOptions(c Config, have machine, log *slog.Logger) phpbridge.Options {
	least, most := have.workers(c.PHP)
	return phpbridge.Options{
		MinWorkers:       least,
		MaxWorkers:       most,
		Reserve:          c.PHP.WorkerReserve,
		SpawnAfter:       time.Duration(c.PHP.WorkerSpawnAfter),
		WorkerIdle:       time.Duration(c.PHP.WorkerIdleTimeout),
		MaxRequests:      c.PHP.WorkerMaxRequests,
		Processors:       have.cpus,
		WorkerMaxMemory:  int64(c.PHP.WorkerMaxMemory),
		Grace:            time.Duration(c.Server.Timeouts.RequestGrace),
		SlowRequest:      time.Duration(c.PHP.SlowRequest),
		Backlog:          c.PHP.WorkerBacklog,
		BacklogWait:      time.Duration(c.PHP.WorkerBacklogWait),
		INIFile:          c.PHP.INIFile,
		INI:              phpSettings(c, have),
		Env:              c.PHP.Env,
		Extensions:       c.PHP.Extensions,
		DisableFunctions: disabledFunctions(c.Server.Security),
		SAPIName:         c.PHP.SAPIName,
		StderrRate:       c.Server.Logging.StderrRate,
		Log:              log,
	}
}

// addOwn takes in the pool of a site.
func (p *pools) addOwn(o *ownPool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own[o] = struct{}{}
}

func (p *pools) addShare(s *share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shares[s] = struct{}{}
}

// forget leaves out what a site had that is gone, but for its totals. Both may be
// nil.
func (p *pools) forget(o *ownPool, s *share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o != nil {
		delete(p.own, o)
		addStats(&p.past, o.Stats())
		p.pastOPcache.Add(o.OPcache().Totals())
	}
	if s != nil {
		delete(p.shares, s)
		s.addTo(&p.past)
	}
}

// all returns the pools that there are now.
func (p *pools) all() []workers {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []workers
	if p.shared != nil {
		all = append(all, p.shared)
	}
	for o := range p.own {
		all = append(all, o)
	}
	return all
}

// each calls f for every pool at once and returns all errors.
func (p *pools) each(f func(workers) error) error {
	all := p.all()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, w := range all {
		wg.Go(func() { errs[i] = f(w) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// close ends all pools; see workers.Close.
func (p *pools) close(ctx context.Context) error {
	return p.each(func(w workers) error { return w.Close(ctx) })
}

// closeUnused ends pools that serve nobody.
func (p *pools) closeUnused() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // there is nothing to wait for
	_ = p.close(ctx)
}

// reload starts PHP anew in all pools that run.
func (p *pools) reload(ctx context.Context) error {
	return p.each(func(w workers) error { return w.Reload(ctx) })
}

// stats returns the sum of all pools and of what waits in front of them.
func (p *pools) stats() phpbridge.Stats {
	all := p.all()
	p.mu.Lock()
	sum := p.past
	for s := range p.shares {
		s.addTo(&sum)
	}
	p.mu.Unlock()
	for _, w := range all {
		addStats(&sum, w.Stats())
	}
	return sum
}

// A byClass runs pages and events in different ways.
type byClass struct{ pages, events runner }

// Serve implements runner.
func (b byClass) Serve(ctx context.Context, w http.ResponseWriter, r *phpbridge.Request) (phpbridge.Result, error) {
	if r.Class == phpbridge.Event {
		return b.events.Serve(ctx, w, r)
	}
	return b.pages.Serve(ctx, w, r)
}
