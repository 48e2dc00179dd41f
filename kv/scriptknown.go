package kv

import (
	"slices"
	"strconv"
	"time"
)

// A script is one that is known. It has this number of keys, below zero for -n or
// more, and at least so many arguments.
type script struct {
	keys, args int
	run        func(c *client, keys, args [][]byte)
}

// takes reports whether the script can have so many keys and arguments.
func (s *script) takes(keys, args int) bool {
	return (keys == s.keys || s.keys < 0 && keys >= -s.keys) && args >= s.args
}

// scripts are those that are known, by their text as canonical has it.
var scripts = map[string]script{
	// The release of a lock: Laravel, Symfony before 5.2, the sessions of phpredis,
	// Redis's own documentation.
	`ifredis.call("get",KEYS[1])==ARGV[1]thenreturnredis.call("del",KEYS[1])elsereturn0end`: {1, 1, scriptDelIf},
	`ifredis.call("get",KEYS[1])==ARGV[1]thenreturnredis.call("del",KEYS[1])endreturn0`:     {1, 1, scriptDelIf},
	// Its refresh.
	`ifredis.call("get",KEYS[1])==ARGV[1]thenreturnredis.call("expire",KEYS[1],ARGV[2])elsereturn0end`: {1, 2,
		func(c *client, keys, args [][]byte) { c.scriptExpireIf(keys[0], args, time.Second) }},
	`ifredis.call("get",KEYS[1])==ARGV[1]thenreturnredis.call("pexpire",KEYS[1],ARGV[2])elsereturn0end`: {1, 2,
		func(c *client, keys, args [][]byte) { c.scriptExpireIf(keys[0], args, time.Millisecond) }},
	// Cache::add of Laravel.
	`returnredis.call("exists",KEYS[1])<1andredis.call("setex",KEYS[1],ARGV[2],ARGV[1])`: {1, 2, scriptAdd},
}

// sums are more of those that are known, by the SHA-1 of their text as canonical
// has it.
var sums = map[string]script{
	// Laravel: Lock::refresh, Redis::funnel, Redis::throttle (to take part, and to
	// ask), broadcasting.
	"c45349d29f0835492bb545396f6644d66b943781": {1, 2, scriptRefreshIf},
	"4027d1bce35b16d8a7d5917979e8c3f7b3131200": {-1, 3, scriptTakeSlot},
	"7287d3583179d4756fa5fd3055aee4bdc9f6bed9": {1, 4, scriptThrottle},
	"98ff3b59f3da33be7384bcd9ee0c6f1bea3c7947": {1, 4, scriptThrottled},
	"a2d858063b2401fe1eebe6c2a9f349cafe9e3281": {0, 1, scriptBroadcast},

	// The lock store of Symfony 4.4 to 5.1 takes a lock, or keeps it.
	"c4e651db036e29fd122422660ba2eefbed4356d7": {1, 2, scriptTakeLock},

	// That of Symfony from 5.2 on. It asks first whether scripts may know the time;
	// each is there for both answers.
	"24042d36e57a8e0bee1a045fcf31526b5f217e82": {1, 0, func(c *client, _, _ [][]byte) { c.reply.integer(1) }},
	"25aad98e3b830b3727086293b7faf0c5e24c85e8": holderScript(holders.save),
	"55a0f918b47736baac6eb4cd547e948729986913": holderScript(holders.save),
	"a4a76d18f31918aad4f17d4af10d03f18e8bba0c": holderScript(holders.saveRead),
	"839b3679cf7d3ba0684556a0ec3c897d3b6b8faf": holderScript(holders.saveRead),
	"f7faabd1766a967b8ce91951ca1fb5129fe7fe89": holderScript(holders.extend),
	"b9060bf6eba56a204c8399b74332be5fe3adc330": holderScript(holders.extend),
	"3bf53d68885e037ca9e2aa96895e5d59dc271c05": {1, 2, scriptHolderExists},
	"845b5d5016348db5c95807ec07a8a70c174a9c0d": {1, 2, scriptHolderExists},
	"73a8aeb03353a8feb72dd11cc25c1780165fd0bd": {1, 1, scriptHolderRemove},
}

const textBadExpire = "ERR invalid expire time in 'expire' command"

func scriptDelIf(c *client, keys, args [][]byte) {
	done, err := c.store.DelIf(keys[0], args[0])
	c.booleanOr(done, err)
}

func (c *client) scriptExpireIf(key []byte, args [][]byte, unit time.Duration) {
	n, ok := c.integer(args[1])
	if !ok {
		return
	}
	if n <= 0 {
		scriptDelIf(c, [][]byte{key}, args)
		return
	}
	if n > int64(maxTTL/unit) {
		c.reply.error(textBadExpire)
		return
	}
	done, err := c.store.ExpireIf(key, args[0], time.Duration(n)*unit)
	c.booleanOr(done, err)
}

// maxTTL is the longest that a time.Duration has, nearly 300 years.
const maxTTL = time.Duration(1<<63 - 1)

func scriptAdd(c *client, keys, args [][]byte) {
	at, ok := c.expiryTime(args[1], 1000, true, "setex")
	if !ok {
		return
	}
	r, err := c.store.SetWith(keys[0], args[0], SetOptions{ExpireAt: at, IfAbsent: true})
	switch {
	case err != nil:
		c.fail(err)
	case r.Stored:
		c.reply.ok()
	default:
		c.reply.null()
	}
}

// scriptRefreshIf gives a lock that holds args[0] another TTL, or none.
func scriptRefreshIf(c *client, keys, args [][]byte) {
	if n, ok := parseInt(args[1]); ok && n <= 0 {
		done, err := c.store.PersistIf(keys[0], args[0])
		c.booleanOr(done, err)
		return
	}
	c.scriptExpireIf(keys[0], args, time.Second)
}

// scriptTakeLock takes a lock for args[0], or keeps it, for args[1] milliseconds.
func scriptTakeLock(c *client, keys, args [][]byte) {
	n, ok := c.integer(args[1])
	if !ok {
		return
	}
	if n <= 0 || n > int64(maxTTL/time.Millisecond) {
		c.reply.error("ERR invalid expire time in 'set' command")
		return
	}
	done, err := c.store.TakeIf(keys[0], args[0], time.Duration(n)*time.Millisecond)
	c.booleanOr(done, err)
}

// scriptTakeSlot stores args[2] for args[1] seconds under the first key that is not
// there, and answers with args[0] and its number from 1 on.
func scriptTakeSlot(c *client, keys, args [][]byte) {
	at, ok := c.expiryTime(args[1], 1000, true, "set")
	if !ok {
		return
	}
	i, err := c.store.setFirstAbsent(keys, args[2], at)
	switch {
	case err != nil:
		c.fail(err)
	case i < 0:
		c.reply.null()
	default:
		c.reply.bulk(strconv.AppendInt(slices.Clone(args[0]), int64(i)+1, 10))
	}
}

// scriptBroadcast publishes args[0] to the channels behind it.
func scriptBroadcast(c *client, _, args [][]byte) {
	for _, channel := range args[1:] {
		c.publish(channel, args[0])
	}
	c.reply.null()
}
