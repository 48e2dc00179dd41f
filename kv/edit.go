package kv

import (
	"bytes"
	"slices"
)

// What changes a part of a value writes it where it lies, or into the room that
// it has got in the Store's memory: nothing is built first that may not fit.

// Append adds to the end of a string, which is empty if it is not there, and
// returns its new length. The TTL stays.
func (s *Store) Append(key, tail []byte) (int, error) {
	return s.splice(key, func(have int) int { return have }, tail)
}

// SetRange overwrites a string from an offset on, with zero bytes before it
// where the string is shorter, and returns its new length. The TTL stays.
func (s *Store) SetRange(key []byte, offset int, part []byte) (int, error) {
	switch {
	case len(part) == 0:
		return s.Len(key)
	case offset < 0:
		return 0, ErrTooLong
	}
	return s.splice(key, func(int) int { return offset }, part)
}

// splice writes a part of a string, which grows as it needs, at the offset that
// place returns for its present length.
func (s *Store) splice(key []byte, place func(have int) int, part []byte) (int, error) {
	for tries := 3; ; tries-- {
		n, done, err := s.trySplice(key, place, part, tries == 0)
		if done || err != nil {
			return n, err
		}
	}
}

// trySplice is splice, unless the string is changed by others while it is
// decompressed and compressed again: that is done while nobody waits, or when it
// must be, under the lock. Then it is always done.
func (s *Store) trySplice(key []byte, place func(have int) int, part []byte, must bool) (length int, done bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, found := s.findLocked(key)
	have := 0
	if found {
		if have, err = s.stringLenLocked(r); err != nil {
			return 0, false, err
		}
	}
	at := place(have)
	if at > MaxValue-len(part) {
		return 0, false, ErrTooLong
	}
	length = max(have, at+len(part))
	if !s.table.holds(entrySize(len(key), length)) { // however small it can be made
		s.stats.Refused++
		return 0, false, ErrFull
	}
	write := func(value []byte) {
		clear(value[min(have, at):at])
		copy(value[at:], part)
	}
	if s.codec != nil && (length >= s.codec.least || found && s.table.mem.coding(r) != codingPlain) {
		done, err = s.spliceCodedLocked(key, r, length, write, must)
		return length, done, err
	}
	if found && s.fitsInto(r, len(key), length) {
		s.editLocked(key, r, func() {
			s.table.mem.setValueLen(r, length)
			write(s.table.mem.value(r))
		})
		return length, true, nil
	}
	expireAt := int64(0)
	if found {
		expireAt = s.expiryOf(r)
	}
	err = s.replaceLocked(key, kindString, []int{length}, expireAt, func(value, old []byte) {
		copy(value, old)
		write(value)
	})
	return length, true, err
}

// spliceCodedLocked is trySplice for a string that is or may be compressed; r is
// 0 if it is not there. Unless it must be done, it lets go of the lock meanwhile.
func (s *Store) spliceCodedLocked(key []byte, r ref, length int, write func(value []byte), must bool) (done bool, err error) {
	var old packed
	version := uint64(0)
	if r != 0 {
		old, version = s.storedLocked(r), s.versionOf(r)
		old.data = slices.Clone(old.data)
	}
	var p packed
	work := func() {
		value := make([]byte, 0, length)
		if value, err = s.codec.unpack(value, old); err == nil {
			value = append(value, make([]byte, length-len(value))...)
			write(value)
			p = s.pack(value)
		}
	}
	if must {
		work()
	} else {
		s.mu.Unlock()
		work()
		s.mu.Lock()
	}
	if err != nil {
		return false, err
	}
	r, found := s.findLocked(key)
	now, expireAt := uint64(0), int64(0)
	if found {
		now, expireAt = s.versionOf(r), s.expiryOf(r)
	}
	if now != version && !must {
		return false, nil
	}
	return true, s.putLocked(key, p, expireAt)
}

// equalLocked reports whether a string is this one.
func (s *Store) equalLocked(r ref, want []byte) (bool, error) {
	n, err := s.stringLenLocked(r)
	if err != nil || n != len(want) {
		return false, err
	}
	if stored := s.storedLocked(r); stored.coding == codingPlain {
		return bytes.Equal(stored.data, want), nil
	}
	have, err := s.appendStringLocked(nil, r)
	return bytes.Equal(have, want), err
}

// Range returns a copy of a part of a string, empty if there is none. Both
// offsets, in bytes, are part of it; those below zero count from the end.
func (s *Store) Range(key []byte, from, to int64) ([]byte, error) {
	s.mu.Lock()
	r, ok := s.readLocked(key)
	if !ok {
		s.mu.Unlock()
		return nil, nil
	}
	n, err := s.stringLenLocked(r)
	from, to = clip(from, to, int64(n))
	if err != nil || from >= to {
		s.mu.Unlock()
		return nil, err
	}
	stored := s.storedLocked(r)
	if stored.coding == codingPlain {
		defer s.mu.Unlock()
		return slices.Clone(stored.data[from:to]), nil
	}
	stored.data = slices.Clone(stored.data)
	s.mu.Unlock()
	// Nobody waits for the decompression.
	value, err := s.codec.unpack(nil, stored)
	if err != nil {
		return nil, err
	}
	return value[from:to], nil
}

// clip turns the offsets of a range into those of a slice of a string of n bytes.
func clip(from, to, n int64) (int64, int64) {
	if from < 0 {
		from = max(from+n, 0)
	}
	if to < 0 {
		to = max(to+n, 0)
	}
	return from, min(to, n-1) + 1
}
