package phpbridge

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
)

// appendRecord encodes a record as a worker does.
func appendRecord(b []byte, kind recordType, payload string) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = append(b, byte(kind), 0, 0, 0)
	return append(b, payload...)
}

// decodeAll feeds b in parts of the given size and renders the records.
func decodeAll(b []byte, part int) (records []string, err error) {
	var d decoder
	for len(b) > 0 {
		p := b[:min(part, len(b))]
		b = b[len(p):]
		for len(p) > 0 {
			r, n, ok, err := d.decode(p)
			if err != nil {
				return records, err
			}
			if n == 0 && !ok {
				return records, fmt.Errorf("no progress with %d bytes", len(p))
			}
			if ok {
				records = append(records, fmt.Sprintf("%d %s", r.kind, r.payload))
			}
			p = p[n:]
		}
	}
	return records, nil
}

func TestDecoderFindsRecordsInAnyPieces(t *testing.T) {
	var b []byte
	b = appendRecord(b, recLog, "hello")
	b = appendRecord(b, recFlush, "")
	b = appendRecord(b, recOutput, "")
	b = appendRecord(b, recCall, "abcdef")
	b = appendRecord(b, recEnd, "")
	want := []string{"6 hello", "3 ", "5 abcdef", "7 "}
	for part := 1; part <= len(b); part++ {
		got, err := decodeAll(b, part)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("in pieces of %d: %q, %v, want %q", part, got, err, want)
		}
	}
}

func TestDecoderRefuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"an unknown type":      appendRecord(nil, 99, ""),
		"a flush with payload": appendRecord(nil, recFlush, "x"),
		"a record over its limit": {
			0xff, 0xff, 0xff, 0xff, byte(recHeaders), 0, 0, 0,
		},
	} {
		if _, err := decodeAll(b, len(b)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add(appendRecord(appendRecord(nil, recHeaders, "\xc8\x00\x01\x00\x04\x00\x00\x00A: b"), recOutput, "body"), 3)
	f.Add(appendRecord(nil, recCall, "\x01\x00\x02\x00\x04\x01\x00\x00\x00x\x02"), 100)
	f.Add(appendRecord(appendRecord(nil, recLog, "\x05text"), recEnd, ""), 1)
	f.Add([]byte{0xff, 0xff, 0xff, 0x03, byte(recCall), 0, 0, 0, 1}, 9)
	f.Fuzz(func(t *testing.T, b []byte, part int) {
		if part <= 0 || part > 1<<20 {
			part = 1
		}
		whole, errWhole := decodeAll(b, len(b)+1)
		parts, errParts := decodeAll(b, part)
		if (errWhole == nil) != (errParts == nil) {
			t.Errorf("whole: %v, in pieces of %d: %v", errWhole, part, errParts)
		}
		if len(parts) < len(whole) {
			t.Errorf("%d records whole, %d in pieces of %d", len(whole), len(parts), part)
		}
	})
}

func FuzzParseHeaders(f *testing.F) {
	f.Add([]byte("\xc8\x00\x01\x00\x04\x00\x00\x00A: b"))
	f.Add([]byte("\xc8\x00\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, p []byte) {
		n := 0
		o := response{}
		_, err := parseHeaders(p, func(l []byte) { n += len(l) + 4; o.header(l) })
		if err == nil && n > len(p) {
			t.Errorf("%d bytes of lines from a record of %d", n, len(p))
		}
		for _, l := range o.lines {
			if !validName([]byte(l.key)) || l.value == "" {
				t.Errorf("header %q: %q was let through", l.key, l.value)
			}
		}
	})
}

func FuzzParseCall(f *testing.F) {
	f.Add([]byte("\x01\x00\x02\x00\x04\x01\x00\x00\x00x\x02"))
	f.Add([]byte("\x0b\x00\x02\x00\x04\xff\xff\xff\xffx\x03"))
	f.Fuzz(func(t *testing.T, p []byte) {
		c, err := parseCall(p)
		if err != nil {
			return
		}
		for i := range signatures[c.Func()] {
			if len(c.Bytes(i)) > len(p) {
				t.Errorf("argument %d has %d bytes of %d", i, len(c.Bytes(i)), len(p))
			}
		}
		c.Throw(ThrowValueError, "x")
		if !bytes.HasSuffix(c.answerOrNull(), []byte("x")) {
			t.Errorf("answer %q", c.answerOrNull())
		}
	})
}
