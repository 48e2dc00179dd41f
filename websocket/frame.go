package websocket

import (
	"encoding/binary"
	"sync"
)

// Opcodes of RFC 6455 §5.2 with the FIN bit of an unfragmented frame.
const (
	fin            = 0x80
	rsvBits        = 0x70
	rsvDeflated    = 0x40 // RFC 7692 §6
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xA
	opControl      = 0x8 // the bit that all control opcodes have
	opcodeBits     = 0x0F
	maskBit        = 0x80
	lengthBits     = 0x7F
	length16       = 126
	length64       = 127
	maxControl     = 125
	maxReason      = maxControl - 2
	maxPlainLen    = 125
)

// A Prepared is a message that is encoded once and sent to many.
type Prepared struct {
	frame []byte // plain; nobody changes it

	mu       sync.Mutex // guards the following
	deflated []deflatedFrame
}

// Prepare encodes a message as one frame. payload is copied.
func Prepare(payload []byte, binary bool) *Prepared {
	op := byte(opText)
	if binary {
		op = opBinary
	}
	return &Prepared{frame: appendFrame(make([]byte, 0, headerLen(len(payload))+len(payload)), op, payload)}
}

// appendFrame appends an unmasked, unfragmented frame to b.
func appendFrame(b []byte, op byte, payload []byte) []byte {
	b = append(b, fin|op)
	switch n := len(payload); {
	case n <= maxPlainLen:
		b = append(b, byte(n))
	case n <= 1<<16-1:
		b = binary.BigEndian.AppendUint16(append(b, length16), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, length64), uint64(n))
	}
	return append(b, payload...)
}

// headerLen is the size of the header in front of n bytes.
func headerLen(n int) int {
	switch {
	case n <= maxPlainLen:
		return 2
	case n <= 1<<16-1:
		return 4
	}
	return 10
}

// payloadLen is the size of the payload in a frame that appendFrame made.
func payloadLen(frame []byte) int {
	switch frame[1] {
	case length16:
		return len(frame) - 4
	case length64:
		return len(frame) - 10
	}
	return len(frame) - 2
}

// closeFrame returns a close frame, without a payload for a code that means
// that there was none.
func closeFrame(code int, reason string) []byte {
	if code == CodeNone {
		return appendFrame(nil, opClose, nil)
	}
	p := binary.BigEndian.AppendUint16(nil, uint16(code))
	return appendFrame(nil, opClose, append(p, reason...))
}
