package kv

import (
	"bytes"
	"errors"
	"strings"
)

// A command is one that clients can send.
type command struct {
	name string
	// arity is the number of arguments, the name among them; -n is at least n.
	arity int
	flags commandFlags
	keys  keyRange
	run   func(c *client, args [][]byte)
}

type commandFlags uint8

const (
	forStrangers   commandFlags = 1 << iota // before the client has authenticated
	forSubscribers                          // while it has subscribed, in RESP2
	atOnce                                  // within a transaction it is not queued
	noGate                                  // takes no part in transactions
	noTransaction                           // cannot be queued
	writes                                  // changes keys
	takesLong                               // or waits for others: not for a loop
	secret                                  // monitors do not see it
)

// A keyRange says which arguments are keys: from the first to the last, which
// counts from the end if it is below zero, by steps. Zero is none.
type keyRange struct{ first, last, step int }

var (
	oneKey   = keyRange{1, 1, 1}
	allKeys  = keyRange{1, -1, 1}
	allPairs = keyRange{1, -1, 2}
	twoKeys  = keyRange{1, 2, 1}
)

func newCommands() map[string]*command {
	commands := make(map[string]*command)
	for _, list := range [][]command{
		stringCommands, counterCommands, keyCommands, hashCommands, connectionCommands,
		infoCommands, pubsubCommands, transactionCommands, scriptCommands,
	} {
		for i := range list {
			commands[list[i].name] = &list[i]
		}
	}
	return commands
}

// command finds a command by its name in letters of any case.
func (s *Server) command(name []byte) *command {
	var lower [24]byte
	if len(name) > len(lower) {
		return nil
	}
	for i, b := range name {
		if b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		lower[i] = b
	}
	return s.commands[string(lower[:len(name)])]
}

// run answers one command. It reports false if that is not for the loop that runs
// it.
func (c *client) run(args [][]byte) bool {
	cmd := c.last
	if cmd == nil || string(args[0]) != c.lastName {
		cmd = c.server.command(args[0])
		c.last, c.lastName = cmd, string(args[0][:min(len(args[0]), 24)])
	}
	if cmd == nil && isHTTP(args[0]) {
		c.server.opts.Log.Warn("an HTTP request came where clients of Redis are served", "address", c.address)
		c.closing = true
		return true
	}
	if text := c.refuse(cmd, args); text != "" {
		c.tx.failed = c.tx.active
		c.reply.error(text)
		return true
	}
	if c.tx.active && cmd.flags&atOnce == 0 {
		c.queueCommand(cmd, args)
		return true
	}
	if c.parked() && (cmd.flags&takesLong != 0 || c.tx.long) {
		c.leaving = true
		return false
	}
	c.commands++
	c.report(cmd, args)
	if cmd.flags&noGate != 0 {
		cmd.run(c, args)
		return true
	}
	c.store.gate.RLock()
	defer c.store.gate.RUnlock()
	cmd.run(c, args)
	return true
}

// isHTTP reports whether a line starts like one of HTTP. A page that somebody else
// wrote can have a browser post to this address: the lines of its body are not to
// be run as commands. All browsers send a Host before the body.
func isHTTP(name []byte) bool {
	return bytes.EqualFold(name, []byte("post")) || bytes.EqualFold(name, []byte("host:"))
}

// report shows a command that runs to the monitors of its Store.
func (c *client) report(cmd *command, args [][]byte) {
	if c.store != nil && c.store.Monitored() && cmd.flags&secret == 0 {
		c.store.Report(c.address, string(args[0]), args[1:]...)
	}
}

// refuse returns the error for a command that cannot run.
func (c *client) refuse(cmd *command, args [][]byte) string {
	switch {
	case cmd == nil && c.store == nil:
		return "NOAUTH Authentication required."
	case cmd == nil:
		return unknown(args)
	case cmd.arity > 0 && len(args) != cmd.arity || len(args) < -cmd.arity:
		return "ERR wrong number of arguments for '" + cmd.name + "' command"
	case c.store == nil && cmd.flags&forStrangers == 0:
		return "NOAUTH Authentication required."
	case c.tx.active && cmd.flags&noTransaction != 0:
		return "ERR Command not allowed inside a transaction"
	case c.reply.resp == 2 && cmd.flags&forSubscribers == 0 && c.subscribed() > 0:
		return "ERR Can't execute '" + cmd.name + "': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
	}
	return ""
}

func unknown(args [][]byte) string {
	var b strings.Builder
	b.WriteString("ERR unknown command '" + short(args[0]) + "', with args beginning with: ")
	for _, arg := range args[1:min(len(args), 5)] {
		b.WriteString("'" + short(arg) + "' ")
	}
	return b.String()
}

func short(arg []byte) string { return string(arg[:min(len(arg), 64)]) }

func unknownSub(cmd string, arg []byte) string {
	return "ERR unknown subcommand '" + short(arg) + "'. Try " + strings.ToUpper(cmd) + " HELP."
}

const (
	textSyntax     = "ERR syntax error"
	textNotInteger = "ERR value is not an integer or out of range"
	textNotFloat   = "ERR value is not a valid float"
	textOverflow   = "ERR increment or decrement would overflow"
)

// fail writes the error of a Store's method in Redis's words.
func (c *client) fail(err error) {
	c.reply.error(redisError(err))
}

func redisError(err error) string {
	switch {
	case errors.Is(err, ErrWrongType):
		return "WRONGTYPE Operation against a key holding the wrong kind of value"
	case errors.Is(err, ErrFull):
		return "OOM command not allowed when used memory > 'maxmemory'."
	case errors.Is(err, ErrTooLong):
		return "ERR string exceeds maximum allowed size"
	case errors.Is(err, ErrReplyTooLong):
		return "ERR the reply would be too long"
	case errors.Is(err, ErrNotInteger):
		return textNotInteger
	case errors.Is(err, ErrOverflow):
		return textOverflow
	case errors.Is(err, ErrNotFloat):
		return textNotFloat
	case errors.Is(err, ErrNoNumber):
		return "ERR increment would produce NaN or Infinity"
	}
	return "ERR " + err.Error()
}

// integer parses an argument, or writes an error.
func (c *client) integer(arg []byte) (int64, bool) {
	n, ok := parseInt(arg)
	if !ok {
		c.reply.error(textNotInteger)
	}
	return n, ok
}

func (c *client) boolean(b bool) {
	if b {
		c.reply.b = append(c.reply.b, ":1\r\n"...)
	} else {
		c.reply.b = append(c.reply.b, ":0\r\n"...)
	}
}

// is reports whether an argument is a word, in letters of any case.
func is(arg []byte, word string) bool {
	return len(arg) == len(word) && strings.EqualFold(string(arg), word)
}

func (c *client) okOr(err error) {
	if err != nil {
		c.fail(err)
		return
	}
	c.reply.ok()
}

func (c *client) integerOr(n int64, err error) {
	if err != nil {
		c.fail(err)
		return
	}
	c.reply.integer(n)
}

func (c *client) booleanOr(b bool, err error) {
	if err != nil {
		c.fail(err)
		return
	}
	c.boolean(b)
}

func (c *client) valueOr(value []byte, err error) {
	if err != nil {
		c.fail(err)
		return
	}
	c.reply.value(value)
}
