package kv

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// A protocolError ends a connection: what follows cannot be understood.
type protocolError string

func (e protocolError) Error() string { return "ERR Protocol error: " + string(e) }

// limits bound one command of a client.
type limits struct {
	bytes     int // of the whole command
	arguments int
}

// Redis has the same.
const (
	maxInline       = 64 << 10
	maxArguments    = 1 << 20
	maxLengthDigits = 20
)

// A parser cuts commands out of what a client sends: RESP arrays of bulk strings,
// or lines for people with telnet. It goes on where it stopped when more has
// come.
type parser struct {
	limits limits
	at     int    // where it goes on, from the start of the command
	left   int    // arguments that are missing; 0: the command has not begun
	length int    // of the argument that has begun; -1: none has
	spans  []span // of the arguments so far
	args   [][]byte
}

type span struct{ from, to int }

func newParser(l limits) parser { return parser{limits: l, length: -1} }

// next returns the arguments of the command at the start of in, and its length
// in bytes; length zero means that its end has not come. A command may have no
// arguments. The arguments are parts of in. After an error there is no next.
func (p *parser) next(in []byte) (args [][]byte, length int, err error) {
	if p.left == 0 {
		if len(in) == 0 {
			return nil, 0, nil
		}
		if in[0] != '*' {
			return p.inline(in)
		}
		n, ok, err := p.number(in, 1, "multibulk length")
		if !ok {
			return nil, 0, err
		}
		if n > p.limits.arguments {
			return nil, 0, protocolError("invalid multibulk length")
		}
		p.spans = p.spans[:0]
		if n <= 0 {
			return nil, p.reset(), nil
		}
		p.left = n
	}
	for p.left > 0 {
		if done, err := p.bulk(in); !done {
			return nil, 0, err
		}
	}
	p.args = p.args[:0]
	for _, s := range p.spans {
		p.args = append(p.args, in[s.from:s.to:s.to])
	}
	return p.args, p.reset(), nil
}

// reset makes the parser ready for the next command and returns the length of
// the last.
func (p *parser) reset() int {
	length := p.at
	p.at, p.left, p.length = 0, 0, -1
	return length
}

// forget lets go of the last command, whose memory may be much for a client that
// says nothing any more. One that has begun goes on.
func (p *parser) forget() {
	p.args = nil
	if p.left == 0 {
		p.spans = nil
	}
}

// bulk reads the next argument, and reports whether all of it is there.
func (p *parser) bulk(in []byte) (bool, error) {
	if p.length < 0 {
		if p.at >= len(in) {
			return false, nil
		}
		if in[p.at] != '$' {
			return false, protocolError(fmt.Sprintf("expected '$', got '%c'", printable(in[p.at])))
		}
		n, ok, err := p.number(in, p.at+1, "bulk length")
		if !ok {
			return false, err
		}
		if n < 0 || n > MaxValue {
			return false, protocolError("invalid bulk length")
		}
		if p.at+n+2 > p.limits.bytes {
			return false, p.tooLong()
		}
		p.length = n
	}
	end := p.at + p.length
	if len(in) < end+2 {
		return false, nil
	}
	if in[end] != '\r' || in[end+1] != '\n' {
		return false, protocolError("invalid bulk length")
	}
	p.spans = append(p.spans, span{p.at, end})
	p.at, p.length = end+2, -1
	p.left--
	return true, nil
}

func (p *parser) tooLong() error {
	return protocolError(fmt.Sprintf("command is longer than %d bytes", p.limits.bytes))
}

func printable(c byte) byte {
	if c < ' ' || c > '~' {
		return '?'
	}
	return c
}

// number reads a decimal number and the end of its line, and moves behind it. It
// reports whether they were there.
func (p *parser) number(in []byte, at int, what string) (n int, ok bool, err error) {
	end := at
	for end < len(in) && end < at+9 && in[end] >= '0' && in[end] <= '9' {
		n = n*10 + int(in[end]-'0')
		end++
	}
	if end > at && end+1 < len(in) && in[end] == '\r' && in[end+1] == '\n' && (in[at] != '0' || end == at+1) && end+2 <= p.limits.bytes {
		p.at = end + 2
		return n, true, nil
	}
	return p.oddNumber(in, at, what)
}

// oddNumber is number for what is not there yet, below zero, too long or none.
func (p *parser) oddNumber(in []byte, at int, what string) (n int, ok bool, err error) {
	for i := at; i < len(in) && i <= at+maxLengthDigits; i++ {
		if in[i] != '\r' {
			continue
		}
		if i+1 == len(in) {
			return 0, false, nil
		}
		n, ok := parseInt(in[at:i])
		if !ok || in[i+1] != '\n' || n < math.MinInt32 || n > math.MaxInt32 {
			return 0, false, protocolError("invalid " + what)
		}
		p.at = i + 2
		if p.at > p.limits.bytes {
			return 0, false, p.tooLong()
		}
		return int(n), true, nil
	}
	if len(in) > at+maxLengthDigits {
		return 0, false, protocolError("invalid " + what)
	}
	return 0, false, nil
}

// inline reads a command that is a line of words.
func (p *parser) inline(in []byte) (args [][]byte, length int, err error) {
	end := bytes.IndexByte(in, '\n')
	if end < 0 || end > maxInline {
		if len(in) > min(maxInline, p.limits.bytes) {
			return nil, 0, protocolError("too big inline request")
		}
		return nil, 0, nil
	}
	line := bytes.TrimSuffix(in[:end], []byte("\r"))
	p.args, err = splitWords(p.args[:0], line)
	if err == nil && len(p.args) > p.limits.arguments {
		err = protocolError("too many arguments")
	}
	if err != nil {
		return nil, 0, err
	}
	return p.args, end + 1, nil
}

// splitWords splits a line at blanks. A word in double quotes has \n, \r, \t, \a,
// \b and \xff, one in single quotes only \'.
func splitWords(words [][]byte, line []byte) ([][]byte, error) {
	for {
		line = bytes.TrimLeft(line, " \t\r\v\f\x00")
		if len(line) == 0 {
			return words, nil
		}
		word, rest, ok := cutWord(line)
		if !ok {
			return nil, protocolError("unbalanced quotes in request")
		}
		words = append(words, word)
		line = rest
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' }

// cutWord reads one word, and reports whether its quotes are closed and nothing
// sticks to them.
func cutWord(line []byte) (word, rest []byte, ok bool) {
	word = []byte{}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case isBlank(c):
			return word, line[i:], true
		case c == '"' || c == '\'':
			part, n := quoted(line[i:])
			if n == 0 || i+n < len(line) && !isBlank(line[i+n]) {
				return nil, nil, false
			}
			return append(word, part...), line[i+n:], true
		default:
			word = append(word, c)
		}
	}
	return word, nil, true
}

// quoted reads text in quotes and returns how long it is with them; 0 if the end
// is missing.
func quoted(line []byte) (text []byte, n int) {
	quote := line[0]
	for i := 1; i < len(line); i++ {
		c := line[i]
		if c == quote {
			return text, i + 1
		}
		if c == '\\' && i+1 < len(line) {
			switch next := line[i+1]; {
			case quote == '\'' && next != '\'':
			case quote == '"' && next == 'x' && i+3 < len(line) && isHex(line[i+2]) && isHex(line[i+3]):
				v, _ := strconv.ParseUint(string(line[i+2:i+4]), 16, 8) // two hex digits
				c = byte(v)
				i += 3
			default:
				if c = next; quote == '"' {
					c = unescaped(next)
				}
				i++
			}
		}
		text = append(text, c)
	}
	return nil, 0
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unescaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

// A reply is what a client gets, in RESP2 or RESP3.
type reply struct {
	b    []byte
	resp int // 2 or 3
}

func (r *reply) head(kind byte, n int64) {
	r.b = append(r.b, kind)
	r.b = strconv.AppendInt(r.b, n, 10)
	r.b = append(r.b, '\r', '\n')
}

func (r *reply) integer(n int64) { r.head(':', n) }
func (r *reply) array(n int)     { r.head('*', int64(n)) }
func (r *reply) simple(s string) { r.b = append(append(append(r.b, '+'), s...), '\r', '\n') }
func (r *reply) ok()             { r.b = append(r.b, "+OK\r\n"...) }

// error writes an error: one line, which starts with a code in capitals.
func (r *reply) error(text string) {
	start := len(r.b)
	r.b = append(append(r.b, '-'), text...)
	for i := start; i < len(r.b); i++ {
		if r.b[i] == '\r' || r.b[i] == '\n' {
			r.b[i] = ' '
		}
	}
	r.b = append(r.b, '\r', '\n')
}

func (r *reply) bulk(b []byte) {
	r.head('$', int64(len(b)))
	r.b = append(append(r.b, b...), '\r', '\n')
}

func (r *reply) text(s string) {
	r.head('$', int64(len(s)))
	r.b = append(append(r.b, s...), '\r', '\n')
}

func (r *reply) null() {
	if r.resp == 3 {
		r.b = append(r.b, "_\r\n"...)
	} else {
		r.b = append(r.b, "$-1\r\n"...)
	}
}

// nullArray is the null of commands that otherwise answer with an array.
func (r *reply) nullArray() {
	if r.resp == 3 {
		r.null()
	} else {
		r.b = append(r.b, "*-1\r\n"...)
	}
}

// value writes a string, or null for nil.
func (r *reply) value(b []byte) {
	if b == nil {
		r.null()
	} else {
		r.bulk(b)
	}
}

// pairs begins a map of n pairs, which RESP2 has as an array.
func (r *reply) pairs(n int) {
	if r.resp == 3 {
		r.head('%', int64(n))
	} else {
		r.array(2 * n)
	}
}

// push begins a message that answers no command.
func (r *reply) push(n int) {
	if r.resp == 3 {
		r.head('>', int64(n))
	} else {
		r.array(n)
	}
}
