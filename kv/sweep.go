package kv

import "time"

const (
	sweepEvery = 100 * time.Millisecond
	// sweepRound is how long it takes to look at every key with a TTL once.
	sweepRound = 5 * time.Second
	// sweepBatch is how many buckets are looked at under the lock at a time.
	sweepBatch = 256
)

// sweep drops the keys that have expired among the next part of all keys. Where
// it finds many it goes on.
func (s *Store) sweep() {
	left := 0
	for first := true; first || left > 0; first = false {
		s.mu.Lock()
		if s.table.volatile == 0 {
			s.mu.Unlock()
			return
		}
		if first {
			left = max(sweepBatch, s.table.volatile/int(sweepRound/sweepEvery))
		}
		if dropped := s.sweepBucketsLocked(sweepBatch); dropped < sweepBatch/4 {
			left -= sweepBatch
		}
		s.mu.Unlock()
	}
}

// sweepBucketsLocked drops what has expired in the next n of the buckets that have
// keys with a TTL.
func (s *Store) sweepBucketsLocked(n int) (dropped int) {
	m, now := s.table.mem, s.now()
	for range min(n, s.table.volatile) {
		var any bool
		if s.broom, any = s.table.expiring.after(s.broom); !any {
			break
		}
		for r := m.bucket(s.broom); r != 0; {
			next := m.next(r)
			if at := m.expiry(r); at != 0 && at <= now && !s.isProtected(r) {
				s.expireLocked(r)
				dropped++
			}
			r = next
		}
	}
	return dropped
}

// expireLocked drops an entry that has expired.
func (s *Store) expireLocked(r ref) {
	s.stats.Expired++
	s.dropLocked(r)
}

// sweepAllLocked drops everything that has expired, because something else does
// not fit, and reports whether there was any. It does so once a second at most.
func (s *Store) sweepAllLocked() bool {
	now := s.now()
	if s.table.volatile == 0 || now-s.sweptAt < 1000 {
		return false
	}
	s.sweptAt = now
	return s.sweepBucketsLocked(s.table.volatile) > 0
}

// tidy gives memory back to the system while much of it is dead.
func (s *Store) tidy() {
	for range 16 {
		s.mu.Lock()
		t := &s.table
		i, gain := t.sparsest()
		worth := t.dead > t.committed/4 && gain >= t.segSize/4 && t.room(0)
		if worth {
			t.clean(i)
		}
		s.mu.Unlock()
		if !worth {
			return
		}
	}
}
