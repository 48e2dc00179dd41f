package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"ephpm/phpbridge"
)

// A shedder runs pages under overload_policy "shed": it gives the pool no more of
// them than it has workers, and refuses a page that finds all of them taken and
// none free in time.
type shedder struct {
	php     runner
	turns   chan struct{} // a place for each worker
	backlog int           // how many may wait for a turn
	after   time.Duration // how long; 0: not at all

	waiting atomic.Int64
	refused atomic.Uint64              // no turn came
	shed    [shedReasons]atomic.Uint64 // all that were answered with errShed
}

// A shedReason says why a page was shed, as the label "reason".
type shedReason uint8

const (
	shedBusy    shedReason = iota // no worker was free, or came free when it had a turn
	shedLate                      // none came free within shed_after_ms
	shedBacklog                   // too many waited already
	shedReasons
)

var shedReasonNames = [shedReasons]string{"busy", "late", "backlog"}

// errShed is phpbridge.ErrBusy by policy.
var errShed = fmt.Errorf("shed: %w", phpbridge.ErrBusy)

// forkPatience is how long a page waits for a worker when it has a turn: the pool
// may have to fork, and events may hold workers while pages have but their reserve.
const forkPatience = time.Second

func newShedder(php runner, workers int, c PHPConfig) *shedder {
	return &shedder{
		php:     php,
		turns:   make(chan struct{}, workers),
		backlog: c.WorkerBacklog,
		after:   time.Duration(c.ShedAfter),
	}
}

// Serve implements runner.
func (s *shedder) Serve(ctx context.Context, w http.ResponseWriter, r *phpbridge.Request) (phpbridge.Result, error) {
	start := time.Now()
	if err := s.turn(ctx); err != nil {
		return phpbridge.Result{Queued: time.Since(start)}, err
	}
	defer func() { <-s.turns }()
	waited := time.Since(start)
	r.Wait = max(s.after-waited, forkPatience)
	result, err := s.php.Serve(ctx, w, r)
	result.Queued += waited
	if errors.Is(err, phpbridge.ErrBusy) {
		s.shed[shedBusy].Add(1)
		err = errShed
	}
	return result, err
}

// turn takes a place, if one is free in time.
func (s *shedder) turn(ctx context.Context) error {
	select {
	case s.turns <- struct{}{}:
		return nil
	default:
	}
	if s.after == 0 {
		return s.refuse(shedBusy)
	}
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > int64(s.backlog) {
		return s.refuse(shedBacklog)
	}
	late := time.NewTimer(s.after)
	defer late.Stop()
	select {
	case s.turns <- struct{}{}:
		return nil
	case <-late.C:
		return s.refuse(shedLate)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *shedder) refuse(reason shedReason) error {
	s.refused.Add(1)
	s.shed[reason].Add(1)
	return errShed
}

// addTo adds what waited and was refused in front of the pool. A nil *shedder adds
// nothing.
func (s *shedder) addTo(st *phpbridge.Stats) (shed [shedReasons]uint64) {
	if s == nil {
		return shed
	}
	for reason := range s.shed {
		shed[reason] = s.shed[reason].Load()
	}
	st.Waiting[phpbridge.Page] += int(s.waiting.Load())
	st.Refused[phpbridge.Page] += s.refused.Load()
	return shed
}
