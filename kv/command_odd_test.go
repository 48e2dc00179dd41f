package kv

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// oddRows has for each command that takes keys what it says to a key that is too
// long, %s, and to keys of the other type: s is a string, h a hash.
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
}

const (
	wrongTypeText = "-WRONGTYPE Operation against a key holding the wrong kind of value"
	tooLongText   = "-ERR string exceeds maximum allowed size"
)

func TestEveryCommandMeetsWrongKeys(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", MaxKey+1)
	p := newServerFor(t)
	for name, cmd := range newCommands() {
		rows := oddRows[name]
		if rows == nil && cmd.keys.first > 0 {
			t.Errorf("%s takes keys and has no row", name)
		}
		p.do("flushdb")
		p.do("set s v")
		p.do("hset h f v")
		for _, row := range rows {
			args := strings.Fields(strings.Replace(row[0], "%s", long, 1))
			if _, err := io.WriteString(p.conn, arrayOf(args...)); err != nil {
				t.Fatal(err)
			}
			if got := p.read(); got != row[1] {
				t.Errorf("%s: %s, want %s", row[0], got, row[1])
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
