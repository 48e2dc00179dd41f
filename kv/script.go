package kv

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"time"
)

// No Lua runs here. The scripts that PHP's frameworks send are few, so a script
// is known by its text, blanks, comments and the kind of quotes aside, and done
// in Go. Any other is refused.

var scriptCommands = []command{
	{"eval", -3, writes, keyRange{}, cmdEval},
	{"evalsha", -3, writes, keyRange{}, cmdEvalSHA},
	{"script", -2, noGate, keyRange{}, cmdScript},
}

// A script is one that is known. It has these numbers of keys and arguments.
type script struct {
	keys, args int
	run        func(c *client, keys, args [][]byte)
}

// scripts are those that are known, by their text as canonical has it.
var scripts = map[string]script{
	// The release of a lock: Laravel, the sessions of phpredis, Redis's own
	// documentation.
	`ifredis.call("get",KEYS[1])==ARGV[1]thenreturnredis.call("del",KEYS[1])elsereturn0end`: {1, 1, scriptDelIf},
	// Its refresh.
	`ifredis.call("get",KEYS[1])==ARGV[1]thenreturnredis.call("expire",KEYS[1],ARGV[2])elsereturn0end`: {1, 2,
		func(c *client, keys, args [][]byte) { c.scriptExpireIf(keys[0], args, time.Second) }},
	`ifredis.call("get",KEYS[1])==ARGV[1]thenreturnredis.call("pexpire",KEYS[1],ARGV[2])elsereturn0end`: {1, 2,
		func(c *client, keys, args [][]byte) { c.scriptExpireIf(keys[0], args, time.Millisecond) }},
	// Cache::add of Laravel.
	`returnredis.call("exists",KEYS[1])<1andredis.call("setex",KEYS[1],ARGV[2],ARGV[1])`: {1, 2, scriptAdd},
}

// sums are more of those that are known, by the SHA-1 of their text as canonical
// has it: the lock store of Symfony 5.4 and what has the same scripts. It asks
// first whether scripts may know the time; each is there for both answers.
var sums = map[string]script{
	"73d3c883d3d24564f259191384bd9e12679e71bc": {1, 0, func(c *client, _, _ [][]byte) { c.reply.integer(1) }},
	"94ebcd52673e3f3b938aa5e6ddb4df804c16dda9": holderScript(holders.save),
	"e14b0b6861a17af4908ab85cba3b34e423d5b2e9": holderScript(holders.save),
	"3344db4141bdb20edad1ee1485c9b064726f98a4": holderScript(holders.saveRead),
	"7ed7c116ddf525c0196016394f224ff02702799f": holderScript(holders.saveRead),
	"2b3518908b2342868b68d6c6ca245291392fb991": holderScript(holders.extend),
	"676aeb3887de74c89c4facb634c44880e3b0416d": holderScript(holders.extend),
	"e8f724dc0c23f1dfb4ddbb8062920dc2e5498068": {1, 2, scriptHolderExists},
	"99c6da1ca3beb448793e03ba2f297e0d389859b3": {1, 2, scriptHolderExists},
	"c1f2c6fad5c61cff5a873a17f6edf72dc337d692": {1, 1, scriptHolderRemove},
}

// canonical returns a script without what does not matter.
func canonical(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if i := strings.Index(line, "--"); i >= 0 {
			line = line[:i]
		}
		for _, c := range []byte(line) {
			switch c {
			case ' ', '\t', '\r', '\n', ';':
			case '\'':
				b.WriteByte('"')
			default:
				b.WriteByte(c)
			}
		}
	}
	return b.String()
}

const textUnknownScript = "ERR this server runs no Lua; it knows only the scripts that its documentation lists"

// maxScripts limits the texts that EVALSHA finds: those that differ in blanks.
const maxScripts = 1000

// load finds a script by its text and lets EVALSHA find it.
func (s *Server) load(text []byte) (sha string, found *script) {
	if len(text) > 64<<10 {
		return "", nil
	}
	plain := canonical(string(text))
	known, ok := scripts[plain]
	if !ok {
		known, ok = sums[hexSHA1(plain)]
	}
	if !ok {
		return "", nil
	}
	sha = hexSHA1(string(text))
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.scripts) < maxScripts {
		s.scripts[sha] = &known
	}
	return sha, &known
}

func hexSHA1(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (s *Server) loaded(sha []byte) *script {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scripts[strings.ToLower(string(sha))]
}

func cmdEval(c *client, args [][]byte) {
	_, found := c.server.load(args[1])
	if found == nil {
		c.reply.error(textUnknownScript)
		return
	}
	c.runScript(found, args[2:])
}

func cmdEvalSHA(c *client, args [][]byte) {
	found := c.server.loaded(args[1])
	if found == nil {
		c.reply.error("NOSCRIPT No matching script. Please use EVAL.")
		return
	}
	c.runScript(found, args[2:])
}

// runScript runs a script with what stands behind its name.
func (c *client) runScript(s *script, args [][]byte) {
	n, ok := c.integer(args[0])
	if !ok {
		return
	}
	rest := args[1:]
	switch {
	case n < 0:
		c.reply.error("ERR Number of keys can't be negative")
	case n > int64(len(rest)):
		c.reply.error("ERR Number of keys can't be greater than number of args")
	case int(n) != s.keys || len(rest)-int(n) < s.args:
		c.reply.error("ERR wrong number of keys or arguments for this script")
	default:
		s.run(c, rest[:n], rest[n:])
	}
}

func cmdScript(c *client, args [][]byte) {
	sub, rest := args[1], args[2:]
	switch {
	case is(sub, "load") && len(rest) == 1:
		sha, found := c.server.load(rest[0])
		if found == nil {
			c.reply.error(textUnknownScript)
			return
		}
		c.reply.text(sha)
	case is(sub, "exists") && len(rest) > 0:
		c.reply.array(len(rest))
		for _, sha := range rest {
			c.boolean(c.server.loaded(sha) != nil)
		}
	case is(sub, "flush") && len(rest) <= 1:
		c.server.mu.Lock()
		clear(c.server.scripts)
		c.server.mu.Unlock()
		c.reply.ok()
	default:
		c.reply.error(unknownSub("script", sub))
	}
}

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
		c.reply.error("ERR invalid expire time in 'expire' command")
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
