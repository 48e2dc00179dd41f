package kv

import (
	"math"
	"strconv"
	"time"
)

var keyCommands = []command{
	{"del", -2, writes, allKeys, cmdDel},
	{"unlink", -2, writes, allKeys, cmdDel},
	{"exists", -2, 0, allKeys, cmdExists},
	{"touch", -2, 0, allKeys, cmdExists},
	{"type", 2, 0, oneKey, cmdType},
	{"expire", -3, writes, oneKey, func(c *client, args [][]byte) { c.expire(args, 1000, true, "expire") }},
	{"pexpire", -3, writes, oneKey, func(c *client, args [][]byte) { c.expire(args, 1, true, "pexpire") }},
	{"expireat", -3, writes, oneKey, func(c *client, args [][]byte) { c.expire(args, 1000, false, "expireat") }},
	{"pexpireat", -3, writes, oneKey, func(c *client, args [][]byte) { c.expire(args, 1, false, "pexpireat") }},
	{"ttl", 2, 0, oneKey, func(c *client, args [][]byte) { c.ttl(args[1], 1000, true) }},
	{"pttl", 2, 0, oneKey, func(c *client, args [][]byte) { c.ttl(args[1], 1, true) }},
	{"expiretime", 2, 0, oneKey, func(c *client, args [][]byte) { c.ttl(args[1], 1000, false) }},
	{"pexpiretime", 2, 0, oneKey, func(c *client, args [][]byte) { c.ttl(args[1], 1, false) }},
	{"persist", 2, writes, oneKey, cmdPersist},
	{"rename", 3, writes, twoKeys, cmdRename},
	{"renamenx", 3, writes, twoKeys, cmdRenameNX},
	{"keys", 2, takesLong, keyRange{}, cmdKeys},
	{"scan", -2, 0, keyRange{}, cmdScan},
	{"randomkey", 1, 0, keyRange{}, cmdRandomKey},
	{"dbsize", 1, 0, keyRange{}, cmdDBSize},
	{"flushdb", -1, writes | takesLong, keyRange{}, cmdFlush},
	{"flushall", -1, writes | takesLong, keyRange{}, cmdFlush},
}

func cmdDel(c *client, args [][]byte) { c.reply.integer(int64(c.store.Del(args[1:]...))) }

func cmdExists(c *client, args [][]byte) {
	n := 0
	for _, key := range args[1:] {
		if c.store.Exists(key) {
			n++
		}
	}
	c.reply.integer(int64(n))
}

func cmdType(c *client, args [][]byte) { c.reply.simple(string(c.store.Type(args[1]))) }

// expire answers EXPIRE and its like. A time that has passed deletes the key.
func (c *client) expire(args [][]byte, unit int64, relative bool, cmd string) {
	n, ok := c.integer(args[2])
	if !ok {
		return
	}
	condition, ok := c.expireCondition(args[3:])
	if !ok {
		return
	}
	now := int64(0)
	if relative {
		now = time.Now().UnixMilli()
	}
	if n > (math.MaxInt64-now)/unit || n < math.MinInt64/unit {
		c.reply.error("ERR invalid expire time in '" + cmd + "' command")
		return
	}
	c.boolean(c.store.ExpireAt(args[1], n*unit+now, condition))
}

func (c *client) expireCondition(args [][]byte) (ExpireCondition, bool) {
	condition := ExpireAlways
	for _, arg := range args {
		next := ExpireAlways
		switch {
		case is(arg, "nx"):
			next = ExpireIfNone
		case is(arg, "xx"):
			next = ExpireIfAny
		case is(arg, "gt"):
			next = ExpireIfGreater
		case is(arg, "lt"):
			next = ExpireIfLess
		default:
			c.reply.error("ERR Unsupported option " + short(arg))
			return 0, false
		}
		if condition != ExpireAlways && next != condition {
			c.reply.error("ERR NX and XX, GT or LT options at the same time are not compatible")
			return 0, false
		}
		condition = next
	}
	return condition, true
}

// ttl answers TTL and its like. What is left of a unit counts as one.
func (c *client) ttl(key []byte, unit int64, relative bool) {
	at, ok := c.store.Expiry(key)
	switch {
	case !ok:
		at = -2
	case at == 0:
		at = -1
	default:
		if relative {
			at = max(1, at-time.Now().UnixMilli())
		}
		at = (at-1)/unit + 1
	}
	c.reply.integer(at)
}

func cmdPersist(c *client, args [][]byte) { c.boolean(c.store.Persist(args[1])) }

func cmdRename(c *client, args [][]byte) {
	_, found, err := c.store.Rename(args[1], args[2], false)
	if err == nil && !found {
		c.reply.error("ERR no such key")
		return
	}
	c.okOr(err)
}

func cmdRenameNX(c *client, args [][]byte) {
	moved, found, err := c.store.Rename(args[1], args[2], true)
	if err == nil && !found {
		c.reply.error("ERR no such key")
		return
	}
	c.booleanOr(moved && string(args[1]) != string(args[2]), err)
}

func cmdKeys(c *client, args [][]byte) {
	var all reply
	n := 0
	for cursor := uint64(0); ; {
		cursor = c.store.scan(cursor, math.MaxInt, func(key []byte, _ Type) bool {
			if globMatch(args[1], key) {
				all.bulk(key)
				n++
			}
			return false
		})
		if cursor == 0 {
			break
		}
	}
	c.reply.array(n)
	c.reply.b = append(c.reply.b, all.b...)
}

// A scanQuery is what SCAN and HSCAN are asked for.
type scanQuery struct {
	cursor uint64
	match  []byte // nil: anything
	count  int
	kind   []byte // nil: any
}

func (q scanQuery) wants(name []byte) bool { return q.match == nil || globMatch(q.match, name) }

// scanArgs reads a cursor and options, or writes an error.
func (c *client) scanArgs(args [][]byte, withType bool) (q scanQuery, ok bool) {
	q.count = 10
	cursor, err := strconv.ParseUint(string(args[0]), 10, 64)
	if err != nil {
		c.reply.error("ERR invalid cursor")
		return q, false
	}
	q.cursor = cursor
	for rest := args[1:]; len(rest) > 0; rest = rest[2:] {
		switch {
		case len(rest) == 1:
			c.reply.error(textSyntax)
			return q, false
		case is(rest[0], "match"):
			q.match = rest[1]
		case is(rest[0], "count"):
			n, ok := c.integer(rest[1])
			if !ok {
				return q, false
			}
			if n < 1 {
				c.reply.error(textSyntax)
				return q, false
			}
			q.count = int(min(n, 1<<20))
		case withType && is(rest[0], "type"):
			q.kind = rest[1]
		default:
			c.reply.error(textSyntax)
			return q, false
		}
	}
	return q, true
}

func cmdScan(c *client, args [][]byte) {
	q, ok := c.scanArgs(args[1:], true)
	if !ok {
		return
	}
	var found reply
	n := 0
	next := c.store.scan(q.cursor, q.count, func(key []byte, t Type) bool {
		if q.wants(key) && (q.kind == nil || is(q.kind, string(t))) {
			found.bulk(key)
			n++
		}
		return true // what is looked at counts, as in Redis
	})
	c.reply.array(2)
	c.reply.text(strconv.FormatUint(next, 10))
	c.reply.array(n)
	c.reply.b = append(c.reply.b, found.b...)
}

func cmdRandomKey(c *client, args [][]byte) {
	key, ok := c.store.RandomKey()
	if !ok {
		key = nil
	}
	c.reply.value(key)
}

func cmdDBSize(c *client, args [][]byte) { c.reply.integer(int64(c.store.Keys())) }

func cmdFlush(c *client, args [][]byte) {
	if len(args) > 2 || len(args) == 2 && !is(args[1], "async") && !is(args[1], "sync") {
		c.reply.error(textSyntax)
		return
	}
	c.store.Flush()
	c.reply.ok()
}
