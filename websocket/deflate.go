package websocket

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/flate"
)

// The values of Options.Compression.
const (
	CompressionOff       = iota // permessage-deflate is not agreed on
	CompressionNoContext        // each message by itself
	CompressionContext          // messages refer to those before
)

// windowSize is the farthest that deflate refers back.
const windowSize = 32 << 10

// Contexts bounds the memory of all connections whose messages refer to those
// before. Nil has room for none.
type Contexts struct {
	max, used atomic.Int64
}

// NewContexts returns Contexts of so many bytes.
func NewContexts(limit int64) *Contexts {
	x := &Contexts{}
	x.max.Store(limit)
	return x
}

func (x *Contexts) take(n int64) bool {
	if x == nil {
		return false
	}
	if x.used.Add(n) > x.max.Load() {
		x.used.Add(-n)
		return false
	}
	return true
}

func (x *Contexts) give(n int64) {
	if x != nil {
		x.used.Add(-n)
	}
}

// A deflate is what a connection has agreed on, and its contexts. The in side is
// the reader's, the out side is guarded by Conn.mu.
type deflate struct {
	bits            uint8 // of the window of what is sent
	keepIn, keepOut bool
	in, out         []byte // the last of what came, and of what was sent compressed
}

// contextSize is the memory of the contexts.
func (d *deflate) contextSize() (n int64) {
	if d.keepIn {
		n += windowSize
	}
	if d.keepOut {
		n += 1 << d.bits
	}
	return n
}

// slide appends b to a context and keeps its last bytes.
func slide(context, b []byte, size int) []byte {
	if len(b) >= size {
		return append(context[:0], b[len(b)-size:]...)
	}
	if over := len(context) + len(b) - size; over > 0 {
		context = context[:copy(context, context[over:])]
	}
	return append(context, b...)
}

// tail ends the compressed data of a message: four bytes that the sender left out
// (RFC 7692 §7.2.2) and an empty block that is the last.
const tail = "\x00\x00\xff\xff\x01\x00\x00\xff\xff"

var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// inflate decompresses a message of at most limit bytes, 0 for any number.
func (d *deflate) inflate(data []byte, limit int64) ([]byte, *failure) {
	r := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(r)
	rest := bytes.NewReader(append(data, tail...))
	out := bytes.NewBuffer(make([]byte, 0, 3*len(data)))
	for rest.Len() > 0 {
		dict := d.in
		if out.Len() > 0 { // behind a last block that was not the last
			dict = slide(bytes.Clone(d.in), out.Bytes(), windowSize)
		}
		if err := r.(flate.Resetter).Reset(rest, dict); err != nil {
			return nil, errDeflate
		}
		var from io.Reader = r
		if limit > 0 {
			from = io.LimitReader(r, limit+1-int64(out.Len()))
		}
		if _, err := out.ReadFrom(from); err != nil {
			return nil, errDeflate
		}
		if limit > 0 && int64(out.Len()) > limit {
			return nil, errTooBig
		}
		if rest.Len() == len(tail) { // the sender's last block was the last
			break
		}
	}
	if d.keepIn {
		d.in = slide(d.in, out.Bytes(), windowSize)
	}
	return out.Bytes(), nil
}

// deflaters are by the bits of their window; those of 15 are the package's own
// compression, faster and better than that for a window of any size.
var deflaters [16]sync.Pool

func deflater(bits uint8) *flate.Writer {
	if w, ok := deflaters[bits].Get().(*flate.Writer); ok {
		return w
	}
	if bits < 15 {
		w, _ := flate.NewWriterWindow(io.Discard, 1<<bits) // the size is legal
		return w
	}
	w, _ := flate.NewWriter(io.Discard, flate.DefaultCompression) // the level is legal
	return w
}

// compress returns payload as a compressed frame, or nil when that is not
// smaller than plain.
func compress(op byte, payload, context []byte, bits uint8) []byte {
	var buf bytes.Buffer
	w := deflater(bits)
	defer deflaters[bits].Put(w)
	w.ResetDict(&buf, context)
	_, _ = w.Write(payload) // a buffer takes all
	_ = w.Flush()
	w.ResetDict(io.Discard, nil)                             // keep nothing alive
	short := bytes.TrimSuffix(buf.Bytes(), []byte(tail[:4])) // Flush ends with them
	if len(short) >= len(payload) {
		return nil
	}
	frame := appendFrame(make([]byte, 0, headerLen(len(short))+len(short)), op, short)
	frame[0] |= rsvDeflated
	return frame
}

// encodeLocked returns the frame of m for this connection.
func (c *Conn) encodeLocked(m *Prepared, shared bool) []byte {
	d := c.deflate
	payload := m.payload()
	if d == nil || len(payload) < c.o.CompressionThreshold || len(payload) == 0 {
		return m.frame
	}
	var frame []byte
	if d.keepOut && !shared {
		if frame = compress(m.frame[0]&opcodeBits, payload, d.out, d.bits); frame != nil {
			d.out = slide(d.out, payload, 1<<d.bits)
		}
	} else if frame = m.compressed(d.bits); frame != nil {
		// It refers to nothing before it, and the client's window has moved: what
		// follows refers to nothing before it either.
		d.out = d.out[:0]
	}
	if frame == nil {
		return m.frame
	}
	if c.o.Stats != nil {
		c.o.Stats.DeflatedFrom.Add(int64(len(payload)))
		c.o.Stats.DeflatedTo.Add(int64(payloadLen(frame)))
	}
	return frame
}

// giveContextsLocked gives back what agree took.
func (c *Conn) giveContextsLocked() {
	if d := c.deflate; d != nil && (d.keepIn || d.keepOut) {
		c.o.Contexts.give(d.contextSize())
		d.keepIn, d.keepOut, d.out = false, false, nil
	}
}

// payload is that of the plain frame.
func (m *Prepared) payload() []byte { return m.frame[len(m.frame)-payloadLen(m.frame):] }

// compressed returns the frame for everybody with a window of so many bits, made
// once; nil when it would not be smaller.
func (m *Prepared) compressed(bits uint8) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.deflated {
		if d.bits == bits {
			return d.frame
		}
	}
	frame := compress(m.frame[0]&opcodeBits, m.payload(), nil, bits)
	m.deflated = append(m.deflated, deflatedFrame{bits, frame})
	return frame
}

// A deflatedFrame is one of Prepared.deflated.
type deflatedFrame struct {
	bits  uint8
	frame []byte
}
