package websocket

import (
	"bytes"
	"testing"
)

func TestFrameLengths(t *testing.T) {
	for _, n := range []int{0, 1, 125, 126, 65535, 65536} {
		p := bytes.Repeat([]byte{7}, n)
		f := Prepare(p, true).frame
		cl := client{r: newReader(f)}
		op, got, err := cl.next()
		if err != nil || op != opBinary || !bytes.Equal(got, p) {
			t.Errorf("frame of %d bytes: opcode %d, %d bytes, error %v", n, op, len(got), err)
		}
		if payloadLen(f) != n || cap(f) != len(f) {
			t.Errorf("frame of %d bytes: payloadLen %d, capacity %d of %d", n, payloadLen(f), len(f), cap(f))
		}
	}
}
