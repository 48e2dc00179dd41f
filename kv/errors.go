package kv

import "errors"

// Errors that the methods of a Store return. A call that returns one of them
// has changed nothing.
var (
	// ErrFull means that what was to be stored does not fit in
	// Options.MemoryLimit and that the eviction policy frees no room for it.
	ErrFull = errors.New("kv: out of memory")
	// ErrTooLong means a key over MaxKey or a value over MaxValue.
	ErrTooLong = errors.New("kv: key or value is too long")
	// ErrWrongType means that the key holds a hash where a string is needed, or
	// the other way round.
	ErrWrongType = errors.New("kv: key holds another type")
	// ErrNotInteger means that a counter's value is no decimal integer of 64
	// bits.
	ErrNotInteger = errors.New("kv: value is not an integer")
	// ErrNotFloat means that the value is no decimal number.
	ErrNotFloat = errors.New("kv: value is not a valid float")
	// ErrNoNumber means that a sum would be infinite or none at all.
	ErrNoNumber = errors.New("kv: increment would produce NaN or Infinity")
	// ErrOverflow means that a counter would leave the range of 64 bits.
	ErrOverflow = errors.New("kv: increment or decrement would overflow")
	// ErrInvalidTTL means a TTL below zero, or one where none may be.
	ErrInvalidTTL = errors.New("kv: invalid expire time")
	// ErrTooManyLocks means that Options.MaxLocks are held or waited for.
	ErrTooManyLocks = errors.New("kv: too many locks")
	// ErrReplyTooLong means that the answer would be longer than the caller takes.
	ErrReplyTooLong = errors.New("kv: the answer is too long")
	// ErrTooManyWaiters means that Options.MaxWaiters wait for a change.
	ErrTooManyWaiters = errors.New("kv: too many wait for a change")
)
