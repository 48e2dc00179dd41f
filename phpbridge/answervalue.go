package phpbridge

// #include "wire.h"
import "C"

import "encoding/binary"

// maxNested is how deep arrays of an answer may be in each other.
const maxNested = 8

// parseAnswer reads the payload of an ANSWER record; RemoteHost.Call has the types.
// What it returns aliases p.
func parseAnswer(p []byte) (any, error) {
	if len(p) > 0 && p[0] == C.EPHPM_VAL_THROW {
		if len(p) < 2 {
			return nil, errMalformed
		}
		message, rest, ok := parseText(p[2:])
		if !ok || len(rest) > 0 {
			return nil, errMalformed
		}
		return nil, &Thrown{ThrowClass(p[1]), string(message)}
	}
	v, rest, ok := parseResult(p, 0)
	if !ok || len(rest) > 0 {
		return nil, errMalformed
	}
	return v, nil
}

// parseResult reads one value of an answer.
func parseResult(p []byte, depth int) (v any, rest []byte, ok bool) {
	if len(p) > 0 && p[0] == C.EPHPM_VAL_LIST {
		return parseList(p[1:])
	}
	if len(p) > 0 && p[0] == C.EPHPM_VAL_ARRAY {
		return parseArray(p[1:], depth)
	}
	scalar, rest, ok := parseValue(p)
	if !ok {
		return nil, p, false
	}
	switch scalar.kind {
	case C.EPHPM_VAL_FALSE, C.EPHPM_VAL_TRUE:
		return scalar.kind == C.EPHPM_VAL_TRUE, rest, true
	case C.EPHPM_VAL_INT:
		return scalar.n, rest, true
	case C.EPHPM_VAL_STRING:
		return scalar.text, rest, true
	}
	return nil, rest, true
}

func parseList(p []byte) (v any, rest []byte, ok bool) {
	n, p, ok := parseCount(p)
	list := [][]byte{} // grows with what is there, not with what is announced
	for ; ok && n > 0; n-- {
		var text []byte
		if text, p, ok = parseText(p); ok {
			list = append(list, text)
		}
	}
	return list, p, ok
}

func parseArray(p []byte, depth int) (v any, rest []byte, ok bool) {
	if depth == maxNested {
		return nil, p, false
	}
	n, p, ok := parseCount(p)
	entries := []Entry{}
	for ; ok && n > 0; n-- {
		var key value
		if key, p, ok = parseValue(p); !ok || !fits('n', key.kind) {
			return nil, p, false
		}
		e := Entry{Key: key.text}
		if e.Value, p, ok = parseResult(p, depth+1); ok {
			entries = append(entries, e)
		}
	}
	return entries, p, ok
}

func parseText(p []byte) (text, rest []byte, ok bool) {
	n, p, ok := parseCount(p)
	if !ok || uint64(n) > uint64(len(p)) {
		return nil, p, false
	}
	return p[:n:n], p[n:], true
}

func parseCount(p []byte) (n uint32, rest []byte, ok bool) {
	if len(p) < 4 {
		return 0, p, false
	}
	return binary.LittleEndian.Uint32(p), p[4:], true
}
