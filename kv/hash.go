package kv

import (
	"math/bits"
	"strconv"
)

// HSet sets fields of a hash, which is made if it is not there, all or none. It
// returns how many of them are new. The TTL stays.
func (s *Store) HSet(key []byte, pairs ...Pair) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found, err := s.findHashLocked(key)
	if err != nil || len(pairs) == 0 {
		return 0, err
	}
	return s.hsetLocked(key, e, found, pairs)
}

// HSetNX sets a field that is not there. It reports whether it set it.
func (s *Store) HSetNX(key, field, value []byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found, err := s.findHashLocked(key)
	if err != nil {
		return false, err
	}
	if found {
		if _, ok := s.fieldsLocked(e).get(field, s.fieldHash(field)); ok {
			return false, nil
		}
	}
	n, err := s.hsetLocked(key, e, found, []Pair{{field, value}})
	return n == 1, err
}

// HGet returns a copy of a field's value, and whether there is one.
func (s *Store) HGet(key, field []byte) (value []byte, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found, err := s.readHashLocked(key)
	if !found {
		return nil, false, err
	}
	have, ok := s.fieldsLocked(e).get(field, s.fieldHash(field))
	if !ok {
		return nil, false, nil
	}
	return append([]byte{}, have...), true, nil
}

// HStrLen returns the length of a field's value in bytes, and whether there is one.
func (s *Store) HStrLen(key, field []byte) (n int, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found, err := s.readHashLocked(key)
	if !found {
		return 0, false, err
	}
	have, ok := s.fieldsLocked(e).get(field, s.fieldHash(field))
	return len(have), ok, nil
}

// HMGet returns copies of many fields' values, nil where there is none. When they
// have more than limit bytes together the error is ErrReplyTooLong.
func (s *Store) HMGet(limit int, key []byte, fields ...[]byte) ([][]byte, error) {
	values := make([][]byte, len(fields))
	total := 0
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found, err := s.readHashLocked(key)
	if !found {
		return values, err
	}
	f := s.fieldsLocked(e)
	for i, field := range fields {
		if have, ok := f.get(field, s.fieldHash(field)); ok {
			if total += len(have); total > limit {
				return nil, ErrReplyTooLong
			}
			values[i] = append([]byte{}, have...)
		}
	}
	return values, nil
}

// HDel deletes fields and returns how many of them were there. A hash without
// fields is no key.
func (s *Store) HDel(key []byte, fields ...[]byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found, err := s.findHashLocked(key)
	if !found {
		return 0, err
	}
	n := 0
	s.editLocked(key, e, func() {
		f := s.fieldsLocked(e)
		for _, field := range fields {
			if f.remove(field, s.fieldHash(field)) {
				n++
			}
		}
	})
	switch f := s.fieldsLocked(e); {
	case f.count() == 0:
		s.deleteLocked(key)
	case len(f) > 1024 && fieldsSize(f.count(), f.live()) < len(f)/4:
		_ = s.rebuildLocked(key, e, nil) // it needs less; without room it stays as it is
	}
	return n, nil
}

// HGetAll returns copies of all fields and their values.
func (s *Store) HGetAll(key []byte) ([]Pair, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found, err := s.readHashLocked(key)
	if !found {
		return nil, err
	}
	f := s.fieldsLocked(e)
	pairs := make([]Pair, 0, f.count())
	texts := make([]byte, 0, f.live()) // one allocation for all of them
	keep := func(text []byte) []byte {
		texts = append(texts, text...)
		return texts[len(texts)-len(text) : len(texts) : len(texts)]
	}
	f.all(func(field, value []byte) bool {
		pairs = append(pairs, Pair{keep(field), keep(value)})
		return true
	})
	return pairs, nil
}

// HLen returns how many fields a hash has, zero if it is not there.
func (s *Store) HLen(key []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found, err := s.readHashLocked(key)
	if !found {
		return 0, err
	}
	return s.fieldsLocked(e).count(), nil
}

// HIncrBy adds n to the decimal integer of a field, which counts as 0 if it is
// not there, and returns the sum.
func (s *Store) HIncrBy(key, field []byte, n int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found, err := s.findHashLocked(key)
	if err != nil {
		return 0, err
	}
	var have int64
	if found {
		if text, ok := s.fieldsLocked(e).get(field, s.fieldHash(field)); ok {
			if have, ok = parseInt(text); !ok {
				return 0, ErrNotInteger
			}
		}
	}
	sum, ok := add(have, n)
	if !ok {
		return 0, ErrOverflow
	}
	text := strconv.AppendInt(nil, sum, 10)
	_, err = s.hsetLocked(key, e, found, []Pair{{field, text}})
	return sum, err
}

// hscanLeast is how many fields HScan returns at least, if there are as many.
const hscanLeast = 128

// HScan returns some fields of a hash and the cursor for more, zero at the end.
// A scan that starts with cursor zero and goes on until it gets zero returns
// every field at least once that is there all the time. limit is a hint.
func (s *Store) HScan(key []byte, cursor uint64, limit int) (pairs []Pair, next uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found, err := s.readHashLocked(key)
	if !found {
		return nil, 0, err
	}
	f := s.fieldsLocked(e)
	add := func(field, value []byte) bool {
		pairs = append(pairs, Pair{append([]byte{}, field...), append([]byte{}, value...)})
		return true
	}
	slots := f.slots()
	if slots == 0 {
		f.all(add)
		return pairs, 0, nil
	}
	for at := uint32(cursor); ; {
		f.home(int(at)&(slots-1), s.fieldHash, add)
		if at = nextHome(at, uint32(slots-1)); at == 0 || len(pairs) >= max(limit, hscanLeast) {
			return pairs, uint64(at), nil
		}
	}
}

// nextHome returns the slot behind one, in the order of its bits read backwards:
// what begins at the slots so far still does when an index of another size, also
// a power of two, has more of these slots or has them folded. As SCAN of Redis.
func nextHome(slot, mask uint32) uint32 {
	return bits.Reverse32(bits.Reverse32(slot|^mask) + 1)
}

func (s *Store) findHashLocked(key []byte) (ref, bool, error) {
	e, found := s.findLocked(key)
	if found && s.kindOf(e) != kindHash {
		return 0, false, ErrWrongType
	}
	return e, found, nil
}

func (s *Store) readHashLocked(key []byte) (ref, bool, error) {
	e, found := s.readLocked(key)
	if found && s.kindOf(e) != kindHash {
		return 0, false, ErrWrongType
	}
	return e, found, nil
}

// hsetLocked sets fields of the hash e, if it is found.
func (s *Store) hsetLocked(key []byte, e ref, found bool, pairs []Pair) (int, error) {
	more := 0
	for _, p := range pairs {
		if len(p.Key) > MaxKey || len(p.Value) > MaxValue {
			return 0, ErrTooLong
		}
		more += recordSize(len(p.Key), len(p.Value))
	}
	if found && s.fieldsLocked(e).fits(len(pairs), more) {
		n := 0
		s.editLocked(key, e, func() { n = s.setFields(s.fieldsLocked(e), pairs) })
		return n, nil
	}
	if !found {
		n := 0
		err := s.replaceLocked(key, kindHash, []int{fieldsSize(len(pairs), more)}, 0, func(room, _ []byte) {
			n = s.setFields(newFields(room, len(pairs)), pairs)
		})
		return n, err
	}
	before := s.fieldsLocked(e).count()
	if err := s.rebuildLocked(key, e, pairs); err != nil {
		return 0, err
	}
	e, _ = s.findLocked(key)
	return s.fieldsLocked(e).count() - before, nil
}

func (s *Store) setFields(f fields, pairs []Pair) int {
	n := 0
	for _, p := range pairs {
		if f.set(p.Key, p.Value, s.fieldHash(p.Key)) {
			n++
		}
	}
	return n
}

// rebuildLocked puts a hash into new room, without dead records, with pairs, and
// if it can be half as much again for what comes.
func (s *Store) rebuildLocked(key []byte, e ref, pairs []Pair) error {
	old := s.fieldsLocked(e)
	bytes, count := old.live(), old.count()+len(pairs)
	for _, p := range pairs {
		bytes += recordSize(len(p.Key), len(p.Value))
	}
	more := 0
	if len(pairs) > 0 {
		more = count / 2
	}
	lengths := []int{fieldsSize(count+more, bytes+bytes/2), fieldsSize(count, bytes)}
	if more == 0 {
		lengths = lengths[1:]
	}
	return s.replaceLocked(key, kindHash, lengths, s.expiryOf(e), func(room, old []byte) {
		n := count
		if len(room) > lengths[len(lengths)-1] {
			n += more
		}
		f := newFields(room, n)
		fields(old).copyTo(f, s.fieldHash)
		s.setFields(f, pairs)
	})
}
