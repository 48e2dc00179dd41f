package server

import (
	"context"
	"time"

	"ephpm/phpbridge"
)

// Sessions of session.save_handler = ephpm are keys of the site's store. A session
// that a request has open is locked: requests of the same session run one after the
// other, in the order in which they came, and each sees what the one before wrote.
const (
	sessionPrefix = "session:"
	openSession   = "session" // what the request has to end
)

// session answers the session functions.
func (h *kvHost) session(ctx context.Context, c *phpbridge.Call) error {
	key := []byte(sessionPrefix + c.String(0))
	switch c.Func() {
	case phpbridge.SessionOpen:
		return h.openSession(ctx, c, key)
	case phpbridge.SessionWrite:
		ttl, err := sessionTTL(c.Int(2))
		if err != nil {
			return err
		}
		return returnBool(c, true, h.store.Set(key, c.Bytes(1), ttl))
	case phpbridge.SessionTouch:
		return h.touchSession(c, key)
	case phpbridge.SessionClose:
		c.EndNow(openSession)
		c.ReturnBool(true)
	case phpbridge.SessionDestroy:
		h.store.Del(key)
		c.ReturnBool(true)
	case phpbridge.SessionExists:
		c.ReturnBool(h.store.Exists(key))
	}
	return nil
}

// openSession waits for the session's lock, as long as the script may run, and
// returns its data. The lock is the request's until it closes the session or ends.
func (h *kvHost) openSession(ctx context.Context, c *phpbridge.Call, key []byte) error {
	c.EndNow(openSession)
	token, err := h.store.Lock(ctx, key, 0) // names of locks are not those of keys
	if err != nil {
		return err
	}
	if !c.AtEnd(openSession, func() { h.store.Unlock(token) }) {
		h.store.Unlock(token)
		return context.Canceled
	}
	data, _, err := h.store.Get(key)
	if err == nil && len(data) > maxText {
		return returnBool(c, false, nil) // PHP warns
	}
	if err == nil {
		c.ReturnString(data)
	}
	return err
}

// touchSession keeps a session whose data did not change.
func (h *kvHost) touchSession(c *phpbridge.Call, key []byte) error {
	ttl, err := sessionTTL(c.Int(2))
	if err != nil {
		return err
	}
	kept, err := h.store.Expire(key, ttl)
	if err == nil && !kept {
		return returnBool(c, true, h.store.Set(key, c.Bytes(1), ttl)) // it was evicted, or is new
	}
	return returnBool(c, true, err)
}

// sessionTTL is session.gc_maxlifetime. PHP takes 0 and less for "at once".
func sessionTTL(n int64) (time.Duration, error) { return ttlSeconds(max(1, n)) }
