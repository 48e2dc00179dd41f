package websocket

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestBurstToAHealthyReaderIsNeverShed(t *testing.T) {
	cl, _, _ := open(t, DefaultOptions(), nil, func(c *Conn) handler {
		return func(ctx context.Context, _ Message) error {
			for i := range 500 {
				frame := Prepare(fmt.Append(nil, i), false)
				if !c.TrySend(frame) && !c.SendWait(ctx, frame) {
					t.Errorf("frame %d was refused", i)
				}
			}
			return nil
		}
	})
	cl.write(text("go"))
	for i := range 500 {
		cl.want(opText, fmt.Sprint(i))
	}
}

func TestQueueIsBoundedInFramesAndBytes(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		size int
		want int
	}{
		"frames":               {Options{QueueFrames: 4, QueueBytes: 1000}, 10, 4},
		"bytes":                {Options{QueueFrames: 100, QueueBytes: 36}, 10, 3},
		"one larger than that": {Options{QueueFrames: 100, QueueBytes: 36}, 100, 1},
		"no limit of bytes":    {Options{QueueFrames: 5}, 1 << 20, 5},
	} {
		conn, n := newLoop(t).New(&c.o), 0
		for conn.TrySend(Prepare(make([]byte, c.size), true)) {
			n++
		}
		if n != c.want {
			t.Errorf("%s: queue took %d frames, want %d", name, n, c.want)
		}
	}
}

func TestSendWaitGetsRoomWhenTheClientReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := DefaultOptions()
		o.QueueFrames = 1
		cl, c, done := piped(t, o, echo)
		synctest.Wait()
		c.TrySend(Prepare([]byte("1"), false))
		sent := make(chan bool)
		go func() { sent <- c.SendWait(context.Background(), Prepare([]byte("2"), false)) }()
		time.Sleep(time.Second)
		cl.want(opText, "1")
		if !<-sent {
			t.Error("SendWait refused although there was room")
		}
		cl.want(opText, "2")
		cl.Close()
		<-done
	})
}

func TestSendWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := DefaultOptions()
		o.QueueFrames = 1
		_, c, done := piped(t, o, echo)
		synctest.Wait()
		c.TrySend(Prepare([]byte("stuck"), false))
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		if c.SendWait(ctx, Prepare(nil, false)) || time.Since(start) != 100*time.Millisecond {
			t.Errorf("SendWait to a full queue returned after %v", time.Since(start))
		}
		sent := make(chan bool)
		go func() { sent <- c.SendWait(context.Background(), Prepare(nil, false)) }()
		synctest.Wait()
		c.Kill(1013, "", CauseSlow)
		if <-sent {
			t.Error("SendWait succeeded on a killed connection")
		}
		<-done
	})
}

// What is behind a handler that closes the connection, or came later, is dropped
// and counted.
func TestBacklogAndWhatIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := DefaultOptions()
		o.Stats = new(Stats)
		handled, goOn := 0, make(chan struct{})
		cl, c, done := piped(t, o, func(c *Conn) handler {
			return func(context.Context, Message) error {
				handled++
				<-goOn
				c.Close(4000, "", CauseServer)
				return nil
			}
		})
		for range 4 {
			cl.write(text("x"))
		}
		synctest.Wait()
		c.TrySend(Prepare(make([]byte, 100), true)) // a pipe takes nothing by itself
		c.TrySend(Prepare(make([]byte, 10), true))
		synctest.Wait()
		if got, want := c.Backlog(), (Backlog{Frames: 2, Bytes: 102 + 12, Messages: 3}); got != want {
			t.Errorf("Backlog = %+v, want %+v", got, want)
		}
		close(goOn)
		synctest.Wait()
		if got := o.Stats.Dropped.Load(); got != 3 {
			t.Errorf("%d messages were dropped, want 3", got)
		}
		cl.write(text("behind the close"))
		synctest.Wait()
		if got := o.Stats.Dropped.Load(); got != 4 || handled != 1 {
			t.Errorf("%d messages were dropped, %d handled, want 4 and 1", got, handled)
		}
		c.Cut(CauseGone)
		<-done
		if got := c.Backlog(); got != (Backlog{}) {
			t.Errorf("Backlog of one that has gone = %+v", got)
		}
	})
}
