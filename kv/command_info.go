package kv

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// redisVersion is the version of Redis whose commands these are; clients choose
// what they send by it.
const redisVersion = "7.0.0"

var infoCommands = []command{
	{"info", -1, noGate, keyRange{}, cmdInfo},
	{"time", 1, noGate, keyRange{}, cmdTime},
	{"command", -1, noGate, keyRange{}, cmdCommand},
	{"config", -2, noGate, keyRange{}, cmdConfig},
}

func cmdInfo(c *client, args [][]byte) {
	sections := []string{"server", "clients", "memory", "persistence", "stats", "replication", "keyspace"}
	wanted := sections
	if len(args) > 1 {
		wanted = nil
		for _, arg := range args[1:] {
			if is(arg, "all") || is(arg, "default") || is(arg, "everything") {
				wanted = sections
				break
			}
			wanted = append(wanted, strings.ToLower(string(arg)))
		}
	}
	var b strings.Builder
	for _, section := range sections {
		if slices.Contains(wanted, section) {
			if b.Len() > 0 {
				b.WriteString("\r\n")
			}
			c.writeSection(&b, section)
		}
	}
	c.reply.text(b.String())
}

func (c *client) writeSection(b *strings.Builder, section string) {
	line := func(key string, value any) { fmt.Fprintf(b, "%s:%v\r\n", key, value) }
	fmt.Fprintf(b, "# %s\r\n", strings.ToUpper(section[:1])+section[1:])
	st, server := c.store.Stats(), c.server.Stats()
	switch section {
	case "server":
		line("redis_version", redisVersion)
		line("redis_mode", "standalone")
		line("ephpm_version", c.server.opts.Version)
		line("os", runtime.GOOS)
		line("arch_bits", strconv.IntSize)
		line("process_id", os.Getpid())
		line("uptime_in_seconds", int(time.Since(c.server.started).Seconds()))
	case "clients":
		line("connected_clients", server.Open)
		line("maxclients", c.server.opts.MaxConnections)
		line("mem_clients_normal", server.Memory)
		line("maxmemory_clients", c.server.opts.ClientsMemory)
	case "memory":
		line("used_memory", st.Bytes)
		line("maxmemory", st.Limit)
		line("maxmemory_policy", c.store.opts.Policy)
	case "persistence":
		line("loading", 0)
	case "stats":
		line("total_connections_received", server.Connections)
		line("rejected_connections", server.Refused)
		line("total_commands_processed", server.Commands)
		line("expired_keys", st.Expired)
		line("evicted_keys", st.Evictions)
		line("evicted_clients", server.Evicted)
		line("keyspace_hits", st.Hits)
		line("keyspace_misses", st.Misses)
		line("pubsub_channels", len(c.store.hub.names(nil)))
		line("pubsub_patterns", c.store.hub.patternCount())
	case "replication":
		line("role", "master")
		line("connected_slaves", 0)
	case "keyspace":
		if st.Keys > 0 {
			line("db0", fmt.Sprintf("keys=%d,expires=%d,avg_ttl=0", st.Keys, st.WithTTL))
		}
	}
}

func cmdTime(c *client, args [][]byte) {
	now := time.Now()
	c.reply.array(2)
	c.reply.text(strconv.FormatInt(now.Unix(), 10))
	c.reply.text(strconv.Itoa(now.Nanosecond() / 1000))
}

func cmdCommand(c *client, args [][]byte) {
	all := c.server.commands
	if len(args) == 1 {
		c.reply.array(len(all))
		for _, name := range c.server.commandNames() {
			c.describe(all[name])
		}
		return
	}
	sub, rest := args[1], args[2:]
	switch {
	case is(sub, "count") && len(rest) == 0:
		c.reply.integer(int64(len(all)))
	case is(sub, "list") && len(rest) == 0:
		c.reply.array(len(all))
		for _, name := range c.server.commandNames() {
			c.reply.text(name)
		}
	case is(sub, "info"):
		c.reply.array(len(rest))
		for _, name := range rest {
			if cmd := c.server.command(name); cmd != nil {
				c.describe(cmd)
			} else {
				c.reply.nullArray()
			}
		}
	case is(sub, "docs"):
		c.reply.pairs(0) // nobody needs them to work; redis-cli has its own
	case is(sub, "getkeys") && len(rest) > 0:
		c.keysOf(rest)
	default:
		c.reply.error(unknownSub("command", sub))
	}
}

func (s *Server) commandNames() []string {
	names := make([]string, 0, len(s.commands))
	for name := range s.commands {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// describe writes a command as COMMAND has it: name, arity, flags, and which
// arguments are keys.
func (c *client) describe(cmd *command) {
	c.reply.array(6)
	c.reply.text(cmd.name)
	c.reply.integer(int64(cmd.arity))
	flags := []string{"fast"}
	switch {
	case cmd.flags&writes != 0:
		flags = append(flags, "write")
	case cmd.keys.first > 0:
		flags = append(flags, "readonly")
	}
	if cmd.flags&forStrangers != 0 {
		flags = append(flags, "no_auth")
	}
	c.reply.array(len(flags))
	for _, flag := range flags {
		c.reply.simple(flag)
	}
	c.reply.integer(int64(cmd.keys.first))
	c.reply.integer(int64(cmd.keys.last))
	c.reply.integer(int64(cmd.keys.step))
}

func (c *client) keysOf(args [][]byte) {
	cmd := c.server.command(args[0])
	if cmd == nil {
		c.reply.error("ERR Invalid command specified")
		return
	}
	if cmd.arity > 0 && len(args) != cmd.arity || len(args) < -cmd.arity {
		c.reply.error("ERR Invalid number of arguments specified for command")
		return
	}
	if cmd.keys.first == 0 {
		c.reply.error("ERR The command has no key arguments")
		return
	}
	last := cmd.keys.last
	if last < 0 {
		last += len(args)
	}
	var keys [][]byte
	for i := cmd.keys.first; i <= last; i += cmd.keys.step {
		keys = append(keys, args[i])
	}
	c.reply.array(len(keys))
	for _, key := range keys {
		c.reply.bulk(key)
	}
}

// cmdConfig answers what tools ask for before they start. Nothing can be set.
func cmdConfig(c *client, args [][]byte) {
	if !is(args[1], "get") || len(args) < 3 {
		c.reply.error("ERR CONFIG SET is not possible: the server's configuration file has these settings")
		return
	}
	st := c.store.Stats()
	settings := [][2]string{
		{"appendonly", "no"},
		{"databases", "1"},
		{"maxclients", strconv.Itoa(c.server.opts.MaxConnections)},
		{"maxmemory-clients", strconv.FormatInt(c.server.opts.ClientsMemory, 10)},
		{"maxmemory", strconv.FormatInt(st.Limit, 10)},
		{"maxmemory-policy", string(c.store.opts.Policy)},
		{"save", ""},
	}
	settings = slices.DeleteFunc(settings, func(s [2]string) bool {
		return !slices.ContainsFunc(args[2:], func(p []byte) bool {
			return globMatch([]byte(strings.ToLower(string(p))), []byte(s[0]))
		})
	})
	c.reply.pairs(len(settings))
	for _, s := range settings {
		c.reply.text(s[0])
		c.reply.text(s[1])
	}
}
