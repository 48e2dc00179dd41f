package kv

import (
	"math"
	"math/rand/v2"
	"time"
)

// samples is how many keys eviction compares to drop one.
const samples = 5

// enoughBuckets is where eviction is content with fewer samples: most buckets may
// be empty.
const enoughBuckets = 1024

// allocLocked finds memory for an entry of a key, at the price of others where
// the policy allows it. 0 if there is none.
func (s *Store) allocLocked(key []byte, hash uint32, size int) ref {
	t := &s.table
	if !t.holds(size) {
		return 0
	}
	s.protected, s.protects = key, true
	defer func() { s.protected, s.protects = nil, false }()
	s.makeWayLocked()
	for cleanings := len(t.segs) + 16; ; {
		credit := 0
		if old := t.lookup(key, hash); old != 0 && old.at() >= t.largeAt {
			credit = t.mem.size(old) // goes as soon as the new one is there
		}
		if r := t.alloc(size, credit); r != 0 {
			return r
		}
		// Less than that costs more than it brings.
		if i, gain := t.sparsest(); gain >= t.segSize/16 && cleanings > 0 {
			cleanings--
			t.clean(i)
			continue
		}
		if !s.sweepAllLocked() && !s.evictLocked() {
			return 0
		}
	}
}

// makeWayLocked drops a few keys as long as memory is nearly full, so that no
// single write has to drop many.
func (s *Store) makeWayLocked() {
	t := &s.table
	reserve := t.limit / 16
	if s.opts.Policy == NoEviction || t.committed+reserve < t.limit || t.dead >= reserve {
		return
	}
	for range 2 {
		s.evictLocked() // or there is nothing
	}
}

// evictLocked drops one key by the policy and reports whether it did.
func (s *Store) evictLocked() bool {
	t, m := &s.table, s.table.mem
	volatile := s.opts.Policy == VolatileLRU
	if s.opts.Policy == NoEviction || volatile && t.volatile == 0 {
		return false
	}
	var best ref
	worst := int64(math.MinInt64)
	now := s.now()
	for seen, n := 0, uint32(0); n <= t.buckets && seen < samples && (seen == 0 || n < enoughBuckets); n++ {
		if !s.turnHand(volatile) || volatile && n > samples {
			break // each bucket had one, if it was not the one that is protected
		}
		for r := m.bucket(s.hand); r != 0; r = m.next(r) {
			at := m.expiry(r)
			if volatile && at == 0 || s.isProtected(r) {
				continue
			}
			if at != 0 && at <= now {
				s.expireLocked(r)
				return true
			}
			seen++
			if score := s.score(r, now); score > worst {
				best, worst = r, score
			}
		}
	}
	if best == 0 {
		return false
	}
	s.stats.Evictions++
	s.dropLocked(best)
	return true
}

// turnHand moves the hand to the next bucket, or to the next that has keys with a
// TTL. False if there is none.
func (s *Store) turnHand(volatile bool) (ok bool) {
	if volatile {
		s.hand, ok = s.table.expiring.after(s.hand)
		return ok
	}
	if s.hand++; s.hand >= s.table.buckets {
		s.hand = 0
	}
	return true
}

// isProtected reports whether an entry must stay, even if it has just expired: its
// key is being stored.
func (s *Store) isProtected(r ref) bool {
	return s.protects && string(s.table.mem.key(r)) == string(s.protected)
}

// dropLocked removes an entry and tells those who wait.
func (s *Store) dropLocked(r ref) {
	s.wakeLocked(s.table.mem.key(r)) // they see nothing before we are through
	s.table.unlink(r)
}

// score is higher the better it is to drop an entry.
func (s *Store) score(r ref, now int64) int64 {
	switch s.opts.Policy {
	case AllKeysLFU:
		return -int64(decayed(s.table.mem.use(r), minutes(now)))
	case AllKeysRandom:
		return rand.Int64N(math.MaxInt64)
	}
	return int64(s.clock() - s.table.mem.use(r)) // may wrap, so the difference
}

// use notes the first use of an entry, touch another one.
//
// The LRU policies keep the time in reads: what counts is the order. LFU keeps,
// as Redis does, a counter of 8 bits that grows with the logarithm of the uses
// and loses one a minute, and above it 16 bits of minutes.
func (s *Store) use(r ref) {
	switch s.opts.Policy {
	case AllKeysLFU:
		s.table.mem.setUse(r, minutes(s.now())<<8|lfuStart)
	case AllKeysLRU, VolatileLRU:
		s.reads++
		s.table.mem.setUse(r, s.clock())
	default:
		s.table.mem.setUse(r, 0)
	}
}

func (s *Store) touch(r ref) {
	switch s.opts.Policy {
	case AllKeysLFU:
		now := minutes(s.now())
		s.table.mem.setUse(r, now<<8|grown(decayed(s.table.mem.use(r), now)))
	case AllKeysLRU, VolatileLRU:
		s.reads++
		s.table.mem.setUse(r, s.clock())
	}
}

// clock counts in steps of some reads, so that it goes round in years.
func (s *Store) clock() uint32 { return uint32(s.reads >> 4) }

const (
	lfuStart = 5  // a new key is worth so many uses, or none would get old
	lfuScale = 10 // 255 is reached after about a million uses
)

func minutes(millis int64) uint32 {
	return uint32(millis/int64(time.Minute/time.Millisecond)) & 0xffff
}

// decayed returns the counter of an LFU use as it is now.
func decayed(use, now uint32) uint32 {
	count, passed := use&0xff, (now-use>>8)&0xffff
	return count - min(count, passed)
}

// grown returns the counter after one more use.
func grown(count uint32) uint32 {
	if count == 255 {
		return count
	}
	base := float64(count) - lfuStart
	if rand.Float64() < 1/(max(base, 0)*lfuScale+1) {
		count++
	}
	return count
}
