package kv

import (
	"errors"
	"math"
	"strconv"
)

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
	var sum []byte
	_, err := c.store.edit(args[1], func(old []byte) ([]byte, error) {
		have, ok := 0.0, true
		if len(old) > 0 {
			have, ok = parseFloat(old)
		}
		if !ok {
			return nil, errNotFloat
		}
		if have += by; math.IsInf(have, 0) || math.IsNaN(have) {
			return nil, errNoNumber
		}
		sum = strconv.AppendFloat(nil, have, 'f', -1, 64)
		return sum, nil
	})
	switch {
	case errors.Is(err, errNotFloat):
		c.reply.error(textNotFloat)
	case errors.Is(err, errNoNumber):
		c.reply.error("ERR increment would produce NaN or Infinity")
	case err != nil:
		c.fail(err)
	default:
		c.reply.bulk(sum)
	}
}

var (
	errNotFloat = errors.New("kv: value is not a float")
	errNoNumber = errors.New("kv: sum is not a number")
)

func parseFloat(text []byte) (float64, bool) {
	for _, b := range text {
		if b == '_' || b == 'x' || b == 'X' || b == 'p' || b == 'P' { // Go's own notations
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil && !math.IsNaN(f)
}
