package kv

import (
	"context"
	"time"
)

// A watch is a key for whose change somebody waits.
type watch struct {
	waiters int
	changed chan struct{} // closed at the next change, and replaced
}

// Current returns a string and its version at once. A key that is not there has
// version 0 and a nil value. Every change to a key gives it a version that no
// key of this Store had before.
func (s *Store) Current(key []byte) (version uint64, value []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.currentLocked(key)
}

func (s *Store) currentLocked(key []byte) (version uint64, value []byte, err error) {
	e, found := s.findLocked(key)
	if !found {
		return 0, nil, nil
	}
	if s.kindOf(e) != kindString {
		return 0, nil, ErrWrongType
	}
	value, err = s.appendStringLocked([]byte{}, e)
	return s.versionOf(e), value, err
}

// Wait returns a string and its version as Current does, as soon as the version
// is another than last. It ends with ctx, and returns its error then.
func (s *Store) Wait(ctx context.Context, key []byte, last uint64) (version uint64, value []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		version, value, err = s.currentLocked(key)
		if err != nil || version != last {
			return version, value, err
		}
		if err := s.sleepLocked(ctx, key); err != nil {
			return 0, nil, err
		}
	}
}

// sleepLocked lets go of the lock until a key may have changed.
func (s *Store) sleepLocked(ctx context.Context, key []byte) error {
	if s.waiters >= s.opts.MaxWaiters {
		return ErrTooManyWaiters
	}
	w := s.watches[string(key)]
	if w == nil {
		w = &watch{changed: make(chan struct{})}
		s.watches[string(key)] = w
	}
	w.waiters++
	s.waiters++
	changed := w.changed
	var expired <-chan time.Time
	if r, found := s.findLocked(key); found && s.expiryOf(r) != 0 {
		timer := time.NewTimer(time.Duration(s.expiryOf(r)-s.now()) * time.Millisecond)
		defer timer.Stop()
		expired = timer.C
	}
	s.mu.Unlock()
	var err error
	select {
	case <-changed:
	case <-expired:
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	s.waiters--
	if w.waiters--; w.waiters == 0 {
		delete(s.watches, string(key))
	}
	return err
}

// wakeLocked wakes whoever waits for a key.
func (s *Store) wakeLocked(key []byte) {
	if len(s.watches) == 0 {
		return
	}
	if w := s.watches[string(key)]; w != nil {
		close(w.changed)
		w.changed = make(chan struct{})
	}
}

func (s *Store) wakeAllLocked() {
	for _, w := range s.watches {
		close(w.changed)
		w.changed = make(chan struct{})
	}
}
