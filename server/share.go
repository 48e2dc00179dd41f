package server

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"ephpm/phpbridge"
)

// A share is how much of the workers one site may have at once, so that it cannot
// starve those that it shares them with. Neither pages nor events may have all of
// the share, unless it is one worker.
type share struct {
	php   runner
	all   chan struct{}    // a place for each worker
	class [2]chan struct{} // of which pages and events may have so many

	backlog int              // how many of a class may wait
	wait    [2]time.Duration // and how long, unless the request says
	waiting [2]atomic.Int64
	refused [2]atomic.Uint64
}

func newShare(php runner, workers int, c PHPConfig) *share {
	wait := time.Duration(c.WorkerBacklogWait)
	s := &share{
		php:     php,
		all:     make(chan struct{}, workers),
		backlog: c.WorkerBacklog,
		wait:    [2]time.Duration{phpbridge.Page: wait, phpbridge.Event: wait},
	}
	if c.OverloadPolicy == OverloadShed {
		s.wait[phpbridge.Page] = time.Duration(c.ShedAfter)
	}
	most := max(1, workers-max(1, workers/4))
	for class := range s.class {
		s.class[class] = make(chan struct{}, most)
	}
	return s
}

// Serve implements runner.
func (s *share) Serve(ctx context.Context, w http.ResponseWriter, r *phpbridge.Request) (phpbridge.Result, error) {
	start := time.Now()
	leave, err := s.enter(ctx, r)
	if err != nil {
		return phpbridge.Result{Queued: time.Since(start)}, err
	}
	defer leave()
	waited := time.Since(start)
	result, err := s.php.Serve(ctx, w, r)
	result.Queued += waited
	return result, err
}

// enter takes a place of the class and one of all, if they are free in time.
func (s *share) enter(ctx context.Context, r *phpbridge.Request) (leave func(), err error) {
	class := s.class[r.Class]
	leave = func() { <-s.all; <-class }
	select {
	case class <- struct{}{}:
		select {
		case s.all <- struct{}{}:
			return leave, nil
		default:
			<-class
		}
	default:
	}
	defer s.waiting[r.Class].Add(-1)
	if s.waiting[r.Class].Add(1) > int64(s.backlog) {
		return nil, s.refuse(r.Class)
	}
	wait := s.wait[r.Class]
	if r.Class == phpbridge.Event && r.Wait > 0 {
		wait = r.Wait
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	if err := s.take(ctx, r.Class, class, late.C); err != nil {
		return nil, err
	}
	if err := s.take(ctx, r.Class, s.all, late.C); err != nil {
		<-class
		return nil, err
	}
	return leave, nil
}

// take waits for a place until late fires.
func (s *share) take(ctx context.Context, c phpbridge.Class, places chan<- struct{}, late <-chan time.Time) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-late:
		return s.refuse(c)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *share) refuse(c phpbridge.Class) error {
	s.refused[c].Add(1)
	return phpbridge.ErrBusy
}

// addTo adds what waited and was refused in front of the pool.
func (s *share) addTo(st *phpbridge.Stats) {
	for c := range s.class {
		st.Waiting[c] += int(s.waiting[c].Load())
		st.Refused[c] += s.refused[c].Load()
	}
}
