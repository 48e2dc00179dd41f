package kv

import "time"

// Get returns a copy of a string, and whether there is one.
func (s *Store) Get(key []byte) (value []byte, ok bool, err error) {
	return s.AppendValue(nil, key)
}

// AppendValue appends a string to dst, and reports whether there is one.
func (s *Store) AppendValue(dst, key []byte) (value []byte, ok bool, err error) {
	if dst == nil {
		dst = []byte{} // an empty string is there
	}
	s.mu.Lock()
	r, ok := s.readLocked(key)
	if !ok {
		s.mu.Unlock()
		return dst, false, nil
	}
	if s.kindOf(r) != kindString {
		s.mu.Unlock()
		return dst, false, ErrWrongType
	}
	stored := s.storedLocked(r)
	if stored.coding == codingPlain {
		dst = append(dst, stored.data...)
		s.mu.Unlock()
		return dst, true, nil
	}
	stored.data = append([]byte(nil), stored.data...)
	s.mu.Unlock()
	// Nobody waits for the decompression.
	value, err = s.codec.unpack(dst, stored)
	return value, err == nil, err
}

// Len returns the length of a string in bytes, zero if there is none.
func (s *Store) Len(key []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.readLocked(key)
	if !ok {
		return 0, nil
	}
	return s.stringLenLocked(e)
}

// MGet returns the strings of many keys as of one moment, nil where there is
// none. A hash among them is ErrWrongType. When the strings have more than limit
// bytes together the error is ErrReplyTooLong: a caller may name one key many times.
func (s *Store) MGet(limit int, keys [][]byte) ([][]byte, error) {
	values := make([][]byte, len(keys))
	total := 0
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, key := range keys {
		e, ok := s.readLocked(key)
		if !ok {
			continue
		}
		if s.kindOf(e) != kindString {
			return nil, ErrWrongType
		}
		var err error
		if values[i], err = s.appendStringLocked([]byte{}, e); err != nil {
			return nil, err
		}
		if total += len(values[i]); total > limit {
			return nil, ErrReplyTooLong
		}
	}
	return values, nil
}

// Set stores a string under a key, in place of whatever was there, hash or TTL
// included. A ttl of zero means that it never expires. If it does not fit, what
// was there stays and the error is ErrFull.
func (s *Store) Set(key, value []byte, ttl time.Duration) error {
	_, err := s.SetWith(key, value, SetOptions{TTL: ttl})
	return err
}

// SetNX is Set for a key that is not there. It reports whether it stored the
// value.
func (s *Store) SetNX(key, value []byte, ttl time.Duration) (bool, error) {
	r, err := s.SetWith(key, value, SetOptions{TTL: ttl, IfAbsent: true})
	return r.Stored, err
}

// SetOptions are the conditions of SetWith.
type SetOptions struct {
	// TTL is how long the value is kept. Zero means until ExpireAt.
	TTL time.Duration
	// ExpireAt is the Unix time in milliseconds at which the value expires.
	// Zero means never. One that has passed stores nothing and deletes what is
	// there.
	ExpireAt int64
	// KeepTTL leaves the key's TTL as it is.
	KeepTTL bool
	// IfAbsent stores only under a key that is not there, IfPresent only under
	// one that is.
	IfAbsent, IfPresent bool
	// WantOld asks for the value before. If that is a hash nothing is stored.
	WantOld bool
	// MaxOld is the longest value before, in bytes, that WantOld can bring; with a
	// longer one nothing is stored. Zero means any.
	MaxOld int
}

// SetResult is what SetWith did.
type SetResult struct {
	Stored bool   // false if IfAbsent or IfPresent kept it from it
	HadOld bool   // a string was there; only with WantOld
	Old    []byte // that string
}

// SetWith stores a string on conditions.
func (s *Store) SetWith(key, value []byte, o SetOptions) (SetResult, error) {
	expireAt, err := s.expiry(o.TTL, o.ExpireAt)
	if err != nil {
		return SetResult{}, err
	}
	packed := s.pack(value)
	var r SetResult
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found := s.findLocked(key)
	if found && o.WantOld {
		if s.kindOf(e) != kindString {
			return SetResult{}, ErrWrongType
		}
		if o.MaxOld > 0 && s.storedLocked(e).length() > o.MaxOld {
			return SetResult{}, ErrReplyTooLong
		}
		if r.Old, err = s.appendStringLocked([]byte{}, e); err != nil {
			return SetResult{}, err
		}
		r.HadOld = true
	}
	if found && o.IfAbsent || !found && o.IfPresent {
		return r, nil
	}
	if o.KeepTTL && found {
		expireAt = s.expiryOf(e)
	}
	if expireAt != 0 && expireAt <= s.now() {
		s.deleteLocked(key)
		r.Stored = true
		return r, nil
	}
	if err := s.putLocked(key, packed, expireAt); err != nil {
		return SetResult{}, err
	}
	r.Stored = true
	return r, nil
}

// A Pair is a key and its value.
type Pair struct{ Key, Value []byte }

// MSet stores many strings, all or none. A key that is there twice gets its last
// value.
func (s *Store) MSet(pairs []Pair, ttl time.Duration) error {
	_, err := s.mset(pairs, ttl, false)
	return err
}

// MSetNX is MSet if none of the keys is there. It reports whether it stored
// them.
func (s *Store) MSetNX(pairs []Pair, ttl time.Duration) (bool, error) {
	return s.mset(pairs, ttl, true)
}

func (s *Store) mset(pairs []Pair, ttl time.Duration, ifAbsent bool) (bool, error) {
	expireAt, err := s.expiry(ttl, 0)
	if err != nil {
		return false, err
	}
	packed := make([]packed, len(pairs))
	for i, p := range pairs {
		packed[i] = s.pack(p.Value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ifAbsent {
		for _, p := range pairs {
			if _, found := s.findLocked(p.Key); found {
				return false, nil
			}
		}
	}
	return true, s.putAllLocked(pairs, packed, expireAt)
}

// GetSet stores a string that never expires and returns the one before, and
// whether there was one.
func (s *Store) GetSet(key, value []byte) (old []byte, ok bool, err error) {
	r, err := s.SetWith(key, value, SetOptions{WantOld: true})
	return r.Old, r.HadOld, err
}

// GetDel deletes a string and returns it, and whether there was one.
func (s *Store) GetDel(key []byte) (value []byte, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.readLocked(key)
	if !ok {
		return nil, false, nil
	}
	if s.kindOf(e) != kindString {
		return nil, false, ErrWrongType
	}
	if value, err = s.appendStringLocked([]byte{}, e); err != nil {
		return nil, false, err
	}
	s.deleteLocked(key)
	return value, true, nil
}

// GetExpire returns a copy of a string and lets it expire at a Unix time in
// milliseconds, which deletes it if that has passed; zero is never.
func (s *Store) GetExpire(key []byte, at int64) (value []byte, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.readLocked(key)
	if !ok {
		return nil, false, nil
	}
	if s.kindOf(r) != kindString {
		return nil, false, ErrWrongType
	}
	if value, err = s.appendStringLocked([]byte{}, r); err != nil {
		return nil, false, err
	}
	if at != 0 && at <= s.now() {
		s.deleteLocked(key)
	} else if at != s.expiryOf(r) {
		s.setExpiryLocked(key, r, at)
	}
	return value, true, nil
}

// CAS, compare and set, stores a string if the one that is there equals old; a
// nil old means that none may be there. It reports whether it stored it.
func (s *Store) CAS(key, old, value []byte, ttl time.Duration) (bool, error) {
	expireAt, err := s.expiry(ttl, 0)
	if err != nil {
		return false, err
	}
	packed := s.pack(value)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found := s.findLocked(key)
	if found != (old != nil) {
		return false, nil
	}
	if found {
		if same, err := s.equalLocked(e, old); !same {
			return false, err
		}
	}
	return true, s.putLocked(key, packed, expireAt)
}
