package websocket

import (
	"bytes"
	"errors"
	"testing"
)

func TestBordersStopInFrontOfTheBadFrame(t *testing.T) {
	good := append(text("fine"), masked(fin|opPing, []byte("p"))...)
	f := borders{max: 10}
	n, err := f.scan(append(bytes.Clone(good), masked(fin|opBinary, make([]byte, 11))...))
	if n != len(good) || !errors.Is(err, errFrameTooBig) {
		t.Errorf("scan = %d, %v, want %d and errFrameTooBig", n, err, len(good))
	}
}

func TestBordersKnowControlFramesThatAreNotComplete(t *testing.T) {
	ping := masked(fin|opPing, []byte("payload"))
	for i := range len(ping) + 1 {
		var f borders
		_, _ = f.scan(ping[:i])
		if got, want := f.insideControl(), i > 0 && i < len(ping); got != want {
			t.Errorf("after %d bytes of a ping: insideControl = %v, want %v", i, got, want)
		}
	}
}

// However the bytes are cut, the verdict and the number of clean bytes in
// front of it are the same.
func FuzzBorders(f *testing.F) {
	f.Add(append(text("hello"), closing(1000, "bye")...), uint8(3))
	f.Add(masked(fin|opBinary, make([]byte, 300)), uint8(1))
	f.Add([]byte{fin | opText, maskBit | 127, 0x80, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4}, uint8(5))
	f.Add(Frame(make([]byte, 70000), true), uint8(200))
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		whole := borders{max: 256}
		want, wantErr := whole.scan(b)
		if want > len(b) || want < 0 {
			t.Fatalf("%d clean bytes of %d", want, len(b))
		}
		pieces, got := borders{max: 256}, 0
		var err error
		for rest := b; len(rest) > 0 && err == nil; {
			n := min(int(step)+1, len(rest))
			clean, e := pieces.scan(rest[:n])
			if e == nil && clean != n {
				t.Fatalf("%d of %d bytes clean without a verdict", clean, n)
			}
			got, err, rest = got+clean, e, rest[n:]
		}
		// The header of a bad frame may have begun in an earlier piece.
		if !errors.Is(err, wantErr) || got < want || got > want+maxHeader-1 {
			t.Errorf("in pieces: %d, %v; at once: %d, %v", got, err, want, wantErr)
		}
	})
}
