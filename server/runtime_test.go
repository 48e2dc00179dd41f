package server

import (
	"testing"
	"time"
)

func TestProcsFollowTheLoad(t *testing.T) {
	p := &procs{most: 6, now: 1, limit: func(int) {}}
	for i, step := range []struct {
		inUse float64
		d     time.Duration
		want  int
	}{
		{0.5, 50 * time.Millisecond, 1},
		{0.9, 50 * time.Millisecond, 2},
		{1.2, 50 * time.Millisecond, 2},
		{1.9, 50 * time.Millisecond, 4},
		{4, 50 * time.Millisecond, 6},
		{6, 50 * time.Millisecond, 6},
		{0.1, time.Second, 6},
		{0.1, time.Second, 5},
		{0.1, time.Second, 5},
		{3, time.Second, 5}, // not calm: it starts again
		{0.1, time.Second, 5},
		{0.1, time.Second, 4},
	} {
		if p.look(step.inUse, step.d); p.now != step.want {
			t.Errorf("step %d: %d processors, want %d", i, p.now, step.want)
		}
	}
}
