package server

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestMemoryIsGivenBackWhenACrowdHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		freed := 0
		c := newCalm()
		c.free = func() { freed++ }
		for range crowd - 1 {
			c.move()
		}
		time.Sleep(time.Hour)
		if freed != 0 {
			t.Errorf("freed %d times for a few", freed)
		}
		for range 10 { // as long as some come or go, it is not calm
			c.move()
			time.Sleep(calmAfter - 1)
		}
		if freed != 0 {
			t.Errorf("freed %d times in the middle", freed)
		}
		time.Sleep(calmAfter)
		if freed != 1 {
			t.Errorf("freed %d times, want once", freed)
		}
	})
}
