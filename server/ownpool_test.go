package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ephpm/phpbridge"
)

// newOwnPool returns a pool whose starts take a second, and what counts them.
func newOwnPool(idle time.Duration, pool *fakePool, starts *int) *ownPool {
	return &ownPool{site: "a.example", idle: idle, log: quiet, start: func() (workers, error) {
		time.Sleep(time.Second)
		*starts++
		if pool == nil {
			return nil, errors.New("broken")
		}
		return pool, nil
	}}
}

func TestAnOwnPoolStartsOnceForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		p := newOwnPool(0, &fakePool{}, &starts)
		done := make(chan error)
		for range 10 {
			go func() {
				_, err := p.Serve(t.Context(), discardResponse{}, &phpbridge.Request{})
				done <- err
			}()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if _, err := p.Serve(ctx, discardResponse{}, &phpbridge.Request{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a client that leaves while PHP starts: %v", err)
		}
		for range 10 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if starts != 1 {
			t.Errorf("PHP started %d times, want once", starts)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := p.Serve(t.Context(), discardResponse{}, &phpbridge.Request{}); !errors.Is(err, phpbridge.ErrClosed) {
			t.Errorf("after Close: %v, want ErrClosed", err)
		}
	})
}

func TestAnOwnPoolEndsWhenIdleAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		pool := &fakePool{}
		p := newOwnPool(time.Minute, pool, &starts)
		serve := func() {
			t.Helper()
			if _, err := p.Serve(t.Context(), discardResponse{}, &phpbridge.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		serve()
		time.Sleep(59 * time.Second)
		serve() // starts the minute anew
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if pool.isClosed() {
			t.Error("the pool ended although it was used within the minute")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !pool.isClosed() {
			t.Error("the pool did not end after a minute without a request")
		}
		serve()
		if starts != 2 {
			t.Errorf("PHP started %d times, want 2", starts)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// stubbornPool has a script that does not end by itself.
type stubbornPool struct{ fakePool }

func (p *stubbornPool) Close(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAnOwnPoolThatRestsIsKilledInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := &stubbornPool{}
		p := &ownPool{site: "a.example", idle: time.Minute, log: quiet, start: func() (workers, error) { return pool, nil }}
		if _, err := p.Serve(t.Context(), discardResponse{}, &phpbridge.Request{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute) // it rests
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		start := time.Now()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("Close took %v, want the 30s that it was given", took)
		}
	})
}

func TestABrokenOwnPoolIsNotStartedForEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		p := newOwnPool(0, nil, &starts)
		for range 5 {
			if _, err := p.Serve(t.Context(), discardResponse{}, &phpbridge.Request{}); err == nil || err.Error() != "broken" {
				t.Fatalf("Serve = %v, want why it is broken", err)
			}
		}
		if starts != 1 {
			t.Errorf("PHP was started %d times within a second, want once", starts)
		}
		time.Sleep(startAgain)
		_, _ = p.Serve(t.Context(), discardResponse{}, &phpbridge.Request{}) // fails as before
		if starts != 2 {
			t.Errorf("PHP was started %d times, want again after %v", starts, startAgain)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
