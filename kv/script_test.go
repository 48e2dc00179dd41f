package kv

import "testing"

// Scripts that are known by their sum alone, by names that the rows can use. What
// they answer is what Redis answers to the frameworks' own text.
var sumNames = map[string]string{
	"refresh":   "c45349d29f0835492bb545396f6644d66b943781",
	"slot":      "4027d1bce35b16d8a7d5917979e8c3f7b3131200",
	"throttle":  "7287d3583179d4756fa5fd3055aee4bdc9f6bed9",
	"throttled": "98ff3b59f3da33be7384bcd9ee0c6f1bea3c7947",
	"broadcast": "a2d858063b2401fe1eebe6c2a9f349cafe9e3281",
	"take":      "c4e651db036e29fd122422660ba2eefbed4356d7",
}

// knowByName lets EVALSHA find the scripts by these names.
func knowByName(t *testing.T, s *Server) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, sum := range sumNames {
		known, ok := sums[sum]
		if !ok {
			t.Fatalf("there is no script for %s", name)
		}
		s.scripts[name] = &known
	}
}

func TestScriptsOfFrameworks(t *testing.T) {
	t.Parallel()
	const numbers = "-ERR wrong number of keys or arguments for this script"
	for _, row := range [][]string{
		{
			"set l me ex 100", "+OK", "evalsha refresh 1 l you 500", "0", "ttl l", "100", "evalsha refresh 1 l me 50", "1", "ttl l", "50",
			"evalsha refresh 1 l me 0", "1", "ttl l", "-1", "evalsha refresh 1 none me 0", "0", "evalsha refresh 1 l me x", "-ERR value is not an integer or out of range",
		},
		{
			"evalsha slot 2 f1 f2 f 60 me", `"f1"`, "get f1", `"me"`, "ttl f1", "60", "evalsha slot 2 f1 f2 f 60 you", `"f2"`, "evalsha slot 2 f1 f2 f 60 he", "nil",
			"del f1", "1", "evalsha slot 2 f1 f2 f 60 he", `"f1"`, "hset h a b", "1", "evalsha slot 1 h h 60 x", `"h1"`, "type h", "+string",
			"evalsha slot 1 g g 0 x", "-ERR invalid expire time in 'set' command", "evalsha slot 0 f 60 me", numbers,
		},
		{ // two calls a window of 60 seconds
			"evalsha throttled 1 t 1000.5 1000 60 2", "[0 1060]", "exists t", "0",
			"evalsha throttle 1 t 1000.5 1000 60 2", "[1 1060 1]", "hgetall t", `["start" "1000" "end" "1060" "count" "1"]`, "ttl t", "120",
			"evalsha throttled 1 t 1001.5 1001 60 2", `["1060" 1]`,
			"evalsha throttle 1 t 1001.5 1001 60 2", `[1 "1060" 0]`,
			"evalsha throttle 1 t 1059.5 1059 60 2", `[nil "1060" -1]`,
			"evalsha throttle 1 t 1060.5 1060 60 2", "[1 1120 1]", "hget t count", `"1"`,
			"evalsha throttle 1 u 1000.5 1000 0 2", "[1 1000 1]", "exists u", "0",
			"set s x", "+OK", "evalsha throttle 1 s 1 1 60 2", wrongTypeText, "evalsha throttled 1 s 1 1 60 2", wrongTypeText,
			"hset h a b", "1", "evalsha throttle 1 h 1 1 60 2", wrongTypeText,
			"evalsha throttle 1 t 1 1 9223372036854775807 2", textBadExpireReply, "evalsha throttle 1 t 1 x 60 2", "-ERR value is not an integer or out of range", "evalsha throttle 1 t 1 1 60", numbers,
		},
		{
			"evalsha take 1 l me 5000", "1", "ttl l", "5", "evalsha take 1 l me 9000", "1", "ttl l", "9", "evalsha take 1 l you 9000", "0", "get l", `"me"`,
			"hset h a b", "1", "evalsha take 1 h me 1", wrongTypeText, "evalsha take 1 l me 0", "-ERR invalid expire time in 'set' command", "evalsha take 1 l me x", "-ERR value is not an integer or out of range",
		},
		{"evalsha broadcast 0 text a b", "nil", "evalsha broadcast 0", numbers, "evalsha broadcast 1 a b", numbers},
		// The case of commands, blanks, comments and quotes do not matter.
		{"set k v", "+OK", `eval "if redis.call('GET',KEYS[1])==ARGV[1] then -- ours\n return redis.call(\"Del\", KEYS[1])\nend\nreturn 0" 1 k v`, "1", "exists k", "0"},
		{"eval 'return redis.call(\"get\",KEYS[1])' 1 k", "-" + textUnknownScript, "eval 'redis.call(\"' 0", "-" + textUnknownScript, "eval '' 0", "-" + textUnknownScript},
	} {
		s, addr, _ := serveParked(t, ServerOptions{Default: newStore(t, Options{MemoryLimit: 2 << 20})})
		knowByName(t, s)
		p := dial(t, addr)
		for i := 0; i < len(row); i += 2 {
			if got := p.do(row[i]); got != row[i+1] {
				t.Errorf("%s: %s, want %s", row[i], got, row[i+1])
			}
		}
	}
}

const textBadExpireReply = "-" + textBadExpire

// What Laravel broadcasts reaches subscribers.
func TestABroadcastScriptReachesSubscribers(t *testing.T) {
	t.Parallel()
	s, addr, _ := serveParked(t, ServerOptions{Default: newStore(t, Options{MemoryLimit: 1 << 20})})
	knowByName(t, s)
	listener, p := dial(t, addr), dial(t, addr)
	if got := listener.do("subscribe b"); got != `["subscribe" "b" 1]` {
		t.Fatal(got)
	}
	p.do("evalsha broadcast 0 news a b")
	if got := listener.read(); got != `["message" "b" "news"]` {
		t.Errorf("the subscriber got %s", got)
	}
}
