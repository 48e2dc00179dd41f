package phpbridge

// #include "wire.h"
import "C"

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// A Func names a host call.
type Func uint16

// The host calls and, in the comment, their arguments.
const (
	WSSend                  Func = C.EPHPM_CALL_WS_SEND                   // payload, binary
	WSConnectionSend        Func = C.EPHPM_CALL_WS_CONNECTION_SEND        // connection, payload, binary
	WSSubscribe             Func = C.EPHPM_CALL_WS_SUBSCRIBE              // channel, names and JSON values of options
	WSConnectionSubscribe   Func = C.EPHPM_CALL_WS_CONNECTION_SUBSCRIBE   // connection, channel, names and JSON values of options
	WSUnsubscribe           Func = C.EPHPM_CALL_WS_UNSUBSCRIBE            // channel
	WSConnectionUnsubscribe Func = C.EPHPM_CALL_WS_CONNECTION_UNSUBSCRIBE // connection, channel
	WSBroadcast             Func = C.EPHPM_CALL_WS_BROADCAST              // channel, payload, binary, except or null
	WSClose                 Func = C.EPHPM_CALL_WS_CLOSE                  // code, reason
	WSConnectionClose       Func = C.EPHPM_CALL_WS_CONNECTION_CLOSE       // connection, code, reason
	WSCount                 Func = C.EPHPM_CALL_WS_COUNT                  // channel or null, users
	WSMembers               Func = C.EPHPM_CALL_WS_MEMBERS                // channel, limit, users

	KVGet      Func = C.EPHPM_CALL_KV_GET       // key
	KVSet      Func = C.EPHPM_CALL_KV_SET       // key, value, seconds
	KVSetNX    Func = C.EPHPM_CALL_KV_SETNX     // key, value, seconds
	KVDel      Func = C.EPHPM_CALL_KV_DEL       // keys
	KVExists   Func = C.EPHPM_CALL_KV_EXISTS    // key
	KVIncrBy   Func = C.EPHPM_CALL_KV_INCR_BY   // key, by
	KVExpire   Func = C.EPHPM_CALL_KV_EXPIRE    // key, seconds
	KVTTL      Func = C.EPHPM_CALL_KV_TTL       // key, in milliseconds
	KVFlushAll Func = C.EPHPM_CALL_KV_FLUSH_ALL //
	KVWait     Func = C.EPHPM_CALL_KV_WAIT      // key, version, milliseconds
	KVMGet     Func = C.EPHPM_CALL_KV_MGET      // keys
	KVMSet     Func = C.EPHPM_CALL_KV_MSET      // seconds, keys and values
	KVGetSet   Func = C.EPHPM_CALL_KV_GETSET    // key, value
	KVAppend   Func = C.EPHPM_CALL_KV_APPEND    // key, value
	KVHSet     Func = C.EPHPM_CALL_KV_HSET      // key, field, value
	KVHGet     Func = C.EPHPM_CALL_KV_HGET      // key, field
	KVHDel     Func = C.EPHPM_CALL_KV_HDEL      // key, fields
	KVHGetAll  Func = C.EPHPM_CALL_KV_HGETALL   // key
	KVHIncrBy  Func = C.EPHPM_CALL_KV_HINCRBY   // key, field, by
	KVCAS      Func = C.EPHPM_CALL_KV_CAS       // key, old or null, value, seconds
	KVLock     Func = C.EPHPM_CALL_KV_LOCK      // key, milliseconds to hold, milliseconds to wait
	KVUnlock   Func = C.EPHPM_CALL_KV_UNLOCK    // token
	KVScan     Func = C.EPHPM_CALL_KV_SCAN      // prefix, cursor, limit
	KVReads    Func = C.EPHPM_CALL_KV_READS     // hits, misses, hashes of 8 bytes each; by the bridge, without an answer
	KVMonitor  Func = C.EPHPM_CALL_KV_MONITOR   // 0 or a number that it returned; for RemoteHost

	SessionOpen    Func = C.EPHPM_CALL_SESSION_OPEN    // ID
	SessionWrite   Func = C.EPHPM_CALL_SESSION_WRITE   // ID, data, seconds
	SessionTouch   Func = C.EPHPM_CALL_SESSION_TOUCH   // ID, data, seconds
	SessionClose   Func = C.EPHPM_CALL_SESSION_CLOSE   //
	SessionDestroy Func = C.EPHPM_CALL_SESSION_DESTROY // ID
	SessionExists  Func = C.EPHPM_CALL_SESSION_EXISTS  // ID
)

// signatures has a letter for each argument: s string, b bool, i int, n string
// or null; a star at the end stands for strings, as many as there are.
var signatures = map[Func]string{
	WSSend:                  "sb",
	WSConnectionSend:        "ssb",
	WSSubscribe:             "s*",
	WSConnectionSubscribe:   "ss*",
	WSUnsubscribe:           "s",
	WSConnectionUnsubscribe: "ss",
	WSBroadcast:             "ssbn",
	WSClose:                 "is",
	WSConnectionClose:       "sis",
	WSCount:                 "nb",
	WSMembers:               "sib",

	KVGet: "s", KVSet: "ssi", KVSetNX: "ssi", KVDel: "*", KVExists: "s", KVIncrBy: "si",
	KVExpire: "si", KVTTL: "s", KVFlushAll: "", KVWait: "sii", KVMGet: "*", KVMSet: "i*",
	KVGetSet: "ss", KVAppend: "ss", KVHSet: "sss", KVHGet: "ss", KVHDel: "s*", KVHGetAll: "s",
	KVHIncrBy: "ssi", KVCAS: "snsi", KVLock: "sii", KVUnlock: "s", KVScan: "sii", KVMonitor: "i",

	SessionOpen: "s", SessionWrite: "ssi", SessionTouch: "ssi", SessionClose: "",
	SessionDestroy: "s", SessionExists: "s",
}

// IsStore reports whether a function is about the key-value store of the site:
// ephpm_kv_… or a session.
func (f Func) IsStore() bool { return f >= KVGet && f <= SessionExists }

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
	rest     [][]byte // of a star
	answer   []byte   // encoded; empty means null
	ends     *ends    // of the caller
}

type value struct {
	kind byte
	n    int64
	text []byte
}

// NewCall returns a call as the bridge makes it, for tests of a Host. Each
// argument is a string, []byte, bool, int or nil.
func NewCall(f Func, arguments ...any) *Call {
	c := &Call{function: f, ends: new(ends)}
	fixed, star := strings.CutSuffix(signatures[f], "*")
	for i, a := range arguments {
		if star && i >= len(fixed) {
			c.rest = append(c.rest, []byte(a.(string)))
			continue
		}
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

// Rest returns the arguments behind the fixed ones, of a function that takes any
// number. They are valid until HostCall returns.
func (c *Call) Rest() [][]byte { return c.rest }

// Texts returns all arguments as text; null is nil. They are valid until HostCall
// returns.
func (c *Call) Texts() [][]byte {
	fixed, _ := strings.CutSuffix(signatures[c.function], "*")
	texts := make([][]byte, 0, len(fixed)+len(c.rest))
	for _, v := range c.values[:len(fixed)] {
		switch v.kind {
		case C.EPHPM_VAL_INT:
			v.text = strconv.AppendInt(nil, v.n, 10)
		case C.EPHPM_VAL_TRUE:
			v.text = []byte("true")
		case C.EPHPM_VAL_FALSE:
			v.text = []byte("false")
		}
		texts = append(texts, v.text)
	}
	return append(texts, c.rest...)
}

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

// An Entry is one of an array: Key is nil for the next index, or a string. Value is
// nil, an int64, []byte or [][]byte.
type Entry struct {
	Key   []byte
	Value any
}

// ReturnArray answers with an array.
func (c *Call) ReturnArray(entries []Entry) {
	c.answer = appendArray(c.answer[:0], entries)
}

func appendArray(b []byte, entries []Entry) []byte {
	b = append(b, C.EPHPM_VAL_ARRAY)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(entries)))
	for _, e := range entries {
		if e.Key == nil {
			b = append(b, C.EPHPM_VAL_NULL)
		} else {
			b = appendText(append(b, C.EPHPM_VAL_STRING), e.Key)
		}
		switch v := e.Value.(type) {
		case nil:
			b = append(b, C.EPHPM_VAL_NULL)
		case int64:
			b = binary.LittleEndian.AppendUint64(append(b, C.EPHPM_VAL_INT), uint64(v))
		case []byte:
			b = appendText(append(b, C.EPHPM_VAL_STRING), v)
		case [][]byte:
			list := make([]Entry, len(v))
			for i := range v {
				list[i].Value = v[i]
			}
			b = appendArray(b, list)
		default:
			panic(fmt.Sprintf("phpbridge: no value of type %T", v))
		}
	}
	return b
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
	signature, star := strings.CutSuffix(signature, "*")
	n := int(binary.LittleEndian.Uint16(p[2:]))
	if !known || n < len(signature) || n > len(signature) && !star {
		return nil, fmt.Errorf("call of function %d with %d arguments", c.function, n)
	}
	p = p[4:]
	for i := range n {
		letter := byte('s')
		if i < len(signature) {
			letter = signature[i]
		}
		var v value
		var ok bool
		if v, p, ok = parseValue(p); !ok || !fits(letter, v.kind) {
			return nil, fmt.Errorf("call of function %d: argument %d is malformed", c.function, i+1)
		}
		if i < len(signature) {
			c.values[i] = v
		} else {
			c.rest = append(c.rest, v.text)
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

func (c *Call) answerOrNull() []byte {
	if len(c.answer) == 0 {
		return []byte{C.EPHPM_VAL_NULL}
	}
	return c.answer
}
