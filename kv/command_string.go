package kv

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"time"
)

var stringCommands = []command{
	{"get", 2, 0, oneKey, cmdGet},
	{"set", -3, writes, oneKey, cmdSet},
	{"setnx", 3, writes, oneKey, cmdSetNX},
	{"setex", 4, writes, oneKey, func(c *client, args [][]byte) { c.setFor(args, 1000) }},
	{"psetex", 4, writes, oneKey, func(c *client, args [][]byte) { c.setFor(args, 1) }},
	{"mget", -2, 0, allKeys, cmdMGet},
	{"mset", -3, writes, allPairs, cmdMSet},
	{"msetnx", -3, writes, allPairs, cmdMSetNX},
	{"append", 3, writes, oneKey, cmdAppend},
	{"strlen", 2, 0, oneKey, cmdStrLen},
	{"getset", 3, writes, oneKey, cmdGetSet},
	{"getdel", 2, writes, oneKey, cmdGetDel},
	{"getex", -2, writes, oneKey, cmdGetEx},
	{"setrange", 4, writes, oneKey, cmdSetRange},
	{"getrange", 4, 0, oneKey, cmdGetRange},
	{"substr", 4, 0, oneKey, cmdGetRange},
}

func cmdGet(c *client, args [][]byte) {
	b, ok, err := c.store.appendBulk(c.reply.b, args[1])
	switch {
	case err != nil:
		c.fail(err)
	case !ok:
		c.reply.null()
	default:
		c.reply.b = b
	}
}

// appendBulk appends a string as a bulk string.
func (s *Store) appendBulk(dst, key []byte) ([]byte, bool, error) {
	s.mu.Lock()
	r, ok := s.readLocked(key)
	if !ok {
		s.mu.Unlock()
		return dst, false, nil
	}
	if s.kindOf(r) == kindString && s.table.mem.coding(r) == codingPlain {
		value := s.table.mem.value(r)
		dst = slices.Grow(dst, len(value)+32) // once
		dst = append(strconv.AppendInt(append(dst, '$'), int64(len(value)), 10), '\r', '\n')
		dst = append(append(dst, value...), '\r', '\n')
		s.mu.Unlock()
		return dst, true, nil
	}
	s.stats.Hits-- // the next counts it
	s.mu.Unlock()
	value, ok, err := s.Get(key)
	if !ok || err != nil {
		return dst, ok, err
	}
	out := reply{b: dst}
	out.bulk(value)
	return out.b, true, nil
}

// expiryOption reads EX, PX, EXAT and PXAT, if args[0] is one of them, and
// returns when that is. It writes an error where there is none.
func (c *client) expiryOption(args [][]byte, cmd string) (at int64, found, ok bool) {
	unit, relative := int64(0), false
	switch {
	case is(args[0], "ex"):
		unit, relative = 1000, true
	case is(args[0], "px"):
		unit, relative = 1, true
	case is(args[0], "exat"):
		unit = 1000
	case is(args[0], "pxat"):
		unit = 1
	default:
		return 0, false, true
	}
	if len(args) < 2 {
		c.reply.error(textSyntax)
		return 0, true, false
	}
	at, ok = c.expiryTime(args[1], unit, relative, cmd)
	return at, true, ok
}

// expiryTime reads a time above zero, in units of milliseconds, and returns it as
// a Unix time in milliseconds.
func (c *client) expiryTime(arg []byte, unit int64, relative bool, cmd string) (at int64, ok bool) {
	n, ok := c.integer(arg)
	if !ok {
		return 0, false
	}
	now := int64(0)
	if relative {
		now = time.Now().UnixMilli()
	}
	if n <= 0 || n > (math.MaxInt64-now)/unit {
		c.reply.error("ERR invalid expire time in '" + cmd + "' command")
		return 0, false
	}
	return n*unit + now, true
}

func cmdSet(c *client, args [][]byte) {
	var o SetOptions
	timed := 0
	for rest := args[3:]; len(rest) > 0; rest = rest[1:] {
		at, isTime, ok := c.expiryOption(rest, "set")
		switch {
		case !ok:
			return
		case isTime:
			o.ExpireAt = at
			rest = rest[1:]
			timed++
		case is(rest[0], "nx"):
			o.IfAbsent = true
		case is(rest[0], "xx"):
			o.IfPresent = true
		case is(rest[0], "get"):
			o.WantOld = true
		case is(rest[0], "keepttl"):
			o.KeepTTL = true
			timed++
		default:
			c.reply.error(textSyntax)
			return
		}
	}
	if timed > 1 || o.IfAbsent && o.IfPresent {
		c.reply.error(textSyntax)
		return
	}
	r, err := c.store.SetWith(args[1], args[2], o)
	switch {
	case err != nil:
		c.fail(err)
	case o.WantOld:
		c.reply.value(r.Old)
	case r.Stored:
		c.reply.ok()
	default:
		c.reply.null()
	}
}

func cmdSetNX(c *client, args [][]byte) {
	ok, err := c.store.SetNX(args[1], args[2], 0)
	c.booleanOr(ok, err)
}

// setFor answers SETEX and PSETEX.
func (c *client) setFor(args [][]byte, unit int64) {
	cmd := "setex"
	if unit == 1 {
		cmd = "psetex"
	}
	at, ok := c.expiryTime(args[2], unit, true, cmd)
	if !ok {
		return
	}
	_, err := c.store.SetWith(args[1], args[3], SetOptions{ExpireAt: at})
	c.okOr(err)
}

func cmdMGet(c *client, args [][]byte) {
	start := len(c.reply.b)
	c.reply.array(len(args) - 1)
	for _, key := range args[1:] {
		b, ok, err := c.store.appendBulk(c.reply.b, key)
		switch {
		case err != nil && !errors.Is(err, ErrWrongType):
			c.reply.b = c.reply.b[:start]
			c.fail(err)
			return
		case err != nil, !ok: // Redis has no error for a hash here
			c.reply.null()
		case len(b)-start > c.server.opts.MaxReply:
			c.reply.b = c.reply.b[:start]
			c.fail(ErrReplyTooLong)
			return
		default:
			c.reply.b = b
		}
	}
}

// pairArgs reads keys and values.
func (c *client) pairArgs(args [][]byte, cmd string) ([]Pair, bool) {
	if len(args)%2 != 0 {
		c.reply.error("ERR wrong number of arguments for '" + cmd + "' command")
		return nil, false
	}
	pairs := make([]Pair, 0, len(args)/2)
	for i := 0; i < len(args); i += 2 {
		pairs = append(pairs, Pair{args[i], args[i+1]})
	}
	return pairs, true
}

func cmdMSet(c *client, args [][]byte) {
	if pairs, ok := c.pairArgs(args[1:], "mset"); ok {
		c.okOr(c.store.MSet(pairs, 0))
	}
}

func cmdMSetNX(c *client, args [][]byte) {
	if pairs, ok := c.pairArgs(args[1:], "msetnx"); ok {
		stored, err := c.store.MSetNX(pairs, 0)
		c.booleanOr(stored, err)
	}
}

func cmdAppend(c *client, args [][]byte) {
	n, err := c.store.Append(args[1], args[2])
	c.integerOr(int64(n), err)
}

func cmdStrLen(c *client, args [][]byte) {
	n, err := c.store.Len(args[1])
	c.integerOr(int64(n), err)
}

func cmdGetSet(c *client, args [][]byte) {
	old, _, err := c.store.GetSet(args[1], args[2])
	c.valueOr(old, err)
}

func cmdGetDel(c *client, args [][]byte) {
	value, _, err := c.store.GetDel(args[1])
	c.valueOr(value, err)
}

func cmdGetEx(c *client, args [][]byte) {
	persist := len(args) == 3 && is(args[2], "persist")
	at := int64(0)
	if len(args) > 2 && !persist {
		var isTime, ok bool
		if at, isTime, ok = c.expiryOption(args[2:], "getex"); !ok {
			return
		}
		if !isTime || len(args) != 4 {
			c.reply.error(textSyntax)
			return
		}
	}
	if len(args) == 2 {
		cmdGet(c, args)
		return
	}
	value, _, err := c.store.GetExpire(args[1], at)
	c.valueOr(value, err)
}

func cmdSetRange(c *client, args [][]byte) {
	offset, ok := c.integer(args[2])
	if !ok {
		return
	}
	if offset < 0 {
		c.reply.error("ERR offset is out of range")
		return
	}
	n, err := c.store.SetRange(args[1], int(offset), args[3])
	c.integerOr(int64(n), err)
}

func cmdGetRange(c *client, args [][]byte) {
	from, ok := c.integer(args[2])
	if !ok {
		return
	}
	to, ok := c.integer(args[3])
	if !ok {
		return
	}
	value, err := c.store.Range(args[1], from, to)
	if err != nil {
		c.fail(err)
		return
	}
	c.reply.bulk(value)
}
