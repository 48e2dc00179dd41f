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
		{0.5, time.Second, 1},
		{1, 350 * time.Millisecond, 1},
		{0.5, 50 * time.Millisecond, 1}, // not for long: it starts again
		{1, 350 * time.Millisecond, 1},
		{1, 50 * time.Millisecond, 2},
		{1.2, time.Second, 2},
		{2, 400 * time.Millisecond, 4},
		{4, 400 * time.Millisecond, 6},
		{6, time.Second, 6},
		{0.1, time.Second, 6},
		{0.1, time.Second, 5},
		{0.1, time.Second, 5},
		{4, time.Second, 5}, // not calm: it starts again
		{0.1, time.Second, 5},
		{0.1, time.Second, 4},
	} {
		if p.look(step.inUse, 0, step.d); p.now != step.want {
			t.Errorf("step %d: %d processors, want %d", i, p.now, step.want)
		}
	}
}

func TestProcsLeaveOthersTheirs(t *testing.T) {
	p := &procs{most: 2, now: 1, limit: func(int) {}}
	for range 100 { // PHP and the front want more than there is
		p.look(1, 1, 50*time.Millisecond)
	}
	if p.now != 1 {
		t.Errorf("%d processors while others use one of two, want 1", p.now)
	}
	for range 100 {
		p.look(1, 0.1, 50*time.Millisecond)
	}
	if p.now != 2 {
		t.Errorf("%d processors while others use none, want 2", p.now)
	}
	for range 100 {
		p.look(1.1, 0.9, 50*time.Millisecond)
	}
	if p.now != 1 {
		t.Errorf("%d processors when others came back, want 1", p.now)
	}
}

func TestBusyTime(t *testing.T) {
	const stat = "cpu  100 20 30 4000 500 6 7 8 90 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n"
	if got, want := busyTime([]byte(stat)), 1710*time.Millisecond; got != want {
		t.Errorf("busy for %v, want %v", got, want)
	}
	if got := busyTime([]byte("nonsense x")); got != 0 {
		t.Errorf("nonsense is %v", got)
	}
}
