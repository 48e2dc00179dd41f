package kv

import (
	"errors"
	"strconv"
)

var hashCommands = []command{
	{"hset", -4, writes, oneKey, func(c *client, args [][]byte) { c.hset(args, "hset") }},
	{"hmset", -4, writes, oneKey, func(c *client, args [][]byte) { c.hset(args, "hmset") }},
	{"hsetnx", 4, writes, oneKey, cmdHSetNX},
	{"hget", 3, 0, oneKey, cmdHGet},
	{"hmget", -3, 0, oneKey, cmdHMGet},
	{"hdel", -3, writes, oneKey, cmdHDel},
	{"hgetall", 2, 0, oneKey, cmdHGetAll},
	{"hkeys", 2, 0, oneKey, func(c *client, args [][]byte) { c.hlist(args[1], func(p Pair) []byte { return p.Key }) }},
	{"hvals", 2, 0, oneKey, func(c *client, args [][]byte) { c.hlist(args[1], func(p Pair) []byte { return p.Value }) }},
	{"hlen", 2, 0, oneKey, cmdHLen},
	{"hexists", 3, 0, oneKey, cmdHExists},
	{"hstrlen", 3, 0, oneKey, cmdHStrLen},
	{"hincrby", 4, writes, oneKey, cmdHIncrBy},
	{"hscan", -3, 0, oneKey, cmdHScan},
}

func (c *client) hset(args [][]byte, cmd string) {
	pairs, ok := c.pairArgs(args[2:], cmd)
	if !ok {
		return
	}
	n, err := c.store.HSet(args[1], pairs...)
	if cmd == "hmset" {
		c.okOr(err)
		return
	}
	c.integerOr(int64(n), err)
}

func cmdHSetNX(c *client, args [][]byte) {
	set, err := c.store.HSetNX(args[1], args[2], args[3])
	c.booleanOr(set, err)
}

func cmdHGet(c *client, args [][]byte) {
	value, _, err := c.store.HGet(args[1], args[2])
	c.valueOr(value, err)
}

func cmdHMGet(c *client, args [][]byte) {
	values, err := c.store.HMGet(c.server.opts.MaxReply, args[1], args[2:]...)
	if err != nil {
		c.fail(err)
		return
	}
	c.reply.array(len(values))
	for _, value := range values {
		c.reply.value(value)
	}
}

func cmdHDel(c *client, args [][]byte) {
	n, err := c.store.HDel(args[1], args[2:]...)
	c.integerOr(int64(n), err)
}

func cmdHGetAll(c *client, args [][]byte) {
	pairs, err := c.store.HGetAll(args[1])
	if err != nil {
		c.fail(err)
		return
	}
	c.reply.pairs(len(pairs))
	for _, p := range pairs {
		c.reply.bulk(p.Key)
		c.reply.bulk(p.Value)
	}
}

// hlist answers with one part of each field.
func (c *client) hlist(key []byte, part func(Pair) []byte) {
	pairs, err := c.store.HGetAll(key)
	if err != nil {
		c.fail(err)
		return
	}
	c.reply.array(len(pairs))
	for _, p := range pairs {
		c.reply.bulk(part(p))
	}
}

func cmdHLen(c *client, args [][]byte) {
	n, err := c.store.HLen(args[1])
	c.integerOr(int64(n), err)
}

func cmdHExists(c *client, args [][]byte) {
	_, ok, err := c.store.HStrLen(args[1], args[2])
	c.booleanOr(ok, err)
}

func cmdHStrLen(c *client, args [][]byte) {
	n, _, err := c.store.HStrLen(args[1], args[2])
	c.integerOr(int64(n), err)
}

func cmdHIncrBy(c *client, args [][]byte) {
	n, ok := c.integer(args[3])
	if !ok {
		return
	}
	sum, err := c.store.HIncrBy(args[1], args[2], n)
	if errors.Is(err, ErrNotInteger) {
		c.reply.error("ERR hash value is not an integer")
		return
	}
	c.integerOr(sum, err)
}

func cmdHScan(c *client, args [][]byte) {
	q, ok := c.scanArgs(args[2:], false)
	if !ok {
		return
	}
	pairs, next, err := c.store.HScan(args[1], q.cursor, q.count)
	if err != nil {
		c.fail(err)
		return
	}
	var found reply
	n := 0
	for _, p := range pairs {
		if q.wants(p.Key) {
			found.bulk(p.Key)
			found.bulk(p.Value)
			n++
		}
	}
	c.reply.array(2)
	c.reply.text(strconv.FormatUint(next, 10))
	c.reply.array(2 * n)
	c.reply.b = append(c.reply.b, found.b...)
}
