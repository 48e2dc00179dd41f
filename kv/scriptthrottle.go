package kv

import (
	"math"
	"strconv"
	"time"
)

// The limiter of Laravel's Redis::throttle is a hash: from the Unix time start to
// end, in seconds, count calls were counted. Its scripts have the arguments now, as
// decimal text, start, length of the window and how many calls it may have.
const (
	fieldStart = "start"
	fieldEnd   = "end"
	fieldCount = "count"
)

// A throttle is what one call asks for.
type throttle struct {
	now    []byte // compared as text, as the script does
	start  int64
	length int64
	most   int64
}

// throttleArgs reads the arguments, or writes an error.
func (c *client) throttleArgs(args [][]byte) (t throttle, ok bool) {
	t.now = args[0]
	for i, n := range []*int64{&t.start, &t.length, &t.most} {
		if *n, ok = c.integer(args[i+1]); !ok {
			return t, false
		}
	}
	if t.length > int64(maxTTL/time.Second)/2 || t.start > math.MaxInt64/2 || t.most < math.MinInt64/2 {
		c.reply.error(textBadExpire)
		return t, false
	}
	return t, true
}

// scriptThrottle counts a call. It answers with 1, or null for one too many, the
// end of the window and how many more may come.
func scriptThrottle(c *client, keys, args [][]byte) {
	t, ok := c.throttleArgs(args)
	if !ok {
		return
	}
	end, count, err := c.store.countCall(keys[0], t)
	switch {
	case err != nil:
		c.fail(err)
		return
	case end == nil:
		c.reply.array(3)
		c.reply.integer(1)
		c.reply.integer(t.start + t.length)
	default:
		c.reply.array(3)
		if count <= t.most {
			c.reply.integer(1)
		} else {
			c.reply.null()
		}
		c.reply.bulk(end)
	}
	c.reply.integer(t.most - count)
}

// scriptThrottled answers with the end of the window and how many more calls may
// come or, without a window, with 0 and when one would end.
func scriptThrottled(c *client, keys, args [][]byte) {
	t, ok := c.throttleArgs(args)
	if !ok {
		return
	}
	s := c.store
	s.mu.Lock()
	_, end, count, err := s.windowLocked(keys[0], t)
	s.mu.Unlock()
	switch {
	case err != nil:
		c.fail(err)
	case end == nil:
		c.reply.array(2)
		c.reply.integer(0)
		c.reply.integer(t.start + t.length)
	default:
		c.reply.array(2)
		c.reply.bulk(end)
		c.reply.integer(t.most - count)
	}
}

// windowLocked returns a limiter's hash, 0 if it is not there, and the end and the
// count of its window, nil if now is in none.
func (s *Store) windowLocked(key []byte, t throttle) (r ref, end []byte, count int64, err error) {
	r, found, err := s.findHashLocked(key)
	if err != nil || !found {
		return 0, nil, 0, err
	}
	field := func(name string) ([]byte, bool) {
		return s.fieldsLocked(r).get([]byte(name), s.fieldHash([]byte(name)))
	}
	start, hasStart := field(fieldStart)
	end, hasEnd := field(fieldEnd)
	text, _ := field(fieldCount)
	count, isCount := parseInt(text)
	switch {
	case !hasStart || !hasEnd || !isCount:
		return 0, nil, 0, ErrWrongType // another's hash
	case string(t.now) < string(start) || string(t.now) > string(end):
		return r, nil, 0, nil
	}
	return r, append([]byte{}, end...), count, nil
}

// countCall counts a call, in a new window if there is none, then end is nil.
func (s *Store) countCall(key []byte, t throttle) (end []byte, count int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, end, count, err := s.windowLocked(key, t)
	if err != nil {
		return nil, 0, err
	}
	number := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
	if end != nil {
		var ok bool
		if count, ok = add(count, 1); !ok {
			return nil, 0, ErrOverflow
		}
		_, err = s.hsetLocked(key, r, true, []Pair{{[]byte(fieldCount), number(count)}})
		return end, count, err
	}
	_, err = s.hsetLocked(key, r, r != 0, []Pair{
		{[]byte(fieldStart), number(t.start)},
		{[]byte(fieldEnd), number(t.start + t.length)},
		{[]byte(fieldCount), number(1)},
	})
	if err != nil {
		return nil, 0, err
	}
	if t.length <= 0 {
		s.deleteLocked(key)
	} else if r, found := s.findLocked(key); found {
		s.setExpiryLocked(key, r, s.now()+2000*t.length)
	}
	return nil, 1, nil
}
