package eventstream

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// poll opens a connection for polls.
func poll(c *Conn, seq uint64) *handler {
	h := &handler{}
	c.Open(h, true, seq)
	return h
}

// wantAnswer polls and compares the JSON; it returns the next cursor.
func wantAnswer(t *testing.T, c *Conn, cursor uint64, wait time.Duration, want string) uint64 {
	t.Helper()
	a, err := c.Poll(t.Context(), cursor, wait)
	if err != nil {
		t.Fatalf("Poll: %v", err)
	}
	got, err := json.Marshal(a)
	if err != nil || string(got) != want {
		t.Errorf("the answer is %s, %v, want %s", got, err, want)
	}
	m, ok := ParseMark(a.LastEventID)
	if !ok || !m.Polled {
		t.Errorf("last_event_id is %q", a.LastEventID)
	}
	return m.Cursor
}

func TestPollsFetchWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(options())
		c.TrySend(text("welcome", 0))
		h := poll(c, 7)
		at := wantAnswer(t, c, 0, 0, `{"last_event_id":"e7a-7-2","frames":[{"data":"welcome"}]}`)
		began := time.Now()
		at = wantAnswer(t, c, at, 25*time.Second, `{"last_event_id":"e7a-7-2","frames":[]}`)
		if took := time.Since(began); took != 25*time.Second {
			t.Errorf("a poll without news took %v, want 25s", took)
		}
		time.AfterFunc(time.Second, func() {
			c.TrySend(text("a\rb\u2028<", 8))
			c.TrySend(NewFrame(nil, true, Stamp{9, 9}))
		})
		began = time.Now()
		if _, err := c.Poll(t.Context(), at, 25*time.Second); err != nil || time.Since(began) != time.Second {
			t.Errorf("a poll with news took %v, %v, want 1s", time.Since(began), err)
		}
		synctest.Wait()
		// The answer was lost: the same again, and what came since.
		want := `{"last_event_id":"e7a-9-4","frames":[{"data":"a\rb\u2028<"},{"binary":""}]}`
		at = wantAnswer(t, c, at, 0, strings.ReplaceAll(want, "<", `\u003c`)) // json.Marshal, not the frame
		for _, cursor := range []uint64{at - 3, at + 1} {
			if _, err := c.Poll(t.Context(), cursor, 0); !errors.Is(err, ErrCursor) {
				t.Errorf("Poll behind %d = %v, want ErrCursor", cursor, err)
			}
		}
		c.Close(4000, "enough", "server")
		if len(h.ends()) != 0 {
			t.Error("the end was told before the client knows")
		}
		wantAnswer(t, c, at, time.Minute, `{"last_event_id":"e7a-9-4","frames":[],"close":{"code":4000,"reason":"enough","retry":false}}`)
		h.wantEnd(t, 4000, "enough", "server")
		if e := h.ends()[0]; e.FramesOut != 3 {
			t.Errorf("%d frames were counted, want 3: one was sent twice", e.FramesOut)
		}
		if _, err := c.Poll(t.Context(), at, 0); !errors.Is(err, ErrClosed) {
			t.Errorf("Poll after the end = %v, want ErrClosed", err)
		}
	})
}

func TestClientThatDoesNotPollHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(options())
		h := poll(c, 0)
		for range 4 { // longer than PollIdle in all
			time.Sleep(20 * time.Second)
			wantAnswer(t, c, 0, 25*time.Second, `{"last_event_id":"e7a-0-0","frames":[]}`)
		}
		time.Sleep(29 * time.Second)
		if len(h.ends()) != 0 {
			t.Error("gone before its time")
		}
		time.Sleep(2 * time.Second)
		h.wantEnd(t, 1006, "", CauseGone)
	})
}

func TestLaterPollEndsTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(options())
		h := poll(c, 0)
		first := make(chan Answer)
		go func() {
			a, _ := c.Poll(t.Context(), 0, time.Hour)
			first <- a
		}()
		synctest.Wait()
		second := make(chan Answer)
		go func() {
			a, _ := c.Poll(t.Context(), 0, time.Hour)
			second <- a
		}()
		if a := <-first; len(a.Frames) != 0 || a.Close != nil {
			t.Errorf("the first poll got %v", a)
		}
		c.TrySend(text("x", 0))
		if a := <-second; len(a.Frames) != 1 {
			t.Errorf("the second poll got %v", a)
		}
		time.Sleep(time.Minute)
		h.wantEnd(t, 1006, "", CauseGone)
	})
}

func TestClientThatLeavesAPollMayComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(options())
		poll(c, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Poll(ctx, 0, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Poll = %v", err)
		}
		c.TrySend(text("x", 0))
		wantAnswer(t, c, 0, 0, `{"last_event_id":"e7a-0-1","frames":[{"data":"x"}]}`)
		c.Cut(CauseGone)
	})
}

func TestEndOfPolledConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(options())
		h := poll(c, 0)
		c.TrySend(text("x", 0))
		at := wantAnswer(t, c, 0, 0, `{"last_event_id":"e7a-0-1","frames":[{"data":"x"}]}`)
		for c.TrySend(text("x", 0)) {
		}
		c.Kill(1013, "", CauseSlow)
		wantAnswer(t, c, at, 0, `{"last_event_id":"e7a-0-1","frames":[],"close":{"code":1013,"reason":"","retry":true}}`)
		h.wantEnd(t, 1013, "", CauseSlow)

		c = newConn(options())
		h = poll(c, 0)
		c.CutIdle() // is not closing
		c.Close(1001, "", "shutdown")
		c.CutIdle()
		h.wantEnd(t, 1001, "", "shutdown")

		c = newConn(options())
		h = poll(c, 0)
		answer := make(chan error)
		go func() {
			_, err := c.Poll(t.Context(), 0, time.Hour)
			answer <- err
		}()
		synctest.Wait()
		c.Cut("shutdown")
		if err := <-answer; !errors.Is(err, ErrClosed) {
			t.Errorf("Poll that was cut = %v", err)
		}
		h.wantEnd(t, 1006, "", "shutdown")
	})
}

func TestLongAnswersComeInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.QueueBytes = 8 << 20
		c := newConn(o)
		poll(c, 0)
		for range 3 {
			c.TrySend(NewFrame(make([]byte, maxAnswer*2/3), true, Stamp{}))
		}
		c.Close(1000, "", "server")
		at := uint64(0)
		for i := range 3 {
			a, err := c.Poll(t.Context(), at, 0)
			if err != nil || len(a.Frames) != 1 || (a.Close != nil) != (i == 2) {
				t.Fatalf("answer %d: %d frames, close %v, %v", i, len(a.Frames), a.Close, err)
			}
			m, _ := ParseMark(a.LastEventID)
			at = m.Cursor
		}
	})
}
