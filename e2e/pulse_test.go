package e2e

import (
	"testing"
	"time"
)

// A pulse measures for how long a client paused that must not: on a busy machine
// nobody can promise that. The zero value has not begun.
type pulse struct {
	last    time.Time
	longest time.Duration
}

// beat says that the client is awake.
func (p *pulse) beat() {
	now := time.Now()
	if !p.last.IsZero() {
		p.longest = max(p.longest, now.Sub(p.last))
	}
	p.last = now
}

// rest says that the client may pause until the next beat.
func (p *pulse) rest() {
	p.beat()
	p.last = time.Time{}
}

// retryWhenPaused tests what holds for clients that never pause for as long as a
// limit. An attempt that fails shows nothing if its client, or the server that it
// heard from at each beat, was held up for half of that; then there is another.
func retryWhenPaused(t testing.TB, limit time.Duration, attempt func(p *pulse) error) {
	t.Helper()
	for deadline := time.Now().Add(3 * patience); ; {
		var p pulse
		err := attempt(&p)
		if err == nil {
			return
		}
		p.beat()
		if p.longest < limit/2 || time.Now().After(deadline) {
			t.Errorf("%v (the longest pause was %v)", err, p.longest)
			return
		}
		t.Logf("once more, because of a pause of %v: %v", p.longest, err)
	}
}
