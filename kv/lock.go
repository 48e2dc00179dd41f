package kv

import (
	"context"
	"crypto/rand"
	"time"
)

// A Token is the proof that one holds a lock. It cannot be guessed.
type Token string

// A lock is a name that somebody holds. It is gone when nobody does.
type lock struct {
	name  string
	token Token
	queue []*lockWaiter // the longest wait is first
	timer *time.Timer   // ends the hold; nil: it has no TTL
}

// A lockWaiter waits for a lock.
type lockWaiter struct {
	ttl   time.Duration
	token chan Token // of one; gets it when it is its turn
}

// A locker holds the locks of a Store. Names of locks and keys have nothing to
// do with each other.
type locker struct {
	byName  map[string]*lock
	byToken map[Token]*lock
	count   int // locks and waiters
}

func newLocker() locker {
	return locker{byName: make(map[string]*lock), byToken: make(map[Token]*lock)}
}

// Lock waits its turn for a lock, first come, first served, and returns the
// token to unlock it with. It ends with ctx, and returns its error then. The lock
// frees itself after ttl; zero means never. With a ctx that is done already it
// takes a free lock and does not wait. A name is as long as a key may be.
func (s *Store) Lock(ctx context.Context, name []byte, ttl time.Duration) (Token, error) {
	if ttl < 0 {
		return "", ErrInvalidTTL
	}
	if len(name) > MaxKey {
		return "", ErrTooLong
	}
	s.lockMu.Lock()
	if s.locks.count >= s.opts.MaxLocks {
		s.lockMu.Unlock()
		return "", ErrTooManyLocks
	}
	s.locks.count++
	l := s.locks.byName[string(name)]
	if l == nil {
		l = &lock{name: string(name)}
		s.locks.byName[l.name] = l
		s.grantLocked(l, ttl)
		token := l.token
		s.lockMu.Unlock()
		return token, nil
	}
	w := &lockWaiter{ttl: ttl, token: make(chan Token, 1)}
	l.queue = append(l.queue, w)
	s.lockMu.Unlock()
	select {
	case token := <-w.token:
		return token, nil
	case <-ctx.Done():
	}
	return s.leaveQueue(l, w, ctx.Err())
}

// leaveQueue gives up a wait, unless its turn has just come.
func (s *Store) leaveQueue(l *lock, w *lockWaiter, why error) (Token, error) {
	s.lockMu.Lock()
	defer s.lockMu.Unlock()
	for i, other := range l.queue {
		if other == w {
			l.queue = append(l.queue[:i], l.queue[i+1:]...)
			s.locks.count--
			return "", why
		}
	}
	return <-w.token, nil
}

// Unlock frees a lock for the next who waits, and reports whether the token
// still held it.
func (s *Store) Unlock(token Token) bool {
	s.lockMu.Lock()
	defer s.lockMu.Unlock()
	l := s.locks.byToken[token]
	if l == nil {
		return false
	}
	s.releaseLocked(l)
	return true
}

// grantLocked gives a lock a new holder.
func (s *Store) grantLocked(l *lock, ttl time.Duration) {
	l.token = Token(rand.Text())
	s.locks.byToken[l.token] = l
	s.limitLocked(l, ttl)
}

// limitLocked lets the present hold end after ttl.
func (s *Store) limitLocked(l *lock, ttl time.Duration) {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if ttl == 0 {
		return
	}
	token := l.token
	var timer *time.Timer
	timer = time.AfterFunc(ttl, func() {
		s.lockMu.Lock()
		defer s.lockMu.Unlock()
		if l := s.locks.byToken[token]; l != nil && l.timer == timer {
			s.releaseLocked(l)
		}
	})
	l.timer = timer
}

// releaseLocked ends the present hold.
func (s *Store) releaseLocked(l *lock) {
	delete(s.locks.byToken, l.token)
	s.locks.count--
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if len(l.queue) == 0 {
		delete(s.locks.byName, l.name)
		return
	}
	next := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	s.grantLocked(l, next.ttl)
	next.token <- l.token
}
