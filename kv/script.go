package kv

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
)

// No Lua runs here. The scripts that PHP's frameworks send are few, so a script
// is known by its text, as canonical has it, and done in Go: scriptknown.go lists
// them. Any other is refused.

var scriptCommands = []command{
	{"eval", -3, writes, keyRange{}, cmdEval},
	{"evalsha", -3, writes, keyRange{}, cmdEvalSHA},
	{"script", -2, noGate, keyRange{}, cmdScript},
}

// canonical returns a script without what does not matter: blanks, comments, the
// kind of quotes, and the case of commands' names.
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
	text = b.String()
	b.Reset()
	for {
		const call = `redis.call("`
		before, after, found := strings.Cut(text, call)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, rest, closed := strings.Cut(after, `"`)
		b.WriteString(call + strings.ToLower(name))
		if text = rest; closed {
			b.WriteByte('"')
		}
	}
}

// textUnknownScript names what there is, for who reads it in an application's log.
const textUnknownScript = "ERR unknown script: this server runs no Lua and knows only the scripts of " +
	"Laravel (cache, locks, throttle, funnel, broadcasting), Symfony (locks), phpredis (sessions) " +
	"and those of Redis's documentation that release or extend a lock"

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
	case !s.takes(int(n), len(rest)-int(n)):
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
