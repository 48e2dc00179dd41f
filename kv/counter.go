package kv

import "strconv"

// Incr adds one to a counter. See IncrBy.
func (s *Store) Incr(key []byte) (int64, error) { return s.IncrBy(key, 1) }

// Decr takes one from a counter. See IncrBy.
func (s *Store) Decr(key []byte) (int64, error) { return s.IncrBy(key, -1) }

// IncrBy adds n to the decimal integer that a string holds, and returns the sum.
// A key that is not there counts as 0. The TTL stays.
func (s *Store) IncrBy(key []byte, n int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var have, expireAt int64
	if e, found := s.findLocked(key); found {
		if s.kindOf(e) != kindString {
			return 0, ErrWrongType
		}
		text := s.table.mem.value(e)
		if s.table.mem.coding(e) != codingPlain {
			var err error
			if text, err = s.appendStringLocked(nil, e); err != nil {
				return 0, err
			}
		}
		var ok bool
		if have, ok = parseInt(text); !ok {
			return 0, ErrNotInteger
		}
		expireAt = s.expiryOf(e)
	}
	sum, ok := add(have, n)
	if !ok {
		return 0, ErrOverflow
	}
	var room [20]byte
	return sum, s.putLocked(key, plain(strconv.AppendInt(room[:0], sum, 10)), expireAt)
}

// parseInt reads an integer as Redis does: no sign but a minus, no blanks, no
// leading zeros.
func parseInt(text []byte) (int64, bool) {
	if len(text) == 0 || len(text) > 20 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, false
	}
	var room [20]byte
	return n, string(strconv.AppendInt(room[:0], n, 10)) == string(text)
}

// add returns a+b, and whether it has 64 bits.
func add(a, b int64) (int64, bool) {
	sum := a + b
	return sum, (sum > a) == (b > 0)
}
