package eventstream

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestQueueIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		frames int
		bytes  int64
		size   int
		want   int
	}{
		"in frames":                              {3, 0, 10, 3},
		"in bytes":                               {100, 25, 10, 2},
		"but takes one that is larger by itself": {100, 25, 50, 1},
	} {
		c := newConn(&Options{QueueFrames: test.frames, QueueBytes: test.bytes})
		n := 0
		for c.TrySend(NewFrame(make([]byte, test.size), true, Stamp{})) {
			n++
		}
		if n != test.want {
			t.Errorf("%s: %d frames were taken, want %d", name, n, test.want)
		}
	}
}

func TestReplayMayBeLongerThanTheQueue(t *testing.T) {
	c := newConn(options())
	frames := slices.Repeat([]*Frame{text("x", 0)}, 100)
	if !c.Replay(frames) {
		t.Error("100 frames of the past were refused")
	}
	if c.TrySend(text("x", 0)) {
		t.Error("a live frame was taken over the bound")
	}
	if c.Replay([]*Frame{NewFrame(make([]byte, 2<<20), true, Stamp{})}) {
		t.Error("more than QueueBytes of the past were taken")
	}
}

func TestSendWaitGetsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(options())
		s := serve(t, c, 1)
		gate := make(chan struct{})
		s.out.mu.Lock()
		s.out.block = gate
		s.out.mu.Unlock()
		seq := uint64(1)
		for { // one is being written, four wait
			seq++
			if !c.TrySend(text("x", seq)) {
				break
			}
			synctest.Wait()
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if c.SendWait(short, text("x", 0)) {
			t.Error("SendWait = true while nobody reads")
		}
		got := make(chan bool)
		go func() { got <- c.SendWait(t.Context(), text("late", seq)) }()
		synctest.Wait()
		close(gate)
		if !<-got {
			t.Error("SendWait = false after the client has read")
		}
		synctest.Wait()
		if events := parse(t, s.out.String()); events[len(events)-1] != (event{"message", "late", Mark{Era: 0xe7a, Position: Position{Seq: seq}}.String()}) {
			t.Errorf("the last event is %q", events[len(events)-1])
		}
		waiting := make(chan bool)
		s.out.mu.Lock()
		s.out.block = make(chan struct{})
		defer close(s.out.block)
		s.out.mu.Unlock()
		for c.TrySend(text("x", 0)) {
			synctest.Wait()
		}
		go func() { waiting <- c.SendWait(t.Context(), text("x", 0)) }()
		synctest.Wait()
		c.Close(1000, "", "server")
		if <-waiting {
			t.Error("SendWait = true on a connection that closes")
		}
	})
}
