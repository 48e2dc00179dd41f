package kv

import (
	"math/rand/v2"
	"time"
)

// A Type is what a key holds.
type Type string

// The types, by the names that Redis has for them.
const (
	TypeNone   Type = "none"
	TypeString Type = "string"
	TypeHash   Type = "hash"
)

// Type returns what a key holds, TypeNone if it is not there.
func (s *Store) Type(key []byte) Type {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found := s.findLocked(key)
	switch {
	case !found:
		return TypeNone
	case s.kindOf(e) == kindHash:
		return TypeHash
	}
	return TypeString
}

// Del deletes keys and returns how many of them were there.
func (s *Store) Del(keys ...[]byte) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, key := range keys {
		if s.deleteLocked(key) {
			n++
		}
	}
	return n
}

// Exists reports whether a key is there.
func (s *Store) Exists(key []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.readLocked(key)
	return found
}

// Rename gives what a key holds, with its TTL, another key, in place of whatever
// that held. It reports whether the key was there; ifAbsent renames nothing if
// the other is, and moved is false.
func (s *Store) Rename(from, to []byte, ifAbsent bool) (moved, found bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found := s.findLocked(from)
	if !found {
		return false, false, nil
	}
	if _, taken := s.findLocked(to); taken && ifAbsent {
		return false, true, nil
	}
	if string(from) == string(to) {
		return true, true, nil
	}
	if err := s.renameLocked(from, e, to); err != nil {
		return false, true, err
	}
	return true, true, nil
}

// Flush deletes every key. Locks stay.
func (s *Store) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushLocked()
}

// Keys returns how many keys there are; those that have expired and were not
// yet swept count.
func (s *Store) Keys() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keysLocked()
}

// RandomKey returns one of the keys, and whether there is any. Keys that share a
// bucket are less likely than others.
func (s *Store) RandomKey() (key []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, now := s.table.mem, s.now()
	start := rand.Uint32N(s.table.buckets)
	for i := range s.table.buckets {
		for r := m.bucket((start + i) % s.table.buckets); r != 0; r = m.next(r) {
			if at := m.expiry(r); at == 0 || at > now {
				return append([]byte{}, m.key(r)...), true
			}
		}
	}
	return nil, false
}

// Version returns the version of a key of any type, 0 if it is not there. See
// Current.
func (s *Store) Version(key []byte) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, found := s.findLocked(key); found {
		return s.versionOf(r)
	}
	return 0
}

// DelIf deletes a key if it holds this string, and reports whether it did.
func (s *Store) DelIf(key, value []byte) (bool, error) {
	return s.doIf(key, value, func(ref) { s.deleteLocked(key) })
}

// ExpireIf gives a key a TTL if it holds this string, and reports whether it
// did.
func (s *Store) ExpireIf(key, value []byte, ttl time.Duration) (bool, error) {
	if ttl <= 0 {
		return false, ErrInvalidTTL
	}
	return s.doIf(key, value, func(r ref) { s.setExpiryLocked(key, r, s.now()+ttlMillis(ttl)) })
}

// PersistIf takes the TTL of a key away if it holds this string, and reports whether
// it holds it.
func (s *Store) PersistIf(key, value []byte) (bool, error) {
	return s.doIf(key, value, func(r ref) { s.setExpiryLocked(key, r, 0) })
}

// TakeIf stores a string under a key that is not there or holds it, with this TTL,
// and reports whether it did.
func (s *Store) TakeIf(key, value []byte, ttl time.Duration) (bool, error) {
	if ttl <= 0 {
		return false, ErrInvalidTTL
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.now() + ttlMillis(ttl)
	r, found := s.findLocked(key)
	if !found {
		return true, s.putLocked(key, plain(value), at)
	}
	same, err := s.equalLocked(r, value)
	if same {
		s.setExpiryLocked(key, r, at)
	}
	return same, err
}

// setFirstAbsent stores a string until a Unix time in milliseconds under the first
// of some keys that holds none, and returns its index, -1 if all hold one.
func (s *Store) setFirstAbsent(keys [][]byte, value []byte, at int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, key := range keys {
		if r, found := s.findLocked(key); !found || s.kindOf(r) != kindString {
			return i, s.putLocked(key, plain(value), at)
		}
	}
	return -1, nil
}

func (s *Store) doIf(key, value []byte, do func(r ref)) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, found := s.findLocked(key)
	if !found {
		return false, nil
	}
	if same, err := s.equalLocked(r, value); !same {
		return false, err
	}
	do(r)
	return true, nil
}
