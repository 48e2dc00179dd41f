package eventstream

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStreamHasWhatIsSentInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(options())
		c.TrySend(text("welcome", 5)) // before the client was answered
		s := serve(t, c, 7)
		for _, f := range []*Frame{text("one", 0), text("two\nlines", 8), NewFrame([]byte{0, 255}, true, Stamp{9, 9})} {
			if !c.TrySend(f) {
				t.Error("TrySend = false")
			}
		}
		s.wantEvents(t,
			event{"message", "welcome", ""}, // no ID: it is not all that was queued
			event{"message", "", "e7a-7"},
			event{"message", "one", "e7a-7"},
			event{"message", "two\nlines", "e7a-8"},
			event{"binary", "AP8=", "e7a-9"})
		if !strings.HasPrefix(s.out.String(), "retry: ") {
			t.Errorf("the stream begins with %.40q, want a retry", s.out.String())
		}
		s.leave()
		<-s.done
		s.wantEnd(t, 1006, "", CauseGone)
		if e := s.ends()[0]; e.FramesOut != 4 || e.BytesOut != 21 {
			t.Errorf("%d frames and %d bytes were counted, want 4 and 21", e.FramesOut, e.BytesOut)
		}
		if c.TrySend(text("late", 0)) {
			t.Error("TrySend to a connection that has gone = true")
		}
	})
}

func TestPingsAreComments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.PingInterval = 30 * time.Second
		s := serve(t, newConn(o), 0)
		time.Sleep(95 * time.Second)
		if got := strings.Count(s.out.String(), ":\n\n"); got != 3 {
			t.Errorf("%d pings in 95 seconds, want 3", got)
		}
		s.wantEvents(t) // nobody sees them
		s.leave()
		<-s.done
	})
}

func TestCloseIsTheLastEvent(t *testing.T) {
	for _, test := range []struct {
		code  int
		retry bool
	}{{1000, false}, {4001, false}, {1008, false}, {1001, true}, {1012, true}, {1013, true}} {
		synctest.Test(t, func(t *testing.T) {
			c := newConn(options())
			s := serve(t, c, 0)
			c.TrySend(text("last", 0))
			c.Close(test.code, `say "bye"`, "server")
			c.Close(1000, "too late", "server")
			<-s.done
			want := event{"close", `{"code":` + itoa(test.code) + `,"reason":"say \"bye\"","retry":false}`, Over}
			if test.retry {
				want = event{"close", strings.Replace(want.data, "false", "true", 1), ""}
			}
			s.wantEvents(t, event{"message", "last", ""}, want)
			if got := strings.Count(s.out.String(), "retry: "); got != map[bool]int{false: 1, true: 2}[test.retry] {
				t.Errorf("code %d: %d retry fields", test.code, got)
			}
			s.wantEnd(t, test.code, `say "bye"`, "server")
		})
	}
}

func TestCloseBeforeTheAnswerIsToldBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(options())
		c.TrySend(text("first", 0))
		c.Close(4000, "", "server")
		s := serve(t, c, 0)
		<-s.done
		s.wantEvents(t, event{"message", "first", ""}, event{"close", `{"code":4000,"reason":"","retry":false}`, Over})
	})
}

func TestSlowReaderIsKilledAheadOfItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(options())
		s := serve(t, c, 0)
		gate := make(chan struct{})
		s.out.mu.Lock()
		s.out.block = gate
		s.out.mu.Unlock()
		c.TrySend(text("being written", 0))
		synctest.Wait()
		n := 0
		for c.TrySend(text("queued", 0)) {
			n++
		}
		if n != 4 {
			t.Errorf("%d frames wait, want 4", n)
		}
		if !c.Kill(1013, "", CauseSlow) || c.Kill(1013, "", CauseSlow) {
			t.Error("want the first Kill to be the one")
		}
		close(gate)
		<-s.done
		s.wantEvents(t, event{"message", "being written", ""}, event{"close", `{"code":1013,"reason":"","retry":true}`, ""})
		s.wantEnd(t, 1013, "", CauseSlow)
	})
}

func TestWriteThatFailsEndsTheConnection(t *testing.T) {
	for cause, err := range map[string]error{CauseGone: errors.New("broken pipe"), CauseSlow: os.ErrDeadlineExceeded} {
		synctest.Test(t, func(t *testing.T) {
			c := newConn(options())
			s := serve(t, c, 0)
			s.out.mu.Lock()
			s.out.err = err
			s.out.mu.Unlock()
			c.TrySend(text("x", 0))
			<-s.done
			s.wantEnd(t, 1006, "", cause)
		})
	}
}

func TestCutSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(options())
		s := serve(t, c, 0)
		c.Cut("shutdown")
		<-s.done
		s.wantEvents(t)
		s.wantEnd(t, 1006, "", "shutdown")
	})
}

func TestLargeFramesPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(options())
		s := serve(t, c, 0)
		large := strings.Repeat("x", 3<<20)
		if !c.TrySend(text(large, 0)) {
			t.Error("a frame over QueueBytes was refused by an empty queue")
		}
		synctest.Wait()
		c.TrySend(text("small", 0))
		s.wantEvents(t, event{"message", large, ""}, event{"message", "small", ""})
		s.leave()
		<-s.done
	})
}
