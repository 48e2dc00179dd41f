package server

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemoryIsGivenBackWhenACrowdHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var freed atomic.Int32
		c := newCalm()
		c.free = func() { freed.Add(1) }
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		for range crowd - 1 {
			c.move()
		}
		pass(time.Hour)
		if freed := freed.Load(); freed != 0 {
			t.Errorf("freed %d times for a few", freed)
		}
		for range 10 { // as long as some come or go, it is not calm
			c.move()
			pass(calmAfter - 1)
		}
		if freed := freed.Load(); freed != 0 {
			t.Errorf("freed %d times in the middle", freed)
		}
		pass(calmAfter)
		if freed := freed.Load(); freed != 1 {
			t.Errorf("freed %d times, want once", freed)
		}
	})
}
