package kv

import "bytes"

// maxTransaction limits, in bytes, what a transaction watches and queues.
const maxTransaction = 16 << 20

// longTransaction is how many commands are more than a loop runs at once.
const longTransaction = 1000

// A transaction is what a client sent between MULTI and EXEC, and the keys that
// it watches.
type transaction struct {
	active  bool
	failed  bool // a command could not be queued
	long    bool // it is not for a loop
	queue   []queuedCommand
	bytes   int
	watched map[string]uint64 // the versions of the keys
}

type queuedCommand struct {
	cmd  *command
	args [][]byte
}

var transactionCommands = []command{
	{"multi", 1, noGate | atOnce, keyRange{}, cmdMulti},
	{"exec", 1, noGate | atOnce, keyRange{}, cmdExec},
	{"discard", 1, noGate | atOnce, keyRange{}, cmdDiscard},
	{"watch", -2, noGate | atOnce, allKeys, cmdWatch},
	{"unwatch", 1, noGate, keyRange{}, cmdUnwatch},
}

func cmdMulti(c *client, args [][]byte) {
	if c.tx.active {
		c.reply.error("ERR MULTI calls can not be nested")
		return
	}
	c.tx.active = true
	c.reply.ok()
}

// queueCommand keeps a command for EXEC.
func (c *client) queueCommand(cmd *command, args [][]byte) {
	q := queuedCommand{cmd: cmd}
	c.tx.long = c.tx.long || cmd.flags&takesLong != 0 || len(c.tx.queue) >= longTransaction
	for _, arg := range args {
		c.tx.bytes += len(arg) + 64
		q.args = append(q.args, bytes.Clone(arg))
	}
	if c.tx.bytes > maxTransaction {
		c.tx.failed = true
		c.tx.queue = nil
		c.reply.error("ERR the transaction is too long")
		return
	}
	c.tx.queue = append(c.tx.queue, q)
	c.reply.simple("QUEUED")
}

// cmdExec runs the queue with nothing from any other client in between. What
// PHP does is not held up.
func cmdExec(c *client, args [][]byte) {
	tx := c.tx
	if !tx.active {
		c.reply.error("ERR EXEC without MULTI")
		return
	}
	c.tx = transaction{}
	if tx.failed {
		c.reply.error("EXECABORT Transaction discarded because of previous errors.")
		return
	}
	c.store.gate.Lock()
	defer c.store.gate.Unlock()
	for key, version := range tx.watched {
		if c.store.Version([]byte(key)) != version {
			c.reply.nullArray()
			return
		}
	}
	start, tooLong := len(c.reply.b), false
	c.reply.array(len(tx.queue))
	for _, q := range tx.queue { // all of them, whatever becomes of the replies
		c.report(q.cmd, q.args)
		q.cmd.run(c, q.args)
		if tooLong = tooLong || len(c.reply.b)-start > c.server.opts.MaxReply; tooLong {
			c.reply.b = c.reply.b[:start]
		}
	}
	if tooLong {
		c.reply.error("ERR the commands have run, but their replies are too long")
	}
}

func cmdDiscard(c *client, args [][]byte) {
	if !c.tx.active {
		c.reply.error("ERR DISCARD without MULTI")
		return
	}
	c.tx = transaction{}
	c.reply.ok()
}

func cmdWatch(c *client, args [][]byte) {
	if c.tx.active {
		c.reply.error("ERR WATCH inside MULTI is not allowed")
		return
	}
	if c.tx.watched == nil {
		c.tx.watched = make(map[string]uint64)
	}
	for _, key := range args[1:] {
		if _, ok := c.tx.watched[string(key)]; ok {
			continue
		}
		if c.tx.bytes += len(key) + 64; c.tx.bytes > maxTransaction {
			c.reply.error("ERR too many watched keys")
			return
		}
		c.tx.watched[string(key)] = c.store.Version(key)
	}
	c.reply.ok()
}

func cmdUnwatch(c *client, args [][]byte) {
	c.tx.watched, c.tx.bytes = nil, 0 // nothing is queued
	c.reply.ok()
}
