package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"ephpm/phpbridge"
)

// startAgain is how long a pool that did not start is left alone.
const startAgain = time.Second

// An ownPool is the pool of a site that shares it with no other. It starts when
// the first request needs it, and ends when none has for a while.
type ownPool struct {
	site  string
	start func() (workers, error) // takes as long as PHP takes to start
	idle  time.Duration           // without a request, then it ends; 0: never
	log   *slog.Logger

	running sync.WaitGroup // pools that start or end
	mu      sync.Mutex     // guards the following
	pool    workers        // nil: it does not run
	ready   chan struct{}  // closed when the one that starts has started or not
	failed  error          // why not
	tried   time.Time      // when
	users   int            // requests in pool
	timer   *time.Timer    // ends it
	closed  bool
	resting map[workers]context.CancelFunc // those that rest ends; kills their scripts
	past    phpbridge.Stats                // totals of those that have ended

	pastOPcache phpbridge.OPcache // as past
}

// Serve implements runner.
func (p *ownPool) Serve(ctx context.Context, w http.ResponseWriter, r *phpbridge.Request) (phpbridge.Result, error) {
	start := time.Now()
	pool, err := p.enter(ctx)
	waited := time.Since(start)
	if err != nil {
		return phpbridge.Result{Queued: waited}, err
	}
	defer p.leave()
	result, err := pool.Serve(ctx, w, r)
	result.Queued += waited
	return result, err
}

// enter returns the pool, which runs until leave.
func (p *ownPool) enter(ctx context.Context) (workers, error) {
	for {
		p.mu.Lock()
		switch {
		case p.closed:
			p.mu.Unlock()
			return nil, phpbridge.ErrClosed
		case p.pool != nil:
			p.users++
			if p.timer != nil {
				p.timer.Stop()
			}
			pool := p.pool
			p.mu.Unlock()
			return pool, nil
		case p.ready == nil && p.failed != nil && time.Since(p.tried) < startAgain:
			err := p.failed
			p.mu.Unlock()
			return nil, err
		case p.ready == nil:
			p.failed, p.ready = nil, make(chan struct{})
			p.running.Go(p.begin) // ends when PHP has started, or has not
		}
		ready := p.ready
		p.mu.Unlock()
		select {
		case <-ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// begin starts the pool for those who wait for it.
func (p *ownPool) begin() {
	pool, err := p.start()
	p.mu.Lock()
	p.pool, p.failed, p.tried = pool, err, time.Now()
	if err != nil {
		p.pool = nil // not an interface with nil in it
		p.past.Failures++
		p.log.Error("PHP of the site does not start", "site", p.site, "err", err)
	}
	close(p.ready)
	p.ready = nil
	p.sleepLocked()
	p.mu.Unlock()
}

func (p *ownPool) leave() {
	p.mu.Lock()
	p.users--
	p.sleepLocked()
	p.mu.Unlock()
}

// sleepLocked sets the timer when nobody is there.
func (p *ownPool) sleepLocked() {
	switch {
	case p.users > 0 || p.pool == nil || p.idle == 0 || p.closed:
	case p.timer == nil:
		p.timer = time.AfterFunc(p.idle, p.rest)
	default:
		p.timer.Reset(p.idle)
	}
}

// rest ends a pool that nobody uses.
func (p *ownPool) rest() {
	p.mu.Lock()
	pool := p.pool
	if p.users > 0 || pool == nil || p.closed {
		p.mu.Unlock()
		return
	}
	ctx, kill := context.WithCancel(context.Background())
	if p.pool = nil; p.resting == nil {
		p.resting = map[workers]context.CancelFunc{}
	}
	p.resting[pool] = kill
	p.running.Go(func() { // ends when its scripts have, or when Close has no more time
		defer kill()
		if err := p.end(ctx, pool); err != nil {
			p.log.Warn("killed the scripts that were still running", "site", p.site, "err", err)
		}
		p.log.Debug("workers of an idle site ended", "site", p.site)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.resting, pool)
	})
	p.mu.Unlock()
}

// killResting ends the scripts of pools that rest waits for: one that has answered
// may go on for as long as it likes.
func (p *ownPool) killResting() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, kill := range p.resting {
		kill()
	}
}

// end closes a pool and keeps its totals.
func (p *ownPool) end(ctx context.Context, pool workers) error {
	err := pool.Close(ctx)
	total, opcache := pool.Stats(), pool.OPcache().Totals()
	p.mu.Lock()
	addStats(&p.past, total)
	p.pastOPcache.Add(opcache)
	p.mu.Unlock()
	return err
}

// Close ends the pool as phpbridge.Pool.Close does, and for good.
func (p *ownPool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	defer context.AfterFunc(ctx, p.killResting)()
	p.running.Wait() // one that starts is in p.pool then
	p.mu.Lock()
	pool := p.pool
	p.pool = nil
	p.mu.Unlock()
	if pool == nil {
		return nil
	}
	return p.end(ctx, pool)
}

// Reload starts PHP anew if it runs.
func (p *ownPool) Reload(ctx context.Context) error {
	p.mu.Lock()
	pool := p.pool
	p.mu.Unlock()
	if pool == nil {
		return nil
	}
	err := pool.Reload(ctx)
	if errors.Is(err, phpbridge.ErrClosed) {
		return nil // it starts anew when it is needed
	}
	return err
}

// Stats returns the state of the pool and the totals of all that there were.
func (p *ownPool) Stats() phpbridge.Stats {
	p.mu.Lock()
	total, pool := p.past, p.pool
	p.mu.Unlock()
	if pool != nil {
		addStats(&total, pool.Stats())
	}
	return total
}

// Running returns what runs in the pool, if it is there.
func (p *ownPool) Running() []phpbridge.Running {
	p.mu.Lock()
	pool := p.pool
	p.mu.Unlock()
	if pool == nil {
		return nil
	}
	return pool.Running()
}

// Workers returns the workers of the pool, none when it is not there.
func (p *ownPool) Workers() phpbridge.Crew {
	p.mu.Lock()
	pool := p.pool
	p.mu.Unlock()
	if pool == nil {
		return phpbridge.Crew{}
	}
	return pool.Workers()
}

// addStats adds the state and the totals of a pool to a sum.
func addStats(sum *phpbridge.Stats, s phpbridge.Stats) {
	sum.Workers += s.Workers
	sum.Busy += s.Busy
	sum.Spawns += s.Spawns
	sum.Recycles += s.Recycles
	sum.Failures += s.Failures
	for reason := range sum.Reasons {
		sum.Reasons[reason] += s.Reasons[reason]
	}
	sum.Crashes += s.Crashes
	sum.Broken += s.Broken
	sum.Timeouts += s.Timeouts
	for class := range sum.Waiting {
		sum.Waiting[class] += s.Waiting[class]
		sum.Refused[class] += s.Refused[class]
	}
}
