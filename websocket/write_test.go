package websocket

import (
	"bytes"
	"fmt"
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

// Every ping is answered, in order, also those that come while an answer is written.
func TestPongsOfABurstAllArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl, _, done := piped(t, DefaultOptions(), echo)
		for i := range 10 { // the pipe takes nothing: the first pong waits in Write
			cl.write(masked(fin|opPing, fmt.Append(nil, i)))
			synctest.Wait()
		}
		for i := range 10 {
			cl.want(opPong, fmt.Sprint(i))
		}
		cl.write(closing(1000, ""))
		cl.want(opClose, "1000 ")
		<-done
	})
}

// A flood of pings is answered by bounded memory: the newest always.
func TestPongsThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl, c, done := piped(t, DefaultOptions(), echo)
		pad := strings.Repeat("x", maxControl-4)
		for i := range 1000 {
			cl.write(masked(fin|opPing, fmt.Appendf(nil, "%4d%s", i, pad)))
		}
		synctest.Wait()
		c.mu.Lock()
		if n := len(c.pongs); n == 0 || n > maxPongs+maxControl {
			t.Errorf("%d bytes of pongs wait, want at most %d", n, maxPongs)
		}
		c.mu.Unlock()
		n, last := 0, ""
		for ; last != " 999"; n++ {
			_, payload, err := cl.next()
			if err != nil {
				t.Fatal(err)
			}
			last = string(payload[:4])
		}
		if n < 2 || n > 100 {
			t.Errorf("%d pongs came for 1000 pings that were not read", n)
		}
		cl.write(closing(1000, ""))
		cl.want(opClose, "1000 ")
		<-done
	})
}
