package kv

import "math"

var counterCommands = []command{
	{"incr", 2, writes, oneKey, func(c *client, args [][]byte) { c.incrBy(args[1], 1) }},
	{"decr", 2, writes, oneKey, func(c *client, args [][]byte) { c.incrBy(args[1], -1) }},
	{"incrby", 3, writes, oneKey, cmdIncrBy},
	{"decrby", 3, writes, oneKey, cmdDecrBy},
	{"incrbyfloat", 3, writes, oneKey, cmdIncrByFloat},
}

func (c *client) incrBy(key []byte, n int64) {
	sum, err := c.store.IncrBy(key, n)
	c.integerOr(sum, err)
}

func cmdIncrBy(c *client, args [][]byte) {
	if n, ok := c.integer(args[2]); ok {
		c.incrBy(args[1], n)
	}
}

func cmdDecrBy(c *client, args [][]byte) {
	n, ok := c.integer(args[2])
	if !ok {
		return
	}
	if n == math.MinInt64 {
		c.reply.error("ERR decrement would overflow")
		return
	}
	c.incrBy(args[1], -n)
}

func cmdIncrByFloat(c *client, args [][]byte) {
	by, ok := parseFloat(args[2])
	if !ok {
		c.reply.error(textNotFloat)
		return
	}
	sum, err := c.store.IncrByFloat(args[1], by)
	c.valueOr(sum, err)
}
