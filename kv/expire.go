package kv

import (
	"math"
	"time"
)

// expiry returns the Unix time in milliseconds for a TTL or, without one, for
// the time that is given; zero means never.
func (s *Store) expiry(ttl time.Duration, at int64) (int64, error) {
	switch {
	case ttl < 0 || at < 0:
		return 0, ErrInvalidTTL
	case ttl > 0:
		return s.now() + ttlMillis(ttl), nil
	}
	return at, nil
}

// ttlMillis rounds up: a TTL that was asked for is never over at once.
func ttlMillis(ttl time.Duration) int64 {
	return int64((ttl-1)/time.Millisecond) + 1
}

// now is the Unix time in milliseconds.
func (s *Store) now() int64 { return time.Now().UnixMilli() }

// Expire gives a key a TTL and reports whether there is such a key. A ttl that
// is not above zero is ErrInvalidTTL.
func (s *Store) Expire(key []byte, ttl time.Duration) (bool, error) {
	if ttl <= 0 {
		return false, ErrInvalidTTL
	}
	return s.ExpireAt(key, s.now()+ttlMillis(ttl), ExpireAlways), nil
}

// An ExpireCondition says when ExpireAt changes a key's TTL.
type ExpireCondition int

// The conditions. A key without a TTL counts as one that lives for ever.
const (
	ExpireAlways    ExpireCondition = iota
	ExpireIfNone                    // NX: it has none
	ExpireIfAny                     // XX: it has one
	ExpireIfGreater                 // GT: the new one is later
	ExpireIfLess                    // LT: the new one is earlier
)

// ExpireAt lets a key expire at a Unix time in milliseconds, which deletes it if
// that has passed. It reports whether it did.
func (s *Store) ExpireAt(key []byte, at int64, c ExpireCondition) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found := s.findLocked(key)
	if !found {
		return false
	}
	had := s.expiryOf(e)
	until := had
	if until == 0 {
		until = math.MaxInt64
	}
	switch {
	case c == ExpireIfNone && had != 0, c == ExpireIfAny && had == 0,
		c == ExpireIfGreater && at <= until, c == ExpireIfLess && at >= until:
		return false
	}
	if at <= s.now() {
		s.deleteLocked(key)
		return true
	}
	s.setExpiryLocked(key, e, at)
	return true
}

// Persist takes a key's TTL away and reports whether it had one.
func (s *Store) Persist(key []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found := s.findLocked(key)
	if !found || s.expiryOf(e) == 0 {
		return false
	}
	s.setExpiryLocked(key, e, 0)
	return true
}

// TTL returns how long a key still lives, zero if it never expires, and whether
// it is there.
func (s *Store) TTL(key []byte) (ttl time.Duration, ok bool) {
	at, ok := s.Expiry(key)
	if !ok || at == 0 {
		return 0, ok
	}
	return time.Duration(max(1, at-s.now())) * time.Millisecond, true
}

// Expiry returns the Unix time in milliseconds at which a key expires, zero if
// it never does, and whether it is there.
func (s *Store) Expiry(key []byte) (at int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found := s.findLocked(key)
	if !found {
		return 0, false
	}
	return s.expiryOf(e), true
}
