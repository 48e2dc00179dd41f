package kv

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestParserReadsCommands(t *testing.T) {
	for _, test := range []struct {
		in   string
		want []string // commands, arguments between bars
	}{
		{"*1\r\n$4\r\nPING\r\n", []string{"PING"}},
		{"*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n", []string{"GET|a\r\n"}},
		{"*2\r\n$3\r\nGET\r\n$0\r\n\r\n*1\r\n$4\r\nPING\r\n", []string{"GET|", "PING"}},
		{"*0\r\n*-1\r\nPING\r\n", []string{"", "", "PING"}},
		{"PING\r\nset a  'b c' \"\\x41\\n\"\n\r\n", []string{"PING", "set|a|b c|A\n", ""}},
		{"a\"b\"\r\n", []string{"ab"}},
		{`x "a\"b" 'c\'d' '\n'` + "\n", []string{`x|a"b|c'd|\n`}},
	} {
		for size := 1; size <= len(test.in); size++ { // in pieces of any size
			p := newParser(limits{bytes: 1 << 20, arguments: maxArguments})
			var got []string
			var have []byte
			for rest := []byte(test.in); len(rest) > 0; {
				n := min(size, len(rest))
				have, rest = append(have, rest[:n]...), rest[n:]
				for {
					args, length, err := p.next(have)
					if err != nil {
						t.Fatalf("%q in pieces of %d: %v", test.in, size, err)
					}
					if length == 0 {
						break
					}
					got = append(got, string(bytes.Join(args, []byte("|"))))
					have = have[length:]
				}
			}
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", test.want) || len(have) > 0 {
				t.Errorf("%q in pieces of %d: %q, %q is left, want %q", test.in, size, got, have, test.want)
			}
		}
	}
}

func TestParserRefuses(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"*x\r\n", "invalid multibulk length"},
		{"*1\n$4\n", ""}, // the end of the line is to come
		{"*1\rx", "invalid multibulk length"},
		{"*1048577\r\n", "invalid multibulk length"},
		{"*99999999999999999999999\r\n", "invalid multibulk length"},
		{"*" + strings.Repeat("0", 30), "invalid multibulk length"},
		{"*1\r\nPING\r\n", "expected '$', got 'P'"},
		{"*1\r\n\x00", "expected '$', got '?'"},
		{"*1\r\n$-1\r\n", "invalid bulk length"},
		{"*1\r\n$x\r\n", "invalid bulk length"},
		{"*1\r\n$10737418240\r\n", "invalid bulk length"},
		{"*1\r\n$536870913\r\n", "invalid bulk length"},
		{"*1\r\n$1048577\r\n", "command is longer than 1048576 bytes"},
		{"*1\r\n$4\r\nPINGxx", "invalid bulk length"},
		{"get 'a\r\n", "unbalanced quotes in request"},
		{"get 'a'b\r\n", "unbalanced quotes in request"},
		{"get " + strings.Repeat("x", maxInline+10), "too big inline request"},
	} {
		p := newParser(limits{bytes: 1 << 20, arguments: maxArguments})
		_, n, err := p.next([]byte(test.in))
		got := ""
		if err != nil {
			got = strings.TrimPrefix(err.Error(), "ERR Protocol error: ")
		}
		if got != test.want || n != 0 {
			t.Errorf("%.40q: %d, %q, want %q", test.in, n, got, test.want)
		}
	}
}

// Whatever comes, in whatever pieces, the parser finds the same commands, which
// lie within what came.
func FuzzParser(f *testing.F) {
	for _, seed := range []string{
		"*1\r\n$4\r\nPING\r\n", "*2\r\n$3\r\nGET\r\n$1\r\na\r\n", "PING\r\n", "*-1\r\n", "*0\r\n",
		"set a \"b\\x00\"\r\n", "*1\r\n$-1\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nhello\r\n",
	} {
		f.Add([]byte(seed), uint8(1))
		f.Add([]byte(seed+seed), uint8(7))
	}
	f.Fuzz(func(t *testing.T, in []byte, piece uint8) {
		parse := func(size int) (found []string, err error) {
			p := newParser(limits{bytes: 1 << 16, arguments: 1000})
			at, end := 0, 0
			for end < len(in) {
				end = min(end+size, len(in))
				for {
					args, n, err := p.next(in[at:end])
					if err != nil {
						return found, err
					}
					if n == 0 {
						break
					}
					if n > end-at {
						t.Fatalf("a command of %d bytes of %d", n, end-at)
					}
					found = append(found, fmt.Sprintf("%q", args))
					at += n
				}
			}
			return found, nil
		}
		whole, err1 := parse(len(in) + 1)
		parts, err2 := parse(int(piece) + 1)
		if fmt.Sprint(whole) != fmt.Sprint(parts) || (err1 == nil) != (err2 == nil) {
			t.Errorf("at once: %v, %v\nin pieces: %v, %v", whole, err1, parts, err2)
		}
	})
}

func TestGlob(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true}, {"", "", true}, {"", "a", false}, {"a*c", "abbbc", true}, {"a*c", "abbb", false},
		{"h?llo", "hello", true}, {"h?llo", "hllo", false}, {"h[ae]llo", "hallo", true}, {"h[ae]llo", "hillo", false},
		{"h[^e]llo", "hallo", true}, {"h[^e]llo", "hello", false}, {"h[a-b]llo", "hbllo", true}, {"h[b-a]llo", "hbllo", true},
		{`h\*llo`, "h*llo", true}, {`h\*llo`, "hxllo", false}, {"[", "[", false}, {"[a", "a", true}, {`[\]]`, "]", true},
		{"a**b", "ab", true}, {"*a*b*c*", "xxaxxbxxcxx", true}, {"\xff*", "\xff\x00", true}, {"a\\", "a\\", true},
		{strings.Repeat("a*", 30) + "b", strings.Repeat("a", 5000), false}, // in no time
	} {
		if got := globMatch([]byte(test.pattern), []byte(test.text)); got != test.want {
			t.Errorf("%q matches %.20q: %v, want %v", test.pattern, test.text, got, test.want)
		}
	}
}
