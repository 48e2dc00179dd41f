package wheel

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A thing is called again and again until it is due.
type thing struct {
	place Place[*thing]
	at    int64 // when it is due

	mu     sync.Mutex // guards the following
	called []time.Duration
}

type clock struct {
	start time.Time
	*Wheel[*thing]
}

func newClock() *clock {
	c := &clock{start: time.Now()}
	c.Wheel = New(c.now, func(t *thing) *Place[*thing] { return &t.place }, c.call)
	return c
}

func (c *clock) now() int64 { return int64(time.Since(c.start)) }

func (c *clock) call(t *thing) {
	now := c.now()
	if now < t.at {
		c.Set(t, t.at)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.called = append(t.called, time.Duration(now))
}

func (t *thing) calls() []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.called
}

// Each is called once at its time, whether that is in this turn of the wheel or in a
// later one.
func TestAllAreCalledAtTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		defer c.Close()
		var all []*thing
		for _, at := range []time.Duration{
			0, Tick, 35 * time.Millisecond, time.Second, Slots * Tick, Slots*Tick + Tick, 10 * time.Minute, 10 * time.Minute,
		} {
			x := &thing{at: int64(at)}
			c.Set(x, x.at)
			all = append(all, x)
		}
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		for _, x := range all {
			at, calls := time.Duration(x.at), x.calls()
			if len(calls) != 1 || calls[0] < at || calls[0] > at+Tick {
				t.Errorf("what is due at %v was called at %v", at, calls)
			}
		}
	})
}

func TestRemovedAndMovedThings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		var all []*thing
		for i := range 3000 {
			x := &thing{at: int64(time.Duration(1+i%700) * 13 * time.Millisecond)}
			c.Set(x, x.at)
			c.Set(x, x.at+int64(time.Hour)) // later is no news
			all = append(all, x)
		}
		for _, x := range all[:1000] {
			c.Remove(x)
			c.Remove(x)
		}
		sooner := &thing{}
		c.Set(sooner, int64(time.Hour))
		c.Set(sooner, int64(time.Second))
		time.Sleep(701 * 13 * time.Millisecond)
		synctest.Wait()
		for i, x := range all {
			if got, want := len(x.calls()), map[bool]int{true: 1}[i >= 1000]; got != want {
				t.Fatalf("thing %d was called %d times, want %d", i, got, want)
			}
		}
		if len(sooner.calls()) != 1 {
			t.Errorf("what was moved to an earlier time was called at %v", sooner.calls())
		}
		if c.count != 0 {
			t.Errorf("%d are left in the wheel", c.count)
		}
		late := &thing{at: int64(time.Hour)}
		c.Set(late, late.at)
		c.Close()
		c.Set(sooner, 0)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if len(late.calls()) != 0 || len(sooner.calls()) != 1 {
			t.Error("a closed wheel calls")
		}
	})
}
