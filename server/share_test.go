package server

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"ephpm/phpbridge"
)

// A heldPool holds every request until it is told to let one go.
type heldPool struct {
	entered chan phpbridge.Class
	release chan struct{}
}

func newHeldPool() *heldPool {
	return &heldPool{make(chan phpbridge.Class, 100), make(chan struct{})}
}

func (p *heldPool) Serve(ctx context.Context, _ http.ResponseWriter, r *phpbridge.Request) (phpbridge.Result, error) {
	p.entered <- r.Class
	<-p.release
	return phpbridge.Result{}, nil
}

func TestAShareIsNeverExceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newHeldPool()
		s := newShare(pool, 4, DefaultConfig().PHP)
		for _, class := range []phpbridge.Class{phpbridge.Page, phpbridge.Event} {
			for range 10 {
				go func() { _, _ = s.Serve(t.Context(), nil, &phpbridge.Request{Class: class}) }()
			}
			synctest.Wait()
			if want := map[phpbridge.Class]int{phpbridge.Page: 3, phpbridge.Event: 4}[class]; len(pool.entered) != want {
				t.Errorf("after the %ss %d requests run, want %d: pages leave one place to events", class, len(pool.entered), want)
			}
		}
		var st phpbridge.Stats
		s.addTo(&st)
		if st.Waiting != [2]int{7, 9} {
			t.Errorf("%v wait, want 7 pages and 9 events", st.Waiting)
		}
		for range 20 {
			pool.release <- struct{}{}
		}
		synctest.Wait()
		if len(pool.entered) != 20 {
			t.Errorf("%d requests ran in all, want 20", len(pool.entered))
		}
	})
}

func TestAShareOfOneWorkerServesBothClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newHeldPool()
		s := newShare(pool, 1, DefaultConfig().PHP)
		for _, class := range []phpbridge.Class{phpbridge.Page, phpbridge.Event} {
			go func() { _, _ = s.Serve(t.Context(), nil, &phpbridge.Request{Class: class}) }()
			synctest.Wait()
		}
		if len(pool.entered) != 1 {
			t.Errorf("%d requests run, want 1", len(pool.entered))
		}
		pool.release <- struct{}{}
		synctest.Wait()
		pool.release <- struct{}{}
		synctest.Wait()
		if len(pool.entered) != 2 {
			t.Errorf("%d requests ran, want 2", len(pool.entered))
		}
	})
}

func TestWhatWaitsForAShareIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newHeldPool()
		c := DefaultConfig().PHP
		c.WorkerBacklog = 1
		c.WorkerBacklogWait = Duration(time.Minute)
		s := newShare(pool, 1, c)
		serve := func(ctx context.Context, r *phpbridge.Request) chan error {
			done := make(chan error, 1)
			go func() { _, err := s.Serve(ctx, nil, r); done <- err }()
			synctest.Wait()
			return done
		}
		first := serve(t.Context(), &phpbridge.Request{})
		late := serve(t.Context(), &phpbridge.Request{})
		if err := <-serve(t.Context(), &phpbridge.Request{}); !errors.Is(err, phpbridge.ErrBusy) {
			t.Errorf("over the backlog: %v, want ErrBusy", err)
		}
		time.Sleep(time.Minute)
		if err := <-late; !errors.Is(err, phpbridge.ErrBusy) {
			t.Errorf("after the wait: %v, want ErrBusy", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := serve(ctx, &phpbridge.Request{})
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("whose client left: %v, want context.Canceled", err)
		}
		patient := serve(t.Context(), &phpbridge.Request{Class: phpbridge.Event, Wait: time.Hour})
		time.Sleep(59 * time.Minute)
		pool.release <- struct{}{}
		pool.release <- struct{}{}
		if err := <-patient; err != nil {
			t.Errorf("an event that waits as long as it takes: %v", err)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
		var st phpbridge.Stats
		if s.addTo(&st); st.Refused[phpbridge.Page] != 2 || st.Waiting != [2]int{} {
			t.Errorf("refused %v and waiting %v, want 2 pages and none", st.Refused, st.Waiting)
		}
	})
}

func TestASharesPagesAreShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newHeldPool()
		c := DefaultConfig().PHP
		c.OverloadPolicy = OverloadShed
		s := newShare(pool, 1, c)
		go func() { _, _ = s.Serve(t.Context(), nil, &phpbridge.Request{}) }()
		synctest.Wait()
		start := time.Now()
		if _, err := s.Serve(t.Context(), nil, &phpbridge.Request{}); !errors.Is(err, phpbridge.ErrBusy) || time.Since(start) != 0 {
			t.Errorf("a page over the share: %v after %v, want ErrBusy at once", err, time.Since(start))
		}
		close(pool.release)
	})
}
