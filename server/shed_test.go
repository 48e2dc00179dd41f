package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"ephpm/phpbridge"
)

// busyPool runs scripts that take a second.
func busyPool() *fakePool {
	return &fakePool{run: func(context.Context, http.ResponseWriter, *phpbridge.Request) error {
		time.Sleep(time.Second)
		return nil
	}}
}

// serveMany runs n pages at once and returns how many were shed, and when the last
// of these was told.
func serveMany(s *shedder, n int) (shed int, last time.Duration) {
	start := time.Now()
	told := make(chan time.Duration, n)
	for range n {
		go func() { // ends within the test's bubble
			_, err := s.Serve(context.Background(), httptest.NewRecorder(), &phpbridge.Request{})
			if err == errShed {
				told <- time.Since(start)
				return
			}
			told <- -1
		}()
	}
	for range n {
		if d := <-told; d >= 0 {
			shed++
			last = max(last, d)
		}
	}
	return shed, last
}

func TestPagesAreShedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShedder(busyPool(), 4, PHPConfig{WorkerBacklog: 100})
		if shed, last := serveMany(s, 10); shed != 6 || last != 0 {
			t.Errorf("%d of 10 were shed, the last after %v; want 6, at once", shed, last)
		}
		if shed, _ := serveMany(s, 4); shed != 0 {
			t.Errorf("%d of 4 were shed afterwards, want none", shed)
		}
		var st phpbridge.Stats
		if n := s.addTo(&st); n != [shedReasons]uint64{shedBusy: 6} || st.Refused[phpbridge.Page] != 6 || st.Waiting[phpbridge.Page] != 0 {
			t.Errorf("counted %v, %+v; want 6 refused", n, st)
		}
	})
}

func TestPagesAreShedAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShedder(busyPool(), 4, PHPConfig{WorkerBacklog: 100, ShedAfter: Millis(1500 * time.Millisecond)})
		if shed, last := serveMany(s, 10); shed != 2 || last != 1500*time.Millisecond || s.shed[shedLate].Load() != 2 {
			t.Errorf("%d of 10 were shed, the last after %v; want 2 after 1.5s", shed, last)
		}
		s = newShedder(busyPool(), 4, PHPConfig{WorkerBacklog: 1, ShedAfter: Millis(5 * time.Second)})
		if shed, last := serveMany(s, 10); shed != 5 || last != 0 || s.shed[shedBacklog].Load() != 5 {
			t.Errorf("with a backlog of 1, %d of 10 were shed, the last after %v; want 5 at once", shed, last)
		}
	})
}

func TestPageWithATurnStillFindsNoWorker(t *testing.T) {
	var waits []time.Duration
	pool := &fakePool{run: func(_ context.Context, _ http.ResponseWriter, r *phpbridge.Request) error {
		waits = append(waits, r.Wait)
		return phpbridge.ErrBusy
	}}
	s := newTest(t, files(t, "index.php"), pool, func(c *Config) {
		c.PHP.OverloadPolicy, c.PHP.ShedAfter = OverloadShed, Millis(time.Minute)
	})
	if r := get(s, "/"); r.StatusCode != 503 || r.Header.Get("Retry-After") != "1" {
		t.Errorf("%d %v, want 503 with Retry-After", r.StatusCode, r.Header)
	}
	if n := s.shedder.shed[shedBusy].Load(); n != 1 || len(waits) != 1 || waits[0] <= forkPatience || waits[0] > time.Minute {
		t.Errorf("%d shed, waits of %v; want one of a minute", n, waits)
	}
}

func TestClientThatLeavesIsNotShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShedder(busyPool(), 0, PHPConfig{WorkerBacklog: 1, ShedAfter: Millis(time.Minute)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Serve(ctx, nil, &phpbridge.Request{}); err != context.DeadlineExceeded || s.shed[shedLate].Load() != 0 {
			t.Errorf("%v, %d shed; want the client's own error and none", err, s.shed[shedLate].Load())
		}
	})
}
