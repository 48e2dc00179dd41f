package kv

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// serve starts a Server on a socket and returns its address.
func serve(t *testing.T, o ServerOptions) net.Addr {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	s := NewServer(o)
	go func() { done <- s.Serve(t.Context(), l) }()
	t.Cleanup(func() { // t.Context is done
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr()
}

// A peer is a client that shows replies as they come.
type peer struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func dial(t *testing.T, addr net.Addr) *peer {
	t.Helper()
	conn, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return &peer{t, conn, bufio.NewReader(conn)}
}

func (p *peer) send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.conn, line+"\r\n"); err != nil {
		p.t.Fatal(err)
	}
}

// do sends a line and returns the reply in short: a bulk string in quotes, an
// array in brackets, a map in braces.
func (p *peer) do(line string) string {
	p.t.Helper()
	p.send(line)
	return p.read()
}

func (p *peer) read() string {
	p.t.Helper()
	line, err := p.r.ReadString('\n')
	if err != nil {
		p.t.Fatalf("read a reply: %v", err)
	}
	line = strings.TrimSuffix(line, "\r\n")
	var n int
	_, _ = fmt.Sscanf(line[1:], "%d", &n)
	list := func(n int, open, shut string) string {
		parts := make([]string, 0, max(n, 0))
		for range n {
			parts = append(parts, p.read())
		}
		return open + strings.Join(parts, " ") + shut
	}
	switch {
	case line == "$-1" || line == "*-1" || line == "_":
		return "nil"
	case line[0] == '$':
		b := make([]byte, n+2)
		if _, err := io.ReadFull(p.r, b); err != nil {
			p.t.Fatal(err)
		}
		return fmt.Sprintf("%q", b[:n])
	case line[0] == '*':
		return list(n, "[", "]")
	case line[0] == '%':
		return list(2*n, "{", "}")
	case line[0] == '>':
		return list(n, ">[", "]")
	case line[0] == ':':
		return line[1:]
	}
	return line
}

func newServerFor(t *testing.T) *peer {
	return dial(t, serve(t, ServerOptions{Default: newStore(t, Options{MemoryLimit: 2 << 20})}))
}

// Each row is a fresh store, lines and the replies to them.
func TestCommands(t *testing.T) {
	const (
		wrongType  = "-WRONGTYPE Operation against a key holding the wrong kind of value"
		notInteger = "-ERR value is not an integer or out of range"
		syntax     = "-ERR syntax error"
	)
	for _, row := range [][]string{
		// Strings.
		{"get k", "nil", "set k v", "+OK", "get k", `"v"`, "GeT k", `"v"`},
		{`set "\x00\xff" "a\r\nb"`, "+OK", `get "\x00\xff"`, `"a\r\nb"`, `set "" ""`, "+OK", `get ""`, `""`},
		{"set k v nx", "+OK", "set k w nx", "nil", "set k w xx", "+OK", "set l w xx", "nil", "get k", `"w"`},
		{"set k v ex 100", "+OK", "ttl k", "100", "set k w keepttl", "+OK", "ttl k", "100", "set k w", "+OK", "ttl k", "-1"},
		{"set k v px 1500", "+OK", "ttl k", "2", "set k v exat 99999999999", "+OK", "expiretime k", "99999999999"},
		{"set k v pxat 99999999999999", "+OK", "pexpiretime k", "99999999999999"},
		{"set k v get", "nil", "set k w get", `"v"`, "set k x nx get", `"w"`, "get k", `"w"`},
		{"set k v ex 0", "-ERR invalid expire time in 'set' command", "set k v px -1", "-ERR invalid expire time in 'set' command"},
		{"set k v ex 9223372036854775807", "-ERR invalid expire time in 'set' command", "set k v ex x", notInteger, "get k", "nil"},
		{"set k v ex", syntax, "set k v ex 1 px 1", syntax, "set k v nx xx", syntax, "set k v ex 1 keepttl", syntax, "set k v bogus", syntax},
		{"set k v exat 1", "+OK", "get k", "nil"},
		{"hset h f v", "1", "set h v get", wrongType, "set h v", "+OK", "type h", "+string"},
		{"setnx k v", "1", "setnx k w", "0", "get k", `"v"`},
		{"setex k 100 v", "+OK", "ttl k", "100", "setex k 0 v", "-ERR invalid expire time in 'setex' command", "setex k x v", notInteger},
		{"psetex k 100000 v", "+OK", "ttl k", "100", "psetex k -5 v", "-ERR invalid expire time in 'psetex' command"},
		{"mset a 1 b 2", "+OK", "mget a b c", `["1" "2" nil]`, "mset a", "-ERR wrong number of arguments for 'mset' command", "mset a 1 b", "-ERR wrong number of arguments for 'mset' command"},
		{"hset h f v", "1", "mget h", "[nil]"},
		{"msetnx a 1 b 2", "1", "msetnx b 3 c 4", "0", "get c", "nil", "msetnx a 1 b", "-ERR wrong number of arguments for 'msetnx' command"},
		{"incr n", "1", "incrby n 10", "11", "decr n", "10", "decrby n 20", "-10", "get n", `"-10"`},
		{"set n x", "+OK", "incr n", notInteger, "incrby n x", notInteger, "set n 9223372036854775807", "+OK", "incr n", "-ERR increment or decrement would overflow"},
		{"decrby n -9223372036854775808", "-ERR decrement would overflow", "incrby n 1.5", notInteger, "hset h f 1", "1", "incr h", wrongType},
		{"set n 1 ex 100", "+OK", "incr n", "2", "ttl n", "100"},
		{"incrbyfloat n 1.5", `"1.5"`, "incrbyfloat n -1.5", `"0"`, "incrbyfloat n x", "-ERR value is not a valid float", "set n x", "+OK", "incrbyfloat n 1", "-ERR value is not a valid float"},
		{"set n 1e308", "+OK", "incrbyfloat n 1.7e308", "-ERR increment would produce NaN or Infinity", "incrbyfloat n inf", "-ERR increment would produce NaN or Infinity"},
		{"append k ab", "2", "append k cd", "4", "get k", `"abcd"`, "strlen k", "4", "strlen none", "0", "hset h f v", "1", "append h x", wrongType, "strlen h", wrongType},
		{"getset k v", "nil", "getset k w", `"v"`, "hset h f v", "1", "getset h x", wrongType, "getdel k", `"w"`, "getdel k", "nil", "getdel h", wrongType},
		{"set k v", "+OK", "getex k ex 100", `"v"`, "ttl k", "100", "getex k persist", `"v"`, "ttl k", "-1", "getex k", `"v"`, "getex none ex 1", "nil"},
		{"set k v", "+OK", "getex k ex", syntax, "getex k bogus 1", syntax, "getex k ex 0", "-ERR invalid expire time in 'getex' command", "getex k ex 1 px 1", syntax, "hset h f v", "1", "getex h", wrongType},
		{"setrange k 3 abc", "6", "get k", `"\x00\x00\x00abc"`, "setrange k 0 xyz", "6", "setrange k -1 x", "-ERR offset is out of range", "setrange k x x", notInteger, "setrange k 9223372036854775807 x", "-ERR string exceeds maximum allowed size"},
		{"setrange none 5 ''", "0", "exists none", "0"},
		{"set k hello", "+OK", "getrange k 1 3", `"ell"`, "getrange k -3 -1", `"llo"`, "getrange k 0 100", `"hello"`, "getrange k 4 1", `""`, "getrange none 0 -1", `""`, "substr k -100 0", `"h"`, "getrange k x 1", notInteger},

		// Keys.
		{"mset a 1 b 2", "+OK", "del a b c", "2", "exists a", "0", "mset a 1 b 2", "+OK", "exists a a b c", "3", "touch a c", "1", "unlink a", "1"},
		{"type k", "+none", "set k v", "+OK", "type k", "+string", "hset h f v", "1", "type h", "+hash"},
		{"expire k 10", "0", "set k v", "+OK", "expire k 100", "1", "ttl k", "100", "pexpire k 100000", "1", "ttl k", "100", "persist k", "1", "persist k", "0", "ttl k", "-1", "pttl none", "-2"},
		{"set k v", "+OK", "expire k 100 xx", "0", "expire k 100 nx", "1", "expire k 50 gt", "0", "expire k 50 lt", "1", "expire k 60 gt", "1", "ttl k", "60"},
		{"set k v", "+OK", "expire k 100 nx gt", "-ERR NX and XX, GT or LT options at the same time are not compatible", "expire k 1 zz", "-ERR Unsupported option zz", "expire k x", notInteger},
		{"set k v", "+OK", "expire k 9223372036854775807", "-ERR invalid expire time in 'expire' command", "expire k 0", "1", "exists k", "0"},
		{"set k v", "+OK", "expireat k 99999999999", "1", "expiretime k", "99999999999", "pexpireat k 99999999999999", "1", "pexpiretime k", "99999999999999", "expireat k 1", "1", "exists k", "0"},
		{"rename a b", "-ERR no such key", "set a 1 ex 100", "+OK", "rename a b", "+OK", "ttl b", "100", "set a 2", "+OK", "renamenx a b", "0", "renamenx a c", "1", "get c", `"2"`, "renamenx none x", "-ERR no such key"},
		{"hset h f v", "1", "rename h g", "+OK", "hget g f", `"v"`, "rename g g", "+OK", "renamenx g g", "0"},
		{"mset aa 1 ab 2", "+OK", "keys a?x", "[]", "keys aa", `["aa"]`, "dbsize", "2", "flushdb async", "+OK", "dbsize", "0", "flushall", "+OK", "flushdb x", syntax},
		{"randomkey", "nil", "set k v", "+OK", "randomkey", `"k"`},
		{"set k v", "+OK", "scan 0 count 10000", `["0" ["k"]]`, "scan 0 match x* count 10000", `["0" []]`, "scan 0 type hash count 10000", `["0" []]`, "scan 0 type string match k count 10000", `["0" ["k"]]`},
		{"scan x", "-ERR invalid cursor", "scan 0 count 0", syntax, "scan 0 count", syntax, "scan 0 count x", notInteger, "scan 0 bogus 1", syntax, "scan 99999999999", `["0" []]`},

		// Hashes.
		{"hset h a 1 b 2", "2", "hset h a 3", "0", "hget h a", `"3"`, "hget h x", "nil", "hget none x", "nil", "hlen h", "2", "hgetall h", `["a" "3" "b" "2"]`, "hkeys h", `["a" "b"]`, "hvals h", `["3" "2"]`},
		{"hmset h a 1", "+OK", "hmget h a x", `["1" nil]`, "hmget none a", "[nil]", "hexists h a", "1", "hexists h x", "0", "hstrlen h a", "1", "hsetnx h a 2", "0", "hsetnx h b 2", "1", "hdel h a b c", "2", "exists h", "0"},
		{"hset h a", "-ERR wrong number of arguments for 'hset' command", "hset h a 1 b", "-ERR wrong number of arguments for 'hset' command", "hmset h a 1 b", "-ERR wrong number of arguments for 'hmset' command"},
		{"hincrby h n 5", "5", "hincrby h n -7", "-2", "hset h s x", "1", "hincrby h s 1", "-ERR hash value is not an integer", "hincrby h n x", notInteger, "hset h n 9223372036854775807", "0", "hincrby h n 1", "-ERR increment or decrement would overflow"},
		{"set k v", "+OK", "hset k a 1", wrongType, "hget k a", wrongType, "hgetall k", wrongType, "hlen k", wrongType, "hscan k 0", wrongType, "hdel k a", wrongType, "hmget k a", wrongType, "hexists k a", wrongType, "hkeys k", wrongType, "hincrby k a 1", wrongType, "hsetnx k a 1", wrongType, "hstrlen k a", wrongType},
		{"hset h a 1 b 2", "2", "hscan h 0 match a", `["0" ["a" "1"]]`, "hscan none 0", `["0" []]`, "hscan h x", "-ERR invalid cursor", "hscan h 0 type string", syntax},

		// The connection.
		{"ping", "+PONG", "ping hi", `"hi"`, "ping a b", "-ERR wrong number of arguments for 'ping' command", "echo hi", `"hi"`, "select 0", "+OK", "select 1", "-ERR DB index is out of range", "select x", notInteger},
		{"auth x", "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"},
		{"client getname", "nil", "client setname me", "+OK", "client getname", `"me"`, `client setname "a b"`, "-ERR Client names cannot contain spaces, newlines or special characters.", "client setinfo lib-name x", "+OK", "client setinfo x y", "-ERR Unrecognized option 'x'", "client bogus", "-ERR unknown subcommand 'bogus'. Try CLIENT HELP."},
		{"hello 4", "-NOPROTO unsupported protocol version", "hello x", "-ERR Protocol version is not an integer or out of range", "hello 3 bogus", "-ERR Syntax error in HELLO option 'bogus'"},
		{"hello 3", `{"server" "redis" "version" "7.0.0" "proto" 3 "id" 1 "mode" "standalone" "role" "master" "modules" []}`, "hset h a 1", "1", "hgetall h", `{"a" "1"}`, "get none", "nil", "reset", "+RESET", "hgetall h", `["a" "1"]`},
		{"bogus a b", "-ERR unknown command 'bogus', with args beginning with: 'a' 'b' ", "get", "-ERR wrong number of arguments for 'get' command", "get a b", "-ERR wrong number of arguments for 'get' command"},
		{"command count", fmt.Sprint(len(newCommands())), "command info get bogus", `[["get" 2 [+fast +readonly] 1 1 1] nil]`, "command docs", "[]", "command getkeys mset a 1 b 2", `["a" "b"]`, "command getkeys ping", "-ERR The command has no key arguments", "command getkeys bogus", "-ERR Invalid command specified", "command bogus", "-ERR unknown subcommand 'bogus'. Try COMMAND HELP."},
		{"config get save", `["save" ""]`, "config get maxmemory-p*", `["maxmemory-policy" "noeviction"]`, "config set save 1", "-ERR CONFIG SET is not possible: the server's configuration file has these settings"},

		// Transactions.
		{"multi", "+OK", "set k 1", "+QUEUED", "incr k", "+QUEUED", "hget k f", "+QUEUED", "exec", "[+OK 2 " + wrongType + "]", "get k", `"2"`},
		{"exec", "-ERR EXEC without MULTI", "discard", "-ERR DISCARD without MULTI", "multi", "+OK", "multi", "-ERR MULTI calls can not be nested", "watch k", "-ERR WATCH inside MULTI is not allowed", "set k 1", "+QUEUED", "discard", "+OK", "get k", "nil"},
		{"multi", "+OK", "bogus", "-ERR unknown command 'bogus', with args beginning with: ", "set k 1", "+QUEUED", "exec", "-EXECABORT Transaction discarded because of previous errors.", "get k", "nil"},
		{"multi", "+OK", "subscribe c", "-ERR Command not allowed inside a transaction", "exec", "-EXECABORT Transaction discarded because of previous errors."},
		{"watch k", "+OK", "set k 1", "+OK", "multi", "+OK", "set k 2", "+QUEUED", "exec", "nil", "get k", `"1"`, "watch k", "+OK", "unwatch", "+OK", "incr k", "2", "multi", "+OK", "exec", "[]"},

		// Scripts.
		{"eval \"if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end\" 1 l me", "0", "set l me", "+OK",
			"evalsha e9f69f2beb755be68b5e456ee2ce9aadfbc4ebf4 1 l you", "-NOSCRIPT No matching script. Please use EVAL.",
			"eval \"if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end\" 1 l you", "0", "exists l", "1",
			"eval 'if redis.call(\"get\", KEYS[1]) == ARGV[1]\\nthen\\nreturn redis.call(\"del\",KEYS[1]) else return 0 end' 1 l me", textUnknown(), // \n is no end of line here
			"eval 'if redis.call(\"get\", KEYS[1]) == ARGV[1]  then return redis.call(\"del\",KEYS[1]) else return 0 end' 1 l me", "1", "exists l", "0"},
		{"eval \"return redis.call('exists',KEYS[1])<1 and redis.call('setex',KEYS[1],ARGV[2],ARGV[1])\" 1 k v 100", "+OK", "ttl k", "100",
			"eval \"return redis.call('exists',KEYS[1])<1 and redis.call('setex',KEYS[1],ARGV[2],ARGV[1])\" 1 k w 100", "nil", "get k", `"v"`},
		{"eval 'return 1' 0", textUnknown(), "eval x", "-ERR wrong number of arguments for 'eval' command", "script load 'return 1'", textUnknown(), "script exists x", "[0]", "script flush", "+OK"},

		// Publishing with nobody there.
		{"publish c hi", "0", "pubsub channels", "[]", "pubsub numsub c", `["c" 0]`, "pubsub numpat", "0", "pubsub bogus", "-ERR unknown subcommand 'bogus'. Try PUBSUB HELP.", "unsubscribe", `["unsubscribe" nil 0]`},
	} {
		t.Run(row[0], func(t *testing.T) {
			t.Parallel()
			p := newServerFor(t)
			for i := 0; i < len(row); i += 2 {
				if got := p.do(row[i]); got != row[i+1] {
					t.Errorf("%s: %s, want %s", row[i], got, row[i+1])
				}
			}
		})
	}
}

func textUnknown() string { return "-" + textUnknownScript }

// Every command refuses one argument too few and, where that is a mistake, one
// too many.
func TestEveryCommandChecksItsArity(t *testing.T) {
	p := newServerFor(t)
	for name, cmd := range newCommands() {
		want := "-ERR wrong number of arguments for '" + name + "' command"
		fewest := max(cmd.arity, -cmd.arity)
		if fewest > 1 {
			if got := p.do(name + strings.Repeat(" x", fewest-2)); got != want {
				t.Errorf("%s with %d arguments: %s, want %s", name, fewest-2, got, want)
			}
		}
		if cmd.arity > 0 {
			if got := p.do(name + strings.Repeat(" x", fewest)); got != want {
				t.Errorf("%s with %d arguments: %s, want %s", name, fewest, got, want)
			}
		}
	}
}

func TestAWriteThatDoesNotFitIsOOM(t *testing.T) {
	s := newStore(t, Options{MemoryLimit: 1 << 20})
	p := dial(t, serve(t, ServerOptions{Default: s}))
	p.do("set k old")
	for i := 0; ; i++ {
		if got := p.do(fmt.Sprintf("set fill%d %s", i, strings.Repeat("x", 10_000))); strings.HasPrefix(got, "-OOM ") {
			break
		} else if got != "+OK" || i > 200 {
			t.Fatalf("set %d: %s", i, got)
		}
	}
	for _, line := range []string{"set k %s", "append k %s", "getset k %s", "mset k %s", "hset h f %s", "setrange k 0 %s"} {
		if got := p.do(fmt.Sprintf(line, strings.Repeat("x", 30_000))); !strings.HasPrefix(got, "-OOM ") {
			t.Errorf("%s: %s, want OOM", line, got)
		}
	}
	if got := p.do("get k"); got != `"old"` {
		t.Errorf("get k: %s, want the old value", got)
	}
}

func TestAuthentication(t *testing.T) {
	one, two := newStore(t, Options{}), newStore(t, Options{})
	addr := serve(t, ServerOptions{Authenticate: func(user, password string) *Store {
		switch user + ":" + password {
		case "default:pw":
			return one
		case "two.example:pw2":
			return two
		}
		return nil
	}})
	p := dial(t, addr)
	for i, step := range [][2]string{
		{"get k", "-NOAUTH Authentication required."},
		{"bogus", "-NOAUTH Authentication required."},
		{"hello 3", "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"},
		{"auth wrong", "-" + textWrongPass},
		{"auth default wrong", "-" + textWrongPass},
		{"auth a b c", "-ERR syntax error"},
		{"auth pw", "+OK"},
		{"set k one", "+OK"},
		{"auth two.example pw2", "+OK"},
		{"get k", "nil"},
		{"hello 3 auth default pw setname me", ""},
		{"get k", `"one"`},
		{"client getname", `"me"`},
		{"reset", "+RESET"},
		{"get k", "-NOAUTH Authentication required."},
	} {
		if got := p.do(step[0]); step[1] != "" && got != step[1] {
			t.Errorf("step %d: %s: %s, want %s", i, step[0], got, step[1])
		}
	}
	// A stranger may not send much.
	p = dial(t, addr)
	p.send("*11")
	if got := p.read(); got != "-ERR Protocol error: invalid multibulk length" {
		t.Errorf("a long command of a stranger: %s", got)
	}
	p = dial(t, addr)
	p.send("*2\r\n$4\r\nAUTH\r\n$20000")
	if got := p.read(); got != "-ERR Protocol error: command is longer than 16384 bytes" {
		t.Errorf("a long argument of a stranger: %s", got)
	}
}

func TestAHugeLengthCostsOneConnection(t *testing.T) {
	addr := serve(t, ServerOptions{Default: newStore(t, Options{})})
	other := dial(t, addr)
	p := dial(t, addr)
	p.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10737418240")
	if got := p.read(); got != "-ERR Protocol error: invalid bulk length" {
		t.Errorf("a length of 10 GB: %s", got)
	}
	if _, err := p.r.ReadByte(); err != io.EOF {
		t.Errorf("after it: %v, want the end of the connection", err)
	}
	if got := other.do("ping"); got != "+PONG" {
		t.Errorf("another client: %s", got)
	}
}

func TestTooManyConnectionsAreRefused(t *testing.T) {
	addr := serve(t, ServerOptions{Default: newStore(t, Options{}), MaxConnections: 1})
	p := dial(t, addr)
	if got := p.do("ping"); got != "+PONG" {
		t.Fatal(got)
	}
	if got := dial(t, addr).read(); got != "-ERR max number of clients reached" {
		t.Errorf("the second: %s", got)
	}
}

// A short command can name a long value many times.
func TestRepliesAreBounded(t *testing.T) {
	t.Parallel()
	store := newStore(t, Options{MemoryLimit: 1 << 20})
	mustSet(t, store, "k", strings.Repeat("x", 600))
	p := dial(t, serve(t, ServerOptions{Default: store, MaxReply: 1000}))
	const tooLong = "-ERR the reply would be too long"
	for _, c := range [][2]string{
		{"mget k none", `["` + strings.Repeat("x", 600) + `" nil]`},
		{"mget k k", tooLong},
		{"hset h f " + strings.Repeat("y", 600), "1"},
		{"hmget h f f", tooLong},
		{"multi", "+OK"}, {"get k", "+QUEUED"}, {"incr n", "+QUEUED"}, {"get k", "+QUEUED"}, {"incr n", "+QUEUED"},
		{"exec", "-ERR the commands have run, but their replies are too long"},
		{"get n", `"2"`},
	} {
		if got := p.do(c[0]); got != c[1] {
			t.Errorf("%s answers %s, want %s", c[0], got, c[1])
		}
	}
}
