package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"ephpm/server"
)

const kvUsage = `Usage:
  ephpm kv get KEY                         print a value, byte for byte
  ephpm kv set KEY [VALUE] [--ttl SECONDS] [--nx]
                                           store VALUE, or what comes on stdin; with
                                           --nx only if the key is not there
  ephpm kv del KEY...                      delete keys, print how many there were
  ephpm kv keys [PREFIX | GLOB] [-0]       print the keys, one a line, or each with a
                                           NUL behind it
  ephpm kv ttl KEY                         print the seconds left, -1 for no limit
  ephpm kv incr KEY [--by N]               add N, or 1, and print the sum
  ephpm kv ping                            print PONG if the store answers
  ephpm kv monitor                         print every command as it happens

  They reach a server that runs, over its control socket.

Flags:
  -c, -config FILE   the configuration of the server; ephpm.toml here when left out,
                     or the only server that runs
  -site NAME         one of the host names of the site, if there are several
  --                 what follows is a key or a value, whatever it starts with

Exit status: 0 done, 1 no such key or an error, 2 a wrong command line.
`

// A kvLine is what a command line of ephpm kv says.
type kvLine struct {
	args   []string // behind the command
	config string
	site   string
	ttl    int64 // seconds; 0: none
	nx     bool
	by     int64
	zero   bool // a NUL ends each key
	flags  []string

	stdin  io.Reader
	stdout io.Writer
}

// A kvCommand is one command of ephpm kv.
type kvCommand struct {
	least, most int      // arguments; most < 0: any number
	want        string   // the arguments, for messages
	flags       []string // beside those of all commands
	run         func(context.Context, *kvLine, *server.KVClient) error
}

var kvCommands = map[string]kvCommand{
	"get":  {least: 1, most: 1, want: "KEY", run: kvGet},
	"set":  {least: 1, most: 2, want: "KEY [VALUE]", flags: []string{"ttl", "nx"}, run: kvSet},
	"del":  {least: 1, most: -1, want: "KEY...", run: kvDel},
	"keys": {most: 1, want: "[PREFIX | GLOB]", flags: []string{"0"}, run: kvKeys},
	"ttl":  {least: 1, most: 1, want: "KEY", run: kvTTL},
	"incr": {least: 1, most: 1, want: "KEY", flags: []string{"by"}, run: kvIncr},
	"ping": {want: "no arguments", run: kvPing},

	"monitor": {want: "no arguments", run: kvMonitor},
}

// kvStore runs a command line of ephpm kv.
func kvStore(args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	l := &kvLine{by: 1, stdin: stdin, stdout: stdout}
	command, err := l.parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, kvUsage)
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "error: %v\n\n%s", err, kvUsage)
		return 2
	}
	if err := l.run(command, environ); err != nil {
		return fail(stderr, err)
	}
	return 0
}

// parse reads the command line. Flags may stand anywhere before a "--".
func (l *kvLine) parse(args []string) (kvCommand, error) {
	flags := l.flagSet()
	for {
		if err := flags.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return kvCommand{}, err
			}
			return kvCommand{}, fmt.Errorf("ephpm kv: %w", err)
		}
		rest := flags.Args()
		if n := len(args) - len(rest); n > 0 && args[n-1] == "--" {
			l.args = append(l.args, rest...)
			break
		}
		if len(rest) == 0 {
			break
		}
		l.args, args = append(l.args, rest[0]), rest[1:]
	}
	flags.Visit(func(f *flag.Flag) { l.flags = append(l.flags, f.Name) })
	return l.command()
}

func (l *kvLine) flagSet() *flag.FlagSet {
	flags := newFlags("kv")
	stringFlag(flags, &l.config, "c", "config")
	stringFlag(flags, &l.site, "site")
	flags.Func("ttl", "", func(s string) (err error) {
		l.ttl, err = strconv.ParseInt(s, 10, 64)
		if err != nil || l.ttl < 1 {
			return errors.New("want a number of seconds from 1")
		}
		return nil
	})
	flags.Func("by", "", func(s string) (err error) {
		if l.by, err = strconv.ParseInt(s, 10, 64); err != nil {
			return errors.New("want a whole number of 64 bits")
		}
		return nil
	})
	flags.BoolVar(&l.nx, "nx", false, "")
	flags.BoolVar(&l.zero, "0", false, "")
	return flags
}

// command finds the command, and takes it off the arguments.
func (l *kvLine) command() (kvCommand, error) {
	if len(l.args) == 0 {
		return kvCommand{}, errors.New("ephpm kv: a command is missing")
	}
	name := l.args[0]
	l.args = l.args[1:]
	c, ok := kvCommands[name]
	if !ok {
		return c, unknownKV(name)
	}
	if n := len(l.args); n < c.least || c.most >= 0 && n > c.most {
		return c, fmt.Errorf("ephpm kv %s: %d arguments, want %s", name, n, c.want)
	}
	for _, f := range l.flags {
		if !slices.Contains([]string{"c", "config", "site"}, f) && !slices.Contains(c.flags, f) {
			return c, fmt.Errorf("ephpm kv %s has no flag -%s", name, f)
		}
	}
	return c, nil
}

func unknownKV(name string) error {
	text := fmt.Sprintf("ephpm kv: unknown command %q", name)
	names := []string{"get", "set", "del", "keys", "ttl", "incr", "ping", "monitor"}
	if near := nearest(name, names); near != "" {
		text += "; did you mean " + near + "?"
	}
	return errors.New(text)
}

// run connects to the server and runs the command.
func (l *kvLine) run(c kvCommand, environ []string) (err error) {
	ctx := context.Background() // a signal ends the process
	socket, err := serverSocket(l.config, environ)
	if err != nil {
		return err
	}
	client, err := server.DialKV(ctx, socket, l.site)
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // all was answered
	err = c.run(ctx, l, client)
	switch {
	case errors.Is(err, server.ErrNoKey) && len(l.args) == 1:
		return fmt.Errorf("there is no key %q", l.args[0])
	case errors.Is(err, server.ErrNoKey):
		return errors.New("there is none of the keys")
	case errors.Is(err, server.ErrHasKey):
		return fmt.Errorf("there is a key %q already", l.args[0])
	}
	return err
}

func kvGet(ctx context.Context, l *kvLine, c *server.KVClient) error {
	value, err := c.Get(ctx, l.args[0])
	if err != nil {
		return err
	}
	if file, ok := l.stdout.(*os.File); ok && isTerminal(file) {
		value = append(value, '\n')
	}
	_, err = l.stdout.Write(value)
	return err
}

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func kvSet(ctx context.Context, l *kvLine, c *server.KVClient) error {
	var value []byte
	var err error
	if len(l.args) == 2 {
		value = []byte(l.args[1])
	} else if value, err = io.ReadAll(io.LimitReader(l.stdin, server.MaxKVCall+1)); err != nil {
		return err
	}
	if l.nx {
		return c.SetNX(ctx, l.args[0], value, l.ttl)
	}
	return c.Set(ctx, l.args[0], value, l.ttl)
}

func kvDel(ctx context.Context, l *kvLine, c *server.KVClient) error {
	n, err := c.Del(ctx, l.args...)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(l.stdout, n); err != nil {
		return err
	}
	if n == 0 {
		return server.ErrNoKey
	}
	return nil
}

func kvKeys(ctx context.Context, l *kvLine, c *server.KVClient) error {
	pattern, end := "", byte('\n')
	if len(l.args) > 0 {
		pattern = l.args[0]
	}
	if l.zero {
		end = 0
	}
	out := bufio.NewWriter(l.stdout)
	err := c.Keys(ctx, pattern, func(key []byte) error {
		_, _ = out.Write(key) // WriteByte has its error as well
		return out.WriteByte(end)
	})
	return errors.Join(err, out.Flush())
}

func kvTTL(ctx context.Context, l *kvLine, c *server.KVClient) error {
	seconds, err := c.TTL(ctx, l.args[0])
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(l.stdout, seconds)
	return err
}

func kvIncr(ctx context.Context, l *kvLine, c *server.KVClient) error {
	n, err := c.IncrBy(ctx, l.args[0], l.by)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(l.stdout, n)
	return err
}

func kvPing(ctx context.Context, l *kvLine, c *server.KVClient) error {
	if err := c.Ping(ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintln(l.stdout, "PONG")
	return err
}

// kvMonitor prints commands until it is killed or the server stops.
func kvMonitor(ctx context.Context, l *kvLine, c *server.KVClient) error {
	out := bufio.NewWriter(l.stdout)
	return c.Monitor(ctx, func(lines [][]byte, lost int64) error {
		for _, line := range lines {
			_, _ = out.Write(line) // WriteByte has its error as well
			if err := out.WriteByte('\n'); err != nil {
				return err
			}
		}
		if lost > 0 {
			if _, err := fmt.Fprintf(out, "# %d lines are lost: this reader was too slow\n", lost); err != nil {
				return err
			}
		}
		return out.Flush()
	})
}
