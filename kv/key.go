package kv

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
