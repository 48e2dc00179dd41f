package websocket

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestClientThatNeverReadsIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, done := piped(t, DefaultOptions(), echo)
		synctest.Wait()
		start := time.Now()
		c.TrySend(Prepare([]byte("nobody reads"), false))
		if got := <-done; got.Code != CodeAbnormal || got.Cause != CauseSlow {
			t.Errorf("got %d %s, want 1006 slow", got.Code, got.Cause)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("cut after %v, want the write timeout", took)
		}
	})
}

func TestSlowButProgressingClientIsNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl, c, done := piped(t, DefaultOptions(), echo)
		cl.r = nil // read without a buffer
		synctest.Wait()
		m := Prepare(bytes.Repeat([]byte("x"), 40<<10), true)
		c.TrySend(m)
		want := m.frame
		var got []byte
		for len(got) < len(want) {
			time.Sleep(9 * time.Second)
			b := make([]byte, 1<<10)
			n, err := cl.Conn.Read(b)
			if err != nil {
				t.Fatalf("cut after %d bytes: %v", len(got), err)
			}
			got = append(got, b[:n]...)
		}
		if !bytes.Equal(got, want) {
			t.Error("the frame was torn")
		}
		cl.Close()
		<-done
	})
}

func TestSlowReaderOverTCPDoesNotPinServe(t *testing.T) {
	o := DefaultOptions()
	o.WriteTimeout = 200 * time.Millisecond
	_, c, done := open(t, o, nil, echo)
	frame := Prepare(make([]byte, 60<<10), true)
	for c.TrySend(frame) {
	}
	if got := <-done; got.Cause != CauseSlow {
		t.Errorf("cause %s, want slow", got.Cause)
	}
}

func TestSmallFramesAreJoinedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl, c, done := piped(t, DefaultOptions(), echo)
		synctest.Wait()
		sizes := []int{1, 100, 9000, 9000, 20000, 3, 0, 70000, 5}
		for i, n := range sizes {
			c.TrySend(Prepare([]byte(strings.Repeat(string(rune('a'+i)), n)), false))
		}
		for i, n := range sizes {
			cl.want(opText, strings.Repeat(string(rune('a'+i)), n))
		}
		cl.Close()
		if got := <-done; got.FramesOut != int64(len(sizes)) || got.BytesOut != 108109 {
			t.Errorf("counted %d frames, %d bytes", got.FramesOut, got.BytesOut)
		}
		_, _ = io.Copy(io.Discard, cl)
	})
}
