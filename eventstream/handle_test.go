package eventstream

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

func TestMessagesAreHandledInOrderOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(options())
		if err := c.Handle(1, func() { t.Error("handled before Open") }); !errors.Is(err, ErrClosed) {
			t.Errorf("Handle before Open = %v", err)
		}
		s := serve(t, c, 0)
		var order []int
		step, done := make(chan struct{}), make(chan error, 20)
		for i := range 1 + maxWaiting {
			go func() {
				done <- c.Handle(10, func() {
					<-step
					order = append(order, i)
				})
			}()
			synctest.Wait()
		}
		if err := c.Handle(1, func() {}); !errors.Is(err, ErrFull) {
			t.Errorf("one more than may wait: %v, want ErrFull", err)
		}
		s.leave() // what came before is handled
		synctest.Wait()
		if len(s.ends()) != 0 {
			t.Error("the end was told while messages are handled")
		}
		close(step)
		for range 1 + maxWaiting {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if !slices.IsSorted(order) || len(order) != 1+maxWaiting {
			t.Errorf("messages were handled in the order %v", order)
		}
		s.wantEnd(t, 1006, "", CauseGone)
		if e := s.ends()[0]; e.FramesIn != 1+maxWaiting || e.BytesIn != 10*(1+maxWaiting) {
			t.Errorf("counted %d messages of %d bytes", e.FramesIn, e.BytesIn)
		}
	})
}

func TestMessagesThatWaitAreDroppedByClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(options())
		s := serve(t, c, 0)
		step, done := make(chan struct{}), make(chan error)
		go func() { _ = c.Handle(1, func() { <-step }) }() // it is handled
		synctest.Wait()
		for range 3 {
			go func() { done <- c.Handle(1, func() { t.Error("handled after Close") }) }()
		}
		synctest.Wait()
		c.Close(1000, "", "server")
		close(step)
		for range 3 {
			if err := <-done; !errors.Is(err, ErrClosed) {
				t.Errorf("Handle = %v, want ErrClosed", err)
			}
		}
		<-s.done
		synctest.Wait()
		s.wantEnd(t, 1000, "", "server")
	})
}
