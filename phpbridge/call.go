package phpbridge

// #include "wire.h"
import "C"

import (
	"context"
	"encoding/binary"
	"fmt"
)

// A Func names a host call.
type Func uint16

// The host calls and, in the comment, their arguments.
const (
	WSSend                  Func = C.EPHPM_CALL_WS_SEND                   // payload, binary
	WSConnectionSend        Func = C.EPHPM_CALL_WS_CONNECTION_SEND        // connection, payload, binary
	WSSubscribe             Func = C.EPHPM_CALL_WS_SUBSCRIBE              // channel
	WSConnectionSubscribe   Func = C.EPHPM_CALL_WS_CONNECTION_SUBSCRIBE   // connection, channel
	WSUnsubscribe           Func = C.EPHPM_CALL_WS_UNSUBSCRIBE            // channel
	WSConnectionUnsubscribe Func = C.EPHPM_CALL_WS_CONNECTION_UNSUBSCRIBE // connection, channel
	WSBroadcast             Func = C.EPHPM_CALL_WS_BROADCAST              // channel, payload, binary, except or null
	WSClose                 Func = C.EPHPM_CALL_WS_CLOSE                  // code, reason
	WSConnectionClose       Func = C.EPHPM_CALL_WS_CONNECTION_CLOSE       // connection, code, reason
	WSCount                 Func = C.EPHPM_CALL_WS_COUNT                  // channel or null
	WSMembers               Func = C.EPHPM_CALL_WS_MEMBERS                // channel, limit
)

// signatures has a letter for each argument: s string, b bool, i int, n string
// or null.
var signatures = map[Func]string{
	WSSend:                  "sb",
	WSConnectionSend:        "ssb",
	WSSubscribe:             "s",
	WSConnectionSubscribe:   "ss",
	WSUnsubscribe:           "s",
	WSConnectionUnsubscribe: "ss",
	WSBroadcast:             "ssbn",
	WSClose:                 "is",
	WSConnectionClose:       "sis",
	WSCount:                 "n",
	WSMembers:               "si",
}

// A ThrowClass is the class of the exception that a host call throws.
type ThrowClass uint8

// The classes.
const (
	ThrowException  ThrowClass = C.EPHPM_THROW_EXCEPTION   // \Exception
	ThrowValueError ThrowClass = C.EPHPM_THROW_VALUE_ERROR // \ValueError
	ThrowError      ThrowClass = C.EPHPM_THROW_ERROR       // \Error
)

// A Call is one host call. Its arguments fit the function's signature: the
// bridge has checked them. It is valid until HostCall returns.
type Call struct {
	function Func
	values   [4]value
	answer   []byte // encoded; empty means null
}

type value struct {
	kind byte
	n    int64
	text []byte
}

// NewCall returns a call as the bridge makes it, for tests of a Host. Each
// argument is a string, []byte, bool, int or nil.
func NewCall(f Func, arguments ...any) *Call {
	c := &Call{function: f}
	for i, a := range arguments {
		switch a := a.(type) {
		case nil:
			c.values[i].kind = C.EPHPM_VAL_NULL
		case string:
			c.values[i] = value{kind: C.EPHPM_VAL_STRING, text: []byte(a)}
		case []byte:
			c.values[i] = value{kind: C.EPHPM_VAL_STRING, text: a}
		case int:
			c.values[i] = value{kind: C.EPHPM_VAL_INT, n: int64(a)}
		case bool:
			c.values[i] = value{kind: C.EPHPM_VAL_FALSE}
			if a {
				c.values[i].kind = C.EPHPM_VAL_TRUE
			}
		default:
			panic(fmt.Sprintf("phpbridge: no argument of type %T", a))
		}
	}
	return c
}

// Func returns the function that was called.
func (c *Call) Func() Func { return c.function }

// Bytes returns a string argument. It is valid until HostCall returns.
func (c *Call) Bytes(i int) []byte { return c.values[i].text }

// String returns a copy of a string argument.
func (c *Call) String(i int) string { return string(c.values[i].text) }

// Int returns an int argument.
func (c *Call) Int(i int) int64 { return c.values[i].n }

// Bool returns a bool argument.
func (c *Call) Bool(i int) bool { return c.values[i].kind == C.EPHPM_VAL_TRUE }

// IsNull reports whether an argument is null.
func (c *Call) IsNull(i int) bool { return c.values[i].kind == C.EPHPM_VAL_NULL }

// ReturnBool answers with a bool.
func (c *Call) ReturnBool(b bool) {
	c.answer = append(c.answer[:0], C.EPHPM_VAL_FALSE)
	if b {
		c.answer[0] = C.EPHPM_VAL_TRUE
	}
}

// ReturnInt answers with an int.
func (c *Call) ReturnInt(n int64) {
	c.answer = binary.LittleEndian.AppendUint64(append(c.answer[:0], C.EPHPM_VAL_INT), uint64(n))
}

// ReturnString answers with a string.
func (c *Call) ReturnString(s []byte) {
	c.answer = appendText(append(c.answer[:0], C.EPHPM_VAL_STRING), s)
}

// ReturnStrings answers with a list.
func (c *Call) ReturnStrings(list []string) {
	c.answer = append(c.answer[:0], C.EPHPM_VAL_LIST)
	c.answer = binary.LittleEndian.AppendUint32(c.answer, uint32(len(list)))
	for _, s := range list {
		c.answer = appendText(c.answer, []byte(s))
	}
}

// Throw answers with an exception.
func (c *Call) Throw(class ThrowClass, message string) {
	c.answer = appendText(append(c.answer[:0], C.EPHPM_VAL_THROW, byte(class)), []byte(message))
}

func appendText(b, text []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(text))), text...)
}

// parseCall reads the payload of a CALL record. The arguments alias p.
func parseCall(p []byte) (*Call, error) {
	if len(p) < 4 {
		return nil, fmt.Errorf("call of %d bytes", len(p))
	}
	c := &Call{function: Func(binary.LittleEndian.Uint16(p))}
	signature, known := signatures[c.function]
	if n := int(binary.LittleEndian.Uint16(p[2:])); !known || n != len(signature) {
		return nil, fmt.Errorf("call of function %d with %d arguments", c.function, n)
	}
	p = p[4:]
	for i := range signature {
		var ok bool
		if c.values[i], p, ok = parseValue(p); !ok || !fits(signature[i], c.values[i].kind) {
			return nil, fmt.Errorf("call of function %d: argument %d is malformed", c.function, i+1)
		}
	}
	if len(p) > 0 {
		return nil, fmt.Errorf("call of function %d: %d bytes too many", c.function, len(p))
	}
	return c, nil
}

func parseValue(p []byte) (v value, rest []byte, ok bool) {
	if len(p) == 0 {
		return v, p, false
	}
	v.kind, p = p[0], p[1:]
	switch v.kind {
	case C.EPHPM_VAL_NULL, C.EPHPM_VAL_FALSE, C.EPHPM_VAL_TRUE:
		return v, p, true
	case C.EPHPM_VAL_INT:
		if len(p) < 8 {
			return v, p, false
		}
		v.n = int64(binary.LittleEndian.Uint64(p))
		return v, p[8:], true
	case C.EPHPM_VAL_STRING:
		if len(p) < 4 {
			return v, p, false
		}
		n := uint64(binary.LittleEndian.Uint32(p))
		if p = p[4:]; n > uint64(len(p)) {
			return v, p, false
		}
		v.text = p[:n:n]
		return v, p[n:], true
	}
	return v, p, false
}

func fits(letter, kind byte) bool {
	switch letter {
	case 's':
		return kind == C.EPHPM_VAL_STRING
	case 'n':
		return kind == C.EPHPM_VAL_STRING || kind == C.EPHPM_VAL_NULL
	case 'i':
		return kind == C.EPHPM_VAL_INT
	case 'b':
		return kind == C.EPHPM_VAL_TRUE || kind == C.EPHPM_VAL_FALSE
	}
	return false
}

// call answers CALL.
func (x *exchange) call(ctx context.Context, payload []byte) error {
	c, err := parseCall(payload)
	if err != nil {
		return err
	}
	if x.request.Host == nil {
		c.Throw(ThrowError, "the server answers no calls for this request")
	} else {
		x.request.Host.HostCall(ctx, c)
	}
	if len(c.answer) > answerSize {
		c.Throw(ThrowError, "the server's answer is too long")
	}
	x.job.answered(copy(x.job.answer, c.answerOrNull()))
	return nil
}

func (c *Call) answerOrNull() []byte {
	if len(c.answer) == 0 {
		return []byte{C.EPHPM_VAL_NULL}
	}
	return c.answer
}
