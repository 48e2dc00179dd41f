package kv

import (
	"math"
	"strconv"
)

// IncrBy adds n to the decimal integer that a string holds, and returns the sum.
// A key that is not there counts as 0. The TTL stays.
func (s *Store) IncrBy(key []byte, n int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var have, expireAt int64
	if e, found := s.findLocked(key); found {
		text, err := s.numberLocked(e)
		if err != nil {
			return 0, err
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

// maxNumber is how long a number may be written, in bytes. Redis has the same.
const maxNumber = 5 << 10

// numberLocked returns a string that may be a number, nil for one that is too long
// for it. It may lie in the Store's memory.
func (s *Store) numberLocked(r ref) ([]byte, error) {
	n, err := s.stringLenLocked(r)
	switch stored := s.storedLocked(r); {
	case err != nil || n > maxNumber:
		return nil, err
	case stored.coding == codingPlain:
		return stored.data, nil
	}
	return s.appendStringLocked(nil, r)
}

// IncrByFloat adds to the decimal number that a string holds, and returns the sum
// as it is stored. A key that is not there, and an empty string, count as 0. The
// TTL stays. The error may be ErrNotFloat or ErrNoNumber.
func (s *Store) IncrByFloat(key []byte, by float64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum, expireAt := by, int64(0)
	if r, found := s.findLocked(key); found {
		text, err := s.numberLocked(r)
		if err != nil {
			return nil, err
		}
		have, ok := parseFloat(text)
		if !ok && (text == nil || len(text) > 0) {
			return nil, ErrNotFloat
		}
		sum, expireAt = sum+have, s.expiryOf(r)
	}
	if math.IsInf(sum, 0) || math.IsNaN(sum) {
		return nil, ErrNoNumber
	}
	text := strconv.AppendFloat(nil, sum, 'f', -1, 64)
	return text, s.putLocked(key, plain(text), expireAt)
}

func parseFloat(text []byte) (float64, bool) {
	for _, b := range text {
		if b == '_' || b == 'x' || b == 'X' || b == 'p' || b == 'P' { // Go's own notations
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil && !math.IsNaN(f)
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
