package phpbridge

// #include "wire.h"
import "C"

import (
	"encoding/binary"
	"fmt"
)

// A recordType says what a record carries; wire.h describes each.
type recordType uint8

const (
	recHeaders recordType = C.EPHPM_REC_HEADERS
	recOutput  recordType = C.EPHPM_REC_OUTPUT
	recFlush   recordType = C.EPHPM_REC_FLUSH
	recRead    recordType = C.EPHPM_REC_READ
	recCall    recordType = C.EPHPM_REC_CALL
	recLog     recordType = C.EPHPM_REC_LOG
	recEnd     recordType = C.EPHPM_REC_END
	recInform  recordType = C.EPHPM_REC_INFORM
	recFinish  recordType = C.EPHPM_REC_FINISH
	recNote    recordType = C.EPHPM_REC_NOTE
	recMore    recordType = C.EPHPM_REC_MORE
	recReads   recordType = C.EPHPM_REC_READS
	recPost    recordType = C.EPHPM_REC_POST
)

// recordMax is the longest payload that a record of each type may have.
var recordMax = map[recordType]uint32{
	recHeaders: C.EPHPM_HEADERS_MAX,
	recOutput:  1 << 30,
	recFlush:   0,
	recRead:    0,
	recCall:    C.EPHPM_CALL_MAX,
	recLog:     C.EPHPM_LOG_MAX,
	recEnd:     1,
	recInform:  C.EPHPM_HEADERS_MAX,
	recFinish:  0,
	recNote:    C.EPHPM_LOG_MAX,
	recMore:    0,
	recReads:   64 << 10,
	recPost:    C.EPHPM_POST_MAX + postHead,
}

// A record is one unit from the worker. The payload of OUTPUT comes in as many
// records as it takes, as it is in shared memory; the others come whole, as a
// copy that the worker cannot change. It is valid until the next call of decode.
type record struct {
	kind    recordType
	payload []byte
}

// A decoder finds the records in the bytes that a worker wrote. It trusts
// nothing: whatever the bytes are, it returns records or an error, and holds at
// most one payload.
type decoder struct {
	header  [C.EPHPM_RECORD_HEADER]byte
	have    int    // bytes of header
	left    uint32 // bytes of the payload that are still to come
	payload []byte // of a record that must come whole
}

// decode takes what it can use from the start of p and says how much that was.
// ok is false if p held no complete record: call again with what comes next.
func (d *decoder) decode(p []byte) (r record, n int, ok bool, err error) {
	if d.have < len(d.header) {
		n = copy(d.header[d.have:], p)
		d.have += n
		if d.have < len(d.header) {
			return record{}, n, false, nil
		}
		if err := d.start(); err != nil {
			return record{}, n, false, err
		}
	}
	kind := recordType(d.header[4])
	part := p[n:]
	if uint32(len(part)) > d.left {
		part = part[:d.left]
	}
	n += len(part)
	d.left -= uint32(len(part))
	switch {
	case kind == recOutput:
		ok = len(part) > 0
	default:
		d.payload = append(d.payload, part...)
		part = d.payload
		ok = d.left == 0
	}
	if d.left == 0 {
		d.have = 0
		d.payload = d.payload[:0]
	}
	return record{kind, part}, n, ok, nil
}

// start reads a complete header.
func (d *decoder) start() error {
	kind := recordType(d.header[4])
	d.left = binary.LittleEndian.Uint32(d.header[:])
	most, known := recordMax[kind]
	if !known {
		return fmt.Errorf("record of unknown type %d", kind)
	}
	if d.left > most {
		return fmt.Errorf("record of type %d with %d bytes", kind, d.left)
	}
	return nil
}

// reset forgets a request; a large buffer is not kept for the next one.
func (d *decoder) reset() {
	d.have, d.left = 0, 0
	if cap(d.payload) > 64<<10 {
		d.payload = nil
	}
	d.payload = d.payload[:0]
}

// parseHeaders reads the payload of a HEADERS record. The lines alias p.
func parseHeaders(p []byte, line func(l []byte)) (status int, err error) {
	if len(p) < 4 {
		return 0, fmt.Errorf("headers record of %d bytes", len(p))
	}
	status = int(binary.LittleEndian.Uint16(p))
	count := int(binary.LittleEndian.Uint16(p[2:]))
	p = p[4:]
	for i := range count {
		if len(p) < 4 {
			return 0, fmt.Errorf("headers record ends before header %d of %d", i+1, count)
		}
		n := binary.LittleEndian.Uint32(p)
		p = p[4:]
		if uint64(n) > uint64(len(p)) {
			return 0, fmt.Errorf("header %d has %d bytes, %d are left", i+1, n, len(p))
		}
		line(p[:n])
		p = p[n:]
	}
	return status, nil
}
