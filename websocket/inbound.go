package websocket

import (
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// What ends reading besides coder's own errors.
var (
	// errLost stands for every error of the network. It wraps none, because
	// coder takes an io.EOF inside a message for the end of the message.
	errLost        = errors.New("connection lost")
	errFrameTooBig = errors.New("frame over the limit")
	errFrameLength = errors.New("frame length with its highest bit set")
)

// An inbound is the connection that coder/websocket sees. Reading passes what
// the client sent and watches it; writing and closing do nothing, because both
// are the Conn's. One goroutine reads.
type inbound struct {
	net.Conn
	early   []byte // what net/http had read beyond the handshake
	borders borders
	opened  time.Time
	heard   *atomic.Int64 // nanoseconds from opened to the last byte received
	err     error         // why Read ended; set once
}

// Read passes a control frame on only when it is there completely: coder gives
// its payload five seconds and would cut a client that trickles.
func (in *inbound) Read(p []byte) (int, error) {
	if in.err != nil {
		return 0, in.err
	}
	got := 0
	for {
		n, err := in.fill(p[got:])
		clean, verdict := in.borders.scan(p[got : got+n])
		got += clean
		if verdict != nil {
			err = verdict
		}
		if in.err = err; err != nil {
			if got > 0 {
				return got, nil // the error comes with the next Read
			}
			return 0, err
		}
		if got == len(p) || !in.borders.insideControl() {
			return got, nil
		}
	}
}

func (in *inbound) fill(p []byte) (int, error) {
	if len(in.early) > 0 {
		n := copy(p, in.early)
		if in.early = in.early[n:]; len(in.early) == 0 {
			in.early = nil
		}
		return n, nil
	}
	n, err := in.Conn.Read(p)
	if n > 0 {
		in.heard.Store(int64(time.Since(in.opened)))
	}
	if err != nil {
		err = errLost
	}
	return n, err
}

// Write drops coder's control frames; the Conn writes its own.
func (in *inbound) Write(p []byte) (int, error) { return len(p), nil }

// Close leaves the connection to the Conn.
func (in *inbound) Close() error { return nil }

// A borders follows frame headers in the bytes that a client sent. It judges
// only what coder does not; a malformed header is coder's to refuse.
type borders struct {
	max     int64 // largest payload of a data frame; 0 is no limit
	header  [maxHeader]byte
	have    int    // bytes of header
	left    uint64 // bytes of payload still to come
	control bool   // the frame is a control frame of a legal size
}

// scan follows b. Of a frame that must be refused it returns the verdict and
// how many bytes in front of its header are clean.
func (f *borders) scan(b []byte) (clean int, verdict error) {
	start := 0 // where the current header began in b
	for i := 0; i < len(b); {
		if f.left > 0 {
			n := min(f.left, uint64(len(b)-i))
			f.left -= n
			i += int(n)
			continue
		}
		if f.have == 0 {
			start = i
		}
		f.header[f.have] = b[i]
		f.have++
		i++
		if f.have < 2 || f.have < f.headerLen() {
			continue
		}
		f.have = 0
		if err := f.enter(); err != nil {
			return start, err
		}
	}
	return len(b), nil
}

// headerLen is the length of the header whose first two bytes are there.
func (f *borders) headerLen() int {
	n := 2
	switch f.header[1] & lengthBits {
	case length16:
		n += 2
	case length64:
		n += 8
	}
	if f.header[1]&maskBit != 0 {
		n += 4
	}
	return n
}

// enter judges a complete header and steps into its payload.
func (f *borders) enter() error {
	switch n := f.header[1] & lengthBits; n {
	case length16:
		f.left = uint64(binary.BigEndian.Uint16(f.header[2:]))
	case length64:
		f.left = binary.BigEndian.Uint64(f.header[2:])
	default:
		f.left = uint64(n)
	}
	isControl := f.header[0]&opControl != 0
	f.control = isControl && f.left <= maxControl
	if f.left>>63 != 0 {
		return errFrameLength
	}
	if !isControl && f.max > 0 && f.left > uint64(f.max) {
		return errFrameTooBig
	}
	return nil
}

// insideControl reports whether a control frame has begun and not ended.
func (f *borders) insideControl() bool {
	if f.have > 0 {
		return f.header[0]&opControl != 0
	}
	return f.left > 0 && f.control
}
