package websocket

import (
	"encoding/binary"
	"unicode/utf8"
)

// An incoming is a message of which only a part has arrived. Most connections
// have none.
type incoming struct {
	opcode  byte // opText or opBinary
	fin     bool // the current frame is the last
	packed  bool // data is compressed
	left    uint64
	key     [4]byte // of the current frame, turned to its next byte
	data    []byte
	checked int // bytes of data that are whole, valid runes
}

// firstRoom bounds what is allocated for a payload on the client's word alone.
const firstRoom = 64 << 10

// A failure is a rule that the client broke and the close frame it gets.
type failure struct {
	code   int
	reason string
	cause  Cause
}

// What closes a connection.
var (
	errProtocol      = &failure{CodeProtocol, "", CauseProtocol}
	errNotUTF8       = &failure{CodeInvalidData, "text is not UTF-8", CauseProtocol}
	errReasonNotUTF8 = &failure{CodeInvalidData, "close reason is not UTF-8", CauseProtocol}
	errFrameTooBig   = &failure{CodeTooBig, "frame over the limit", CauseLimit}
	errDeflate       = &failure{CodeInvalidData, "compressed data is broken", CauseProtocol}
	errTooBig        = &failure{CodeTooBig, "message over the limit", CauseLimit}
)

// A verdict says what to do with the rest of what the client sent.
type verdict int

const (
	more   verdict = iota // what is left over is the beginning of a frame
	paused                // the inbox is full: ask again when it is not
	ended                 // a close frame came: read no further
)

// feed takes bytes of the client and returns how many it used. What it left it
// wants to see again, with more behind it. It is called by one goroutine at a
// time, and not after an error or ended.
func (c *Conn) feed(b []byte) (used int, v verdict, err *failure) {
	for {
		if c.in != nil && c.in.left > 0 {
			used += c.in.take(b[used:])
			if err := c.in.check(false); err != nil {
				return used, more, err
			}
			if c.in.left > 0 {
				return used, more, nil
			}
			if err := c.endFrame(); err != nil {
				return used, more, err
			}
			continue
		}
		if c.inboxFull() {
			return used, paused, nil
		}
		h, n, err := parseHeader(b[used:])
		if err != nil || n == 0 {
			return used, more, err
		}
		if h.opcode&opControl != 0 {
			size := n + int(h.length)
			if len(b)-used < size {
				return used, more, nil
			}
			payload := append([]byte(nil), b[used+n:used+size]...)
			unmask(h.key, payload)
			used += size
			closing, err := c.control(h.opcode, payload)
			if closing || err != nil {
				return used, ended, err
			}
			continue
		}
		if err := c.beginFrame(h); err != nil {
			return used, more, err
		}
		used += n
		if h.length == 0 {
			if err := c.endFrame(); err != nil {
				return used, more, err
			}
		}
	}
}

// beginFrame steps into the payload of a data frame.
func (c *Conn) beginFrame(h header) *failure {
	if c.o.MaxFrameSize > 0 && h.length > uint64(c.o.MaxFrameSize) {
		return errFrameTooBig
	}
	if (h.opcode == opContinuation) != (c.in != nil) {
		return errProtocol // RFC 6455 §5.4
	}
	if h.packed && (c.in != nil || c.deflate == nil) {
		return errProtocol // RFC 7692 §6.1
	}
	if c.in == nil {
		c.in = &incoming{opcode: h.opcode, packed: h.packed}
	}
	in := c.in
	if limit := c.o.MaxMessageSize; limit > 0 && uint64(len(in.data))+h.length > uint64(limit) {
		return errTooBig
	}
	in.fin, in.left, in.key = h.fin, h.length, h.key
	if in.data == nil && h.length > 0 {
		in.data = make([]byte, 0, min(h.length, firstRoom))
	}
	return nil
}

// endFrame hands the message over when its last frame is there.
func (c *Conn) endFrame() *failure {
	in := c.in
	if !in.fin {
		return nil
	}
	c.in = nil
	if in.packed {
		packed := len(in.data)
		var err *failure
		if in.data, err = c.deflate.inflate(in.data, c.o.MaxMessageSize); err != nil {
			return err
		}
		in.packed = false
		if c.o.Stats != nil {
			c.o.Stats.InflatedFrom.Add(int64(packed))
			c.o.Stats.InflatedTo.Add(int64(len(in.data)))
		}
	}
	if err := in.check(true); err != nil {
		return err
	}
	c.deliver(Message{Binary: in.opcode == opBinary, Data: in.data})
	return nil
}

// take moves what is there of the frame's payload and returns its length.
func (in *incoming) take(b []byte) int {
	n := int(min(in.left, uint64(len(b))))
	at := len(in.data)
	in.data = append(in.data, b[:n]...)
	unmask(in.key, in.data[at:])
	in.key = [4]byte{in.key[n&3], in.key[(n+1)&3], in.key[(n+2)&3], in.key[(n+3)&3]}
	in.left -= uint64(n)
	return n
}

// check fails as soon as the text that is there cannot become UTF-8 any more.
func (in *incoming) check(whole bool) *failure {
	if in.opcode != opText || in.packed {
		return nil
	}
	fresh := in.data[in.checked:]
	if !whole {
		fresh = fresh[:len(fresh)-partRune(fresh)]
	}
	if !utf8.Valid(fresh) {
		return errNotUTF8
	}
	in.checked += len(fresh)
	return nil
}

// partRune is the length of the rune at the end of b that could become valid
// with more bytes, 0 when there is none.
func partRune(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) { // or never will be one
				return 0
			}
			return n
		}
	}
	return 0
}

// A header is what stands in front of a frame's payload (RFC 6455 §5.2).
type header struct {
	fin    bool
	packed bool // RSV1
	opcode byte
	length uint64
	key    [4]byte
}

// parseHeader returns the header at the beginning of b and its size, which is 0
// when it is not complete.
func parseHeader(b []byte) (h header, size int, err *failure) {
	if len(b) < 2 {
		return h, 0, nil
	}
	h.fin, h.packed, h.opcode = b[0]&fin != 0, b[0]&rsvDeflated != 0, b[0]&opcodeBits
	short := b[1] & lengthBits
	switch {
	case b[0]&(rsvBits&^rsvDeflated) != 0, b[1]&maskBit == 0:
		return h, 0, errProtocol
	case h.opcode&opControl != 0 && (!h.fin || h.packed || short > maxControl || h.opcode > opPong):
		return h, 0, errProtocol
	case h.opcode&opControl == 0 && h.opcode > opBinary:
		return h, 0, errProtocol
	}
	size = 2
	switch short {
	case length16:
		size += 2
	case length64:
		size += 8
	}
	if len(b) < size+4 {
		return h, 0, nil
	}
	least := uint64(0) // "the minimal number of bytes MUST be used"
	switch short {
	case length16:
		h.length, least = uint64(binary.BigEndian.Uint16(b[2:])), length16
	case length64:
		h.length, least = binary.BigEndian.Uint64(b[2:]), 1<<16
	default:
		h.length = uint64(short)
	}
	if h.length < least || h.length>>63 != 0 {
		return h, 0, errProtocol
	}
	copy(h.key[:], b[size:])
	return h, size + 4, nil
}

// unmask takes the client's mask off, eight bytes at a time (RFC 6455 §5.3).
func unmask(key [4]byte, b []byte) {
	k := binary.LittleEndian.Uint32(key[:])
	wide := uint64(k)<<32 | uint64(k)
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^wide)
		b = b[8:]
	}
	for i := range b {
		b[i] ^= key[i&3]
	}
}

// control acts on a control frame and reports whether it was a close.
func (c *Conn) control(opcode byte, payload []byte) (closing bool, err *failure) {
	switch opcode {
	case opPing:
		c.answerPing(payload)
	case opClose:
		code, reason := CodeNone, ""
		if len(payload) > 0 {
			if len(payload) == 1 {
				return false, errProtocol
			}
			code, reason = int(binary.BigEndian.Uint16(payload)), string(payload[2:])
			if !SendableCode(code) {
				return false, errProtocol
			}
			if !utf8.ValidString(reason) {
				return false, errReasonNotUTF8
			}
		}
		c.peerCloses(code, reason)
		return true, nil
	}
	return false, nil
}
