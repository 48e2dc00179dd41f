package kv

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// oddRows has for each command that takes keys what it says to a key that is too
// long, %s, and to keys of the other type: s is a string, h a hash. Arguments may
// have \x00 and \xff.
var oddRows = map[string][][2]string{
	"get":         {{"get %s", "nil"}, {"get h", wrongTypeText}},
	"set":         {{"set %s v", tooLongText}, {"set h v", "+OK"}},
	"setnx":       {{"setnx %s v", tooLongText}, {"setnx h v", "0"}},
	"setex":       {{"setex %s 9 v", tooLongText}, {"setex h 9 v", "+OK"}},
	"psetex":      {{"psetex %s 9000 v", tooLongText}, {"psetex h 9000 v", "+OK"}},
	"mget":        {{"mget %s s", `[nil "v"]`}, {"mget h s", `[nil "v"]`}},
	"mset":        {{"mset s w %s v", tooLongText}, {"get s", `"v"`}, {"mset h v", "+OK"}},
	"msetnx":      {{"msetnx new w %s v", tooLongText}, {"get new", "nil"}, {"msetnx h v", "0"}},
	"incr":        {{"incr %s", tooLongText}, {"incr h", wrongTypeText}},
	"decr":        {{"decr %s", tooLongText}, {"decr h", wrongTypeText}},
	"incrby":      {{"incrby %s 1", tooLongText}, {"incrby h 1", wrongTypeText}},
	"decrby":      {{"decrby %s 1", tooLongText}, {"decrby h 1", wrongTypeText}},
	"incrbyfloat": {{"incrbyfloat %s 1", tooLongText}, {"incrbyfloat h 1", wrongTypeText}},
	"append":      {{"append %s v", tooLongText}, {"append h v", wrongTypeText}},
	"strlen":      {{"strlen %s", "0"}, {"strlen h", wrongTypeText}},
	"getset":      {{"getset %s v", tooLongText}, {"getset h v", wrongTypeText}},
	"getdel":      {{"getdel %s", "nil"}, {"getdel h", wrongTypeText}},
	"getex":       {{"getex %s ex 9", "nil"}, {"getex h ex 9", wrongTypeText}, {"ttl h", "-1"}},
	"setrange":    {{"setrange %s 0 v", tooLongText}, {"setrange h 0 v", wrongTypeText}},
	"getrange":    {{"getrange %s 0 1", `""`}, {"getrange h 0 1", wrongTypeText}},
	"substr":      {{"substr %s 0 1", `""`}, {"substr h 0 1", wrongTypeText}},

	"del":         {{"del %s s h", "2"}},
	"unlink":      {{"unlink %s s h", "2"}},
	"exists":      {{"exists %s s h", "2"}},
	"touch":       {{"touch %s s h", "2"}},
	"type":        {{"type %s", "+none"}, {"type s", "+string"}, {"type h", "+hash"}},
	"expire":      {{"expire %s 9", "0"}, {"expire h 9", "1"}},
	"pexpire":     {{"pexpire %s 9000", "0"}, {"pexpire h 9000", "1"}},
	"expireat":    {{"expireat %s 99999999999", "0"}, {"expireat h 99999999999", "1"}},
	"pexpireat":   {{"pexpireat %s 99999999999999", "0"}, {"pexpireat h 99999999999999", "1"}},
	"ttl":         {{"ttl %s", "-2"}, {"ttl h", "-1"}},
	"pttl":        {{"pttl %s", "-2"}, {"pttl h", "-1"}},
	"expiretime":  {{"expiretime %s", "-2"}, {"expiretime h", "-1"}},
	"pexpiretime": {{"pexpiretime %s", "-2"}, {"pexpiretime h", "-1"}},
	"persist":     {{"persist %s", "0"}, {"persist h", "0"}},
	"rename":      {{"rename %s s", "-ERR no such key"}, {"rename s %s", tooLongText}, {"get s", `"v"`}, {"rename h s", "+OK"}, {"type s", "+hash"}},
	"renamenx":    {{"renamenx %s new", "-ERR no such key"}, {"renamenx s %s", tooLongText}, {"get s", `"v"`}, {"renamenx h s", "0"}},
	"watch":       {{"watch %s", "+OK"}, {"watch h", "+OK"}},

	"hset":    {{"hset %s f v", tooLongText}, {"hset h %s v", tooLongText}, {"hset s f v", wrongTypeText}},
	"hmset":   {{"hmset %s f v", tooLongText}, {"hmset h %s v", tooLongText}, {"hmset s f v", wrongTypeText}},
	"hsetnx":  {{"hsetnx %s f v", tooLongText}, {"hsetnx h %s v", tooLongText}, {"hsetnx s f v", wrongTypeText}},
	"hget":    {{"hget %s f", "nil"}, {"hget h %s", "nil"}, {"hget s f", wrongTypeText}},
	"hmget":   {{"hmget %s f", "[nil]"}, {"hmget h %s f", `[nil "v"]`}, {"hmget s f", wrongTypeText}},
	"hdel":    {{"hdel %s f", "0"}, {"hdel h %s f", "1"}, {"hdel s f", wrongTypeText}},
	"hgetall": {{"hgetall %s", "[]"}, {"hgetall s", wrongTypeText}},
	"hkeys":   {{"hkeys %s", "[]"}, {"hkeys s", wrongTypeText}},
	"hvals":   {{"hvals %s", "[]"}, {"hvals s", wrongTypeText}},
	"hlen":    {{"hlen %s", "0"}, {"hlen s", wrongTypeText}},
	"hexists": {{"hexists %s f", "0"}, {"hexists h %s", "0"}, {"hexists s f", wrongTypeText}},
	"hstrlen": {{"hstrlen %s f", "0"}, {"hstrlen h %s", "0"}, {"hstrlen s f", wrongTypeText}},
	"hincrby": {{"hincrby %s f 1", tooLongText}, {"hincrby h %s 1", tooLongText}, {"hincrby s f 1", wrongTypeText}},
	"hscan":   {{"hscan %s 0", `["0" []]`}, {"hscan s 0", wrongTypeText}},

	// Those without keys have what they say to other nonsense.
	"keys":         {{"keys %s", "[]"}, {"keys [", "[]"}},
	"scan":         {{"scan -1", "-ERR invalid cursor"}, {"scan 0 match %s count 9999", `["0" []]`}},
	"randomkey":    {{"randomkey x", arityOf("randomkey")}},
	"dbsize":       {{"dbsize x", arityOf("dbsize")}, {"dbsize", "2"}},
	"flushdb":      {{"flushdb now", syntaxText}, {"dbsize", "2"}},
	"flushall":     {{"flushall %s", syntaxText}, {"dbsize", "2"}},
	"ping":         {{"ping a b", arityOf("ping")}},
	"echo":         {{"echo", arityOf("echo")}, {"echo a b", arityOf("echo")}},
	"select":       {{"select 1", "-ERR DB index is out of range"}, {"select %s", notIntegerText}, {"select -1", "-ERR DB index is out of range"}},
	"quit":         {{"quit now", "+OK"}},
	"reset":        {{"reset x", arityOf("reset")}},
	"auth":         {{"auth a b c", syntaxText}, {"auth %s", "-" + textNoPass}},
	"hello":        {{"hello 4", "-NOPROTO unsupported protocol version"}, {"hello x", "-ERR Protocol version is not an integer or out of range"}, {"hello 2 setname \x00", "-" + textBadName}, {"hello 2 auth s", "-ERR Syntax error in HELLO option 'auth'"}},
	"client":       {{"client", arityOf("client")}, {"client setname \xff", "-" + textBadName}, {"client nonsense", "-ERR unknown subcommand 'nonsense'. Try CLIENT HELP."}},
	"info":         {{"info %s", `""`}},
	"time":         {{"time x", arityOf("time")}},
	"command":      {{"command nonsense", "-ERR unknown subcommand 'nonsense'. Try COMMAND HELP."}, {"command getkeys", "-ERR unknown subcommand 'getkeys'. Try COMMAND HELP."}, {"command getkeys get", "-ERR Invalid number of arguments specified for command"}, {"command info %s", "[nil]"}},
	"config":       {{"config set maxmemory 1", "-ERR CONFIG SET is not possible: the server's configuration file has these settings"}, {"config get %s", "[]"}},
	"subscribe":    {{"subscribe", arityOf("subscribe")}},
	"psubscribe":   {{"psubscribe", arityOf("psubscribe")}},
	"unsubscribe":  {{"unsubscribe none", `["unsubscribe" "none" 0]`}},
	"punsubscribe": {{"punsubscribe none", `["punsubscribe" "none" 0]`}},
	"publish":      {{"publish c", arityOf("publish")}, {"publish %s m", "0"}},
	"pubsub":       {{"pubsub nonsense", "-ERR unknown subcommand 'nonsense'. Try PUBSUB HELP."}, {"pubsub numpat x", "-ERR unknown subcommand 'numpat'. Try PUBSUB HELP."}},
	"monitor":      {{"monitor x", arityOf("monitor")}},
	"multi":        {{"multi x", arityOf("multi")}, {"multi", "+OK"}, {"multi", "-ERR MULTI calls can not be nested"}, {"get", arityOf("get")}, {"exec", "-EXECABORT Transaction discarded because of previous errors."}},
	"exec":         {{"exec", "-ERR EXEC without MULTI"}, {"exec x", arityOf("exec")}},
	"discard":      {{"discard", "-ERR DISCARD without MULTI"}},
	"unwatch":      {{"unwatch x", arityOf("unwatch")}},
	"eval":         {{"eval %s 0", "-" + textUnknownScript}, {"eval return", arityOf("eval")}},
	"evalsha":      {{"evalsha %s 0", "-NOSCRIPT No matching script. Please use EVAL."}, {"evalsha x", arityOf("evalsha")}},
	"script":       {{"script load %s", "-" + textUnknownScript}, {"script exists \xff", "[0]"}, {"script nonsense", "-ERR unknown subcommand 'nonsense'. Try SCRIPT HELP."}},
}

// arityOf is what a command says to the wrong number of arguments.
func arityOf(name string) string {
	return "-ERR wrong number of arguments for '" + name + "' command"
}

const (
	wrongTypeText  = "-WRONGTYPE Operation against a key holding the wrong kind of value"
	tooLongText    = "-ERR string exceeds maximum allowed size"
	syntaxText     = "-" + textSyntax
	notIntegerText = "-" + textNotInteger
)

func TestEveryCommandMeetsWrongArguments(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", MaxKey+1)
	p := newServerFor(t)
	commands := newCommands()
	if got, want := p.do("command count"), fmt.Sprint(len(oddRows)); got != want {
		t.Errorf("COMMAND COUNT is %s, and %s have rows", got, want)
	}
	for name := range oddRows {
		if commands[name] == nil {
			t.Errorf("%s has rows and is no command", name)
		}
	}
	bytes := strings.NewReplacer("%s", long, `\x00`, "\x00", `\xff`, "\xff")
	for name := range commands {
		rows := oddRows[name]
		if rows == nil {
			t.Errorf("%s has no row", name)
		}
		p.do("flushdb")
		p.do("set s v")
		p.do("hset h f v")
		do := func(args ...string) string {
			if _, err := io.WriteString(p.conn, arrayOf(args...)); err != nil {
				t.Fatal(err)
			}
			return p.read()
		}
		for _, row := range rows {
			var args []string
			for _, arg := range strings.Fields(row[0]) {
				args = append(args, bytes.Replace(arg))
			}
			if got := do(args...); got != row[1] {
				t.Errorf("%.100s: %s, want %s", row[0], got, row[1])
			}
		}
		if name == "quit" {
			p = newServerFor(t)
		}
	}
}

// Every command with one argument less than it needs, and where their number is
// fixed with one more, says so.
func TestEveryCommandCountsItsArguments(t *testing.T) {
	t.Parallel()
	p := newServerFor(t)
	for name, cmd := range newCommands() {
		counts := []int{cmd.arity - 1, cmd.arity + 1}
		if cmd.arity < 0 {
			counts = []int{-cmd.arity - 1}
		}
		for _, count := range counts {
			if count < 1 {
				continue
			}
			args := append([]string{name}, make([]string, count-1)...)
			if _, err := io.WriteString(p.conn, arrayOf(args...)); err != nil {
				t.Fatal(err)
			}
			if got := p.read(); got != arityOf(name) {
				t.Errorf("%s with %d arguments: %s", name, count-1, got)
			}
		}
	}
}

// arrayOf is a command as clients send it.
func arrayOf(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		b.WriteString(bulk([]byte(arg)))
	}
	return b.String()
}

// Whatever the arguments, a command gets one reply, in RESP2 and RESP3, and the next
// one too.
func TestEveryCommandTakesOddArguments(t *testing.T) {
	t.Parallel()
	odd := []string{"", "\x00", "\xff\xfe", "-1", "0", "9223372036854775807", "-9223372036854775808", "1e400", "nan", "\r\n+OK\r\n", "*", "[", "h", "s", strings.Repeat("\\[*", 300)}
	for name, cmd := range newCommands() {
		if slices.Contains([]string{"quit", "subscribe", "psubscribe", "unsubscribe", "punsubscribe", "monitor", "exec"}, name) {
			continue // they end the connection, or have several replies or another kind
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newServerFor(t)
			for _, resp := range []string{"2", "3"} {
				fewest := max(cmd.arity, -cmd.arity)
				for count := fewest; count <= fewest+3; count++ {
					for i := range odd {
						args := []string{name}
						for j := 1; j < count; j++ {
							args = append(args, odd[(i+j*j)%len(odd)])
						}
						line := arrayOf("hello", resp) + arrayOf("set", "s", "v") + arrayOf(args...) + arrayOf("reset") + arrayOf("echo", "end")
						if _, err := io.WriteString(p.conn, line); err != nil {
							t.Fatal(err)
						}
						p.read()
						p.read()
						reply := p.read()
						if reset, end := p.read(), p.read(); reset != "+RESET" || end != `"end"` {
							t.Fatalf("%q: %.100s, then %q and %q", args, reset, reply, end)
						}
					}
				}
			}
		})
	}
}
