package websocket

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestBrokenRulesGetTheirCode(t *testing.T) {
	big := DefaultOptions()
	big.MaxMessageSize, big.MaxFrameSize = 100, 60
	for name, c := range map[string]struct {
		sent   []byte
		close  string
		closed int
		cause  Cause
	}{
		"close 1000":             {closing(1000, "bye"), "1000 ", 1000, CauseClient},
		"close 4321":             {closing(4321, ""), "4321 ", 4321, CauseClient},
		"close without code":     {masked(fin|opClose, nil), "", CodeNone, CauseClient},
		"close of one byte":      {masked(fin|opClose, []byte{3}), "1002 ", 1002, CauseProtocol},
		"close 1005":             {closing(1005, ""), "1002 ", 1002, CauseProtocol},
		"close 999":              {closing(999, ""), "1002 ", 1002, CauseProtocol},
		"close 2000":             {closing(2000, ""), "1002 ", 1002, CauseProtocol},
		"close reason not UTF-8": {closing(1000, "\xff"), "1007 close reason is not UTF-8", 1007, CauseProtocol},
		"unmasked":               {appendFrame(nil, opText, []byte("hi")), "1002 ", 1002, CauseProtocol},
		"RSV1":                   {masked(fin|0x40|opText, []byte("x")), "1002 ", 1002, CauseProtocol},
		"RSV3":                   {masked(fin|0x10|opText, []byte("x")), "1002 ", 1002, CauseProtocol},
		"reserved opcode":        {masked(fin|3, []byte("x")), "1002 ", 1002, CauseProtocol},
		"reserved control":       {masked(fin|0xB, []byte("x")), "1002 ", 1002, CauseProtocol},
		"lone continuation":      {masked(fin, []byte("x")), "1002 ", 1002, CauseProtocol},
		"new message in message": {append(masked(opText, []byte("a")), text("b")...), "1002 ", 1002, CauseProtocol},
		"fragmented ping":        {masked(opPing, nil), "1002 ", 1002, CauseProtocol},
		"ping of 126 bytes":      {masked(fin|opPing, make([]byte, 126)), "1002 ", 1002, CauseProtocol},
		"length with high bit":   {[]byte{fin | opText, maskBit | 127, 0x80, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4}, "1002 ", 1002, CauseProtocol},
		"text not UTF-8":         {text("\xc3\x28"), "1007 text is not UTF-8", 1007, CauseProtocol},
		"text cut inside a rune": {text("\xe2\x82"), "1007 text is not UTF-8", 1007, CauseProtocol},
		"frame too big":          {masked(fin|opText, make([]byte, 61)), "1009 frame over the limit", 1009, CauseLimit},
		"message too big":        {append(masked(opText, make([]byte, 60)), masked(fin, make([]byte, 41))...), "1009 message over the limit", 1009, CauseLimit},
	} {
		t.Run(name, func(t *testing.T) {
			cl, _, done := open(t, big, nil, func(*Conn) handler { return ignore })
			cl.write(c.sent)
			cl.want(opClose, c.close)
			cl.wantEOF()
			cl.Close()
			if got := <-done; got.Code != c.closed || got.Cause != c.cause {
				t.Errorf("Closed says code %d cause %s, want %d %s", got.Code, got.Cause, c.closed, c.cause)
			}
		})
	}
}

func TestPeersReasonIsReported(t *testing.T) {
	cl, _, done := open(t, DefaultOptions(), nil, func(*Conn) handler { return ignore })
	cl.write(closing(3001, "going home"))
	cl.want(opClose, "3001 ")
	if got := <-done; got.Reason != "going home" {
		t.Errorf("Reason = %q, want the peer's", got.Reason)
	}
}

func TestCloseFrameSurvivesABigUnreadMessage(t *testing.T) {
	o := DefaultOptions()
	o.MaxFrameSize = 1000
	cl, _, done := open(t, o, nil, func(*Conn) handler { return ignore })
	cl.write(masked(fin|opBinary, make([]byte, 3<<20))) // returns once the server drained most of it
	cl.want(opClose, "1009 frame over the limit")
	cl.wantEOF()
	cl.Close()
	<-done
}

func TestEndOfFileIsGone(t *testing.T) {
	cl, _, done := open(t, DefaultOptions(), nil, func(*Conn) handler { return ignore })
	cl.Close()
	if got := <-done; got.Code != CodeAbnormal || got.Cause != CauseGone {
		t.Errorf("got %d %s, want 1006 gone", got.Code, got.Cause)
	}
}

func TestMessageCutShortIsNotHandled(t *testing.T) {
	var handled []string
	cl, _, done := open(t, DefaultOptions(), nil, func(*Conn) handler {
		return func(_ context.Context, m Message) error {
			handled = append(handled, string(m.Data))
			return nil
		}
	})
	long := text(strings.Repeat("x", 5000))
	cl.write(append(text("whole"), long[:len(long)-1]...))
	cl.Close()
	if got := <-done; got.Code != CodeAbnormal || len(handled) != 1 || handled[0] != "whole" {
		t.Errorf("code %d, handled %.40q, want 1006 and only the whole message", got.Code, handled)
	}
}

func TestCloseFollowsQueuedFrames(t *testing.T) {
	cl, _, done := open(t, DefaultOptions(), nil, func(c *Conn) handler {
		return func(context.Context, Message) error {
			c.TrySend(Prepare([]byte("bye"), false))
			c.Close(4000, "that was it", CauseServer)
			c.Close(4001, "", CauseTimeout)
			if c.TrySend(Prepare([]byte("late"), false)) {
				t.Error("TrySend after Close was accepted")
			}
			return nil
		}
	})
	cl.write(append(text("go"), text("dropped")...))
	cl.want(opText, "bye")
	cl.want(opClose, "4000 that was it")
	cl.write(closing(4000, ""))
	cl.wantEOF()
	if got := <-done; got.Code != 4000 || got.Cause != CauseServer || got.Reason != "that was it" || got.FramesOut != 1 || got.BytesOut != 3 {
		t.Errorf("got %+v", got)
	}
}

func TestMessagesBeforeTheClientsCloseAreHandled(t *testing.T) {
	handled := 0
	cl, _, done := open(t, DefaultOptions(), nil, func(*Conn) handler {
		return func(context.Context, Message) error { handled++; return nil }
	})
	var b []byte
	for range 50 {
		b = append(b, text("m")...)
	}
	cl.write(append(b, closing(1000, "")...))
	cl.want(opClose, "1000 ")
	if got := <-done; handled != 50 || got.FramesIn != 50 || got.BytesIn != 50 {
		t.Errorf("handled %d, counted %d frames %d bytes, want 50 each", handled, got.FramesIn, got.BytesIn)
	}
}

func TestErrorOfTheHandlerClosesWith1011(t *testing.T) {
	cl, _, done := open(t, DefaultOptions(), nil, func(*Conn) handler {
		return func(context.Context, Message) error { return errors.New("no") }
	})
	cl.write(append(text("a"), text("b")...))
	cl.want(opClose, "1011 ")
	cl.Close()
	<-done
}

func TestServerCloseWaitsForTheAnswerButNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl, c, done := piped(t, DefaultOptions(), func(*Conn) handler { return ignore })
		synctest.Wait()
		c.Close(1000, "", CauseServer)
		cl.want(opClose, "1000 ")
		asked := time.Now()
		cl.write(text("still talking"))
		if got := <-done; got.Code != 1000 || got.FramesIn != 0 {
			t.Errorf("got %+v, want code 1000 and the late message dropped", got)
		}
		if waited := time.Since(asked); waited != closeWait {
			t.Errorf("waited %v for the close answer, want %v", waited, closeWait)
		}
	})
}

func TestKillDropsTheQueueAndJumpsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl, c, done := piped(t, DefaultOptions(), func(*Conn) handler { return ignore })
		synctest.Wait()
		c.TrySend(Prepare([]byte("being written"), false))
		synctest.Wait() // the writer is stuck in the pipe
		for range 10 {
			c.TrySend(Prepare([]byte("dropped"), false))
		}
		if !c.Kill(1013, "", CauseSlow) || c.Kill(1013, "", CauseSlow) {
			t.Error("Kill does not say which call was the first")
		}
		cl.want(opText, "being written")
		cl.want(opClose, "1013 ")
		cl.Close()
		if got := <-done; got.Code != 1013 || got.Cause != CauseSlow || got.FramesOut != 1 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestKilledClientThatNeverReadsIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, done := piped(t, DefaultOptions(), func(*Conn) handler { return ignore })
		synctest.Wait()
		c.TrySend(Prepare([]byte("stuck"), false))
		time.Sleep(6 * time.Second)
		killed := time.Now()
		c.Kill(1013, "", CauseSlow)
		if got := <-done; got.Code != 1013 || time.Since(killed) > 10*time.Second {
			t.Errorf("code %d after %v", got.Code, time.Since(killed))
		}
	})
}

func TestCutEndsWithoutAWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, done := piped(t, DefaultOptions(), func(*Conn) handler { return ignore })
		synctest.Wait()
		c.Cut(CauseShutdown)
		if got := <-done; got.Code != CodeAbnormal || got.Cause != CauseShutdown {
			t.Errorf("got %d %s, want 1006 shutdown", got.Code, got.Cause)
		}
	})
}

func TestSendableCodes(t *testing.T) {
	for code, want := range map[int]bool{0: false, 999: false, 1000: true, 1003: true, 1004: false, 1005: false,
		1006: false, 1007: true, 1014: true, 1015: false, 2999: false, 3000: true, 4999: true, 5000: false, -1: false} {
		if SendableCode(code) != want {
			t.Errorf("SendableCode(%d) = %v, want %v", code, !want, want)
		}
	}
}

// What the client sent before its close is handled and answered first, but a
// handler that hangs does not hold up the close for ever.
func TestClientsCloseIsAnsweredBehindItsMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl, _, done := piped(t, DefaultOptions(), func(c *Conn) handler {
			return func(_ context.Context, m Message) error {
				time.Sleep(time.Second)
				c.TrySend(Prepare(m.Data, false))
				return nil
			}
		})
		cl.write(append(text("a"), closing(3000, "bye")...))
		cl.want(opText, "a")
		cl.want(opClose, "3000 ")
		if got := <-done; got.Code != 3000 || got.Cause != CauseClient || got.FramesOut != 1 {
			t.Errorf("got %+v", got)
		}

		cl, _, done = piped(t, DefaultOptions(), func(*Conn) handler {
			return func(context.Context, Message) error { time.Sleep(time.Hour); return nil }
		})
		asked := time.Now()
		cl.write(append(text("a"), closing(3000, "bye")...))
		cl.want(opClose, "3000 ")
		if waited := time.Since(asked); waited != closeWait {
			t.Errorf("the close was answered after %v, want %v", waited, closeWait)
		}
		if got := <-done; got.Code != 3000 {
			t.Errorf("got %+v", got)
		}
	})
}

// A stream of several is closed behind the close frame to a client that broke a rule
// and goes on. A connection by itself would be reset, and the client might not see
// the frame, so that is read for a while.
func TestBrokenStreamsAreNotReadOn(t *testing.T) {
	for name, c := range map[string]struct {
		wrap func(net.Conn) net.Conn
		want time.Duration
	}{
		"connection": {func(c net.Conn) net.Conn { return c }, closeWait},
		"stream":     {func(c net.Conn) net.Conn { return oneOfMany{c} }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			cl, _, done := pipedAs(t, DefaultOptions(), c.wrap, func(*Conn) handler { return ignore })
			cl.write([]byte{0x81, 1, 'x'})
			cl.want(opClose, "1002 ")
			since := time.Now()
			if got := <-done; got.Code != CodeProtocol || got.Cause != CauseProtocol {
				t.Errorf("%s: got %+v, want 1002", name, got)
			}
			if waited := time.Since(since); waited != c.want {
				t.Errorf("%s: ended %v behind the close frame, want %v", name, waited, c.want)
			}
		})
	}
}

// oneOfMany is a stream of a connection that has more.
type oneOfMany struct{ net.Conn }

func (oneOfMany) Multiplexed() {}
