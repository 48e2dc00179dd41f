package kv

import (
	"strconv"
	"time"
)

// The scripts of Symfony's lock store keep, under the name of a lock, who holds
// it until when, and under writeHolder until when it is held alone. Redis has a
// sorted set for that; here it is a hash with Unix times in milliseconds.
const writeHolder = "__write__"

// holders are those of one lock.
type holders map[string]int64

// changeHolders reads the holders of a lock, lets do change them, and writes them back
// if do says so. It reports what do did. A key that holds something else is
// nobody's lock.
func (s *Store) changeHolders(key []byte, do func(h holders, now int64) bool) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, now := holders{}, s.now()
	r, found := s.findLocked(key)
	if found && s.kindOf(r) != kindHash {
		return false, nil
	}
	if found {
		ours := true
		s.fieldsLocked(r).all(func(token, until []byte) bool {
			h[string(token)], ours = parseInt(until)
			return ours
		})
		if !ours {
			return false, nil
		}
	}
	if !do(h, now) {
		return false, nil
	}
	if len(h) == 0 {
		s.deleteLocked(key)
		return true, nil
	}
	var pairs []Pair
	last := int64(0)
	for token, until := range h {
		pairs = append(pairs, Pair{[]byte(token), strconv.AppendInt(nil, until, 10)})
		last = max(last, until)
	}
	f := newFields(make([]byte, fieldsSizeOf(pairs)), len(pairs))
	s.setFields(f, pairs)
	return true, s.putHashLocked(key, f, last)
}

func fieldsSizeOf(pairs []Pair) int {
	bytes := 0
	for _, p := range pairs {
		bytes += recordSize(len(p.Key), len(p.Value))
	}
	return fieldsSize(len(pairs), bytes)
}

// expire drops the holders whose time is over.
func (h holders) expire(now int64) {
	for token, until := range h {
		if until <= now {
			delete(h, token)
		}
	}
}

// save takes the lock for one alone, or keeps it for longer. Who shares it with
// others gets no more.
func (h holders) save(token string, until, now int64) bool {
	h.expire(now)
	if _, mine := h[token]; mine {
		if _, alone := h[writeHolder]; !alone && len(h) > 1 {
			return false
		}
	} else if len(h) > 0 {
		return false
	}
	h[token], h[writeHolder] = until, until
	return true
}

// saveRead takes the lock together with others.
func (h holders) saveRead(token string, until, now int64) bool {
	h.expire(now)
	_, mine := h[token]
	if _, alone := h[writeHolder]; alone && !mine {
		return false
	}
	h[token] = until
	delete(h, writeHolder)
	return true
}

// extend keeps the lock for longer.
func (h holders) extend(token string, until, _ int64) bool {
	if _, mine := h[token]; !mine {
		return false
	}
	h[token] = until
	if _, alone := h[writeHolder]; alone {
		h[writeHolder] = until
	}
	return true
}

// remove gives the lock back.
func (h holders) remove(token string) bool {
	if _, mine := h[token]; !mine {
		return false
	}
	delete(h, token)
	delete(h, writeHolder)
	return true
}

// holderScript is a script with the arguments time, token and TTL in
// milliseconds. The time that counts is the server's.
func holderScript(do func(h holders, token string, until, now int64) bool) script {
	return script{1, 3, func(c *client, keys, args [][]byte) {
		ttl, ok := c.integer(args[2])
		if !ok {
			return
		}
		if ttl < 0 || ttl > int64(maxTTL/time.Millisecond) {
			c.reply.error("ERR invalid expire time in 'pexpireat' command")
			return
		}
		c.truth(c.store.changeHolders(keys[0], func(h holders, now int64) bool {
			return do(h, string(args[1]), now+ttl, now)
		}))
	}}
}

func scriptHolderExists(c *client, keys, args [][]byte) {
	c.truth(c.store.changeHolders(keys[0], func(h holders, now int64) bool {
		h.expire(now)
		_, mine := h[string(args[1])]
		return mine
	}))
}

func scriptHolderRemove(c *client, keys, args [][]byte) {
	c.truth(c.store.changeHolders(keys[0], func(h holders, _ int64) bool { return h.remove(string(args[0])) }))
}

// truth answers as Lua's true and false arrive.
func (c *client) truth(b bool, err error) {
	switch {
	case err != nil:
		c.fail(err)
	case b:
		c.reply.integer(1)
	default:
		c.reply.null()
	}
}
