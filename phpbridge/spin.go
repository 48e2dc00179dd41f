package phpbridge

import (
	"sync/atomic"
	"time"
)

// How long the front looks out for the first word of a script before it sleeps,
// and how it decides whether to.
const (
	spinMax   = 60 * time.Microsecond
	spinLoads = 100 // between two looks at the clock
	spinBest  = 8   // hits that can be saved up
	spinMiss  = 2   // that a miss costs
	spinPause = 64  // requests without, after too many misses

	// lonelyAfter is after how many requests that came one by one the next is taken
	// for the only one. Among many clients a request often finds the pool empty, and
	// to look out for its answer would keep the others waiting.
	lonelyAfter = 32
)

// A spinner decides whether the front looks out for what a script says, in place
// of going to sleep: being woken takes longer than a small script. It does so only
// for a request that has the pool to itself, and only while it is worth it.
type spinner struct {
	off    bool         // there is no processor to look with
	score  atomic.Int32 // hits less what misses cost; negative: not now
	paused atomic.Int32 // requests since it became negative
}

// await looks at the ring of a job for a moment. True if there is news.
func (s *spinner) await(j *job) bool {
	if !s.worthIt() {
		return false
	}
	start := time.Now()
	for {
		for range spinLoads {
			if atomic.LoadUint64(u64(&j.c.out_tail)) != j.head {
				s.hit()
				return true
			}
		}
		if time.Since(start) > spinMax {
			s.miss()
			return false
		}
	}
}

func (s *spinner) worthIt() bool {
	if s.off {
		return false
	}
	if s.score.Load() >= 0 {
		return true
	}
	if s.paused.Add(1) < spinPause {
		return false
	}
	s.paused.Store(0)
	s.score.Store(0) // one more miss, and there is another pause
	return true
}

func (s *spinner) hit() {
	if s.score.Load() < spinBest {
		s.score.Add(1)
	}
}

func (s *spinner) miss() { s.score.Add(-spinMiss) }
