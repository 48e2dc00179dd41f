package websocket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func echo(c *Conn) handler {
	return func(_ context.Context, m Message) error {
		c.TrySend(Prepare(m.Data, m.Binary))
		return nil
	}
}

func TestEcho(t *testing.T) {
	cl, _, done := open(t, DefaultOptions(), nil, echo)
	long := strings.Repeat("ä", 40000)
	cl.write(text("hello"))
	cl.want(opText, "hello")
	cl.write(masked(fin|opBinary, []byte{0xff, 0}))
	cl.want(opBinary, "\xff\x00")
	cl.write(text(""))
	cl.want(opText, "")
	cl.write(text(long))
	cl.want(opText, long)
	cl.write(closing(1000, ""))
	cl.want(opClose, "1000 ")
	cl.wantEOF()
	<-done
}

func TestLimitsAllowExactlyTheirSize(t *testing.T) {
	o := DefaultOptions()
	o.MaxFrameSize, o.MaxMessageSize = 200, 300
	cl, _, _ := open(t, o, nil, echo)
	cl.write(masked(opText, []byte(strings.Repeat("a", 200))))
	cl.write(masked(fin, []byte(strings.Repeat("b", 100))))
	cl.want(opText, strings.Repeat("a", 200)+strings.Repeat("b", 100))
}

func TestZeroIsNoLimit(t *testing.T) {
	o := DefaultOptions()
	o.MaxFrameSize, o.MaxMessageSize, o.QueueBytes = 0, 0, 0
	cl, _, _ := open(t, o, nil, echo)
	long := strings.Repeat("x", 3<<20)
	sent := make(chan error, 1)
	go func() {
		_, err := cl.Write(text(long))
		sent <- err
	}()
	cl.want(opText, long)
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func TestControlFramesBetweenFragments(t *testing.T) {
	cl, _, _ := open(t, DefaultOptions(), nil, echo)
	cl.write(masked(opText, []byte("one ")))
	cl.write(masked(fin|opPing, []byte("p1")))
	cl.want(opPong, "p1")
	cl.write(masked(0, []byte("two ")))
	cl.write(masked(fin|opPong, []byte("unasked")))
	cl.write(masked(fin, []byte("three")))
	cl.want(opText, "one two three")
}

func TestClientThatTricklesIsUnderstood(t *testing.T) {
	cl, _, _ := open(t, DefaultOptions(), nil, echo)
	for _, b := range append(masked(fin|opPing, []byte("drip")), text("drop")...) {
		cl.write([]byte{b})
	}
	cl.want(opPong, "drip")
	cl.want(opText, "drop")
}

func TestTrickledPingMayTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl, _, done := piped(t, DefaultOptions(), echo)
		for _, b := range masked(fin|opPing, []byte("drip")) {
			cl.write([]byte{b})
			time.Sleep(2 * time.Second)
		}
		cl.want(opPong, "drip")
		cl.Close()
		<-done
	})
}

func TestFramesSentWithTheHandshakeAreRead(t *testing.T) {
	loop := newLoop(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o := DefaultOptions()
		c := loop.New(&o)
		if err := c.Accept(w, r, ""); err != nil {
			t.Error(err)
			return
		}
		start(c, echo(c))
	}))
	defer s.Close()
	tcp, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	cl := &client{t: t, Conn: tcp, r: bufio.NewReader(tcp)}
	long := strings.Repeat("y", 6000) // more than net/http buffers
	cl.write([]byte(handshake + string(text("early")) + string(text(long))))
	cl.expect101()
	cl.want(opText, "early")
	cl.want(opText, long)
}

func TestFramesQueuedBeforeAcceptFollowThe101(t *testing.T) {
	o := DefaultOptions()
	o.QueueFrames = 3
	cl, _, _ := open(t, o, func(c *Conn) {
		for i := range 4 {
			if got := c.TrySend(Prepare(fmt.Append(nil, i), false)); got != (i < 3) {
				t.Errorf("TrySend of frame %d = %v", i, got)
			}
		}
		if c.SendWait(context.Background(), Prepare([]byte("no"), false)) {
			t.Error("SendWait found room before Accept")
		}
	}, echo)
	for i := range 3 {
		cl.want(opText, fmt.Sprint(i))
	}
}

func TestKillBeforeAcceptSendsOnlyTheClose(t *testing.T) {
	cl, _, _ := open(t, DefaultOptions(), func(c *Conn) {
		c.TrySend(Prepare([]byte("dropped"), false))
		c.Kill(1013, "", CauseSlow)
	}, echo)
	cl.want(opClose, "1013 ")
}

func TestAbandonedConnRefuses(t *testing.T) {
	o := DefaultOptions()
	c := newLoop(t).New(&o)
	c.TrySend(Prepare([]byte("x"), false))
	c.Abandon()
	if c.TrySend(Prepare([]byte("y"), false)) {
		t.Error("TrySend after Abandon was accepted")
	}
}

func TestAcceptWithoutHijackerFails(t *testing.T) {
	r, _ := http.ReadRequest(bufio.NewReader(strings.NewReader(handshake)))
	o := DefaultOptions()
	c := newLoop(t).New(&o)
	if err := c.Accept(httptest.NewRecorder(), r, ""); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("Accept = %v, want http.ErrNotSupported", err)
	}
	if c.TrySend(Prepare(nil, false)) {
		t.Error("TrySend after a failed Accept was accepted")
	}
}

func TestSubprotocolAndHeadersTravel(t *testing.T) {
	loop := newLoop(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Set("Sec-WebSocket-Protocol", "stale")
		o := DefaultOptions()
		c := loop.New(&o)
		if err := c.Accept(w, r, Offered(r)[1]); err == nil {
			start(c, ignore)
		}
	}))
	defer s.Close()
	tcp, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	cl := &client{t: t, Conn: tcp, r: bufio.NewReader(tcp)}
	cl.write([]byte(strings.TrimSuffix(handshake, "\r\n") + "Sec-WebSocket-Protocol: v1, v2.x\r\n\r\n"))
	h := cl.expect101()
	if got := h.Values("Sec-WebSocket-Protocol"); len(got) != 1 || got[0] != "v2.x" {
		t.Errorf("Sec-WebSocket-Protocol = %q, want v2.x", got)
	}
	if h.Get("Set-Cookie") != "a=1" {
		t.Error("Set-Cookie did not travel on the 101")
	}
}

func TestPongsAndPushesFlowWhileAHandlerRuns(t *testing.T) {
	release := make(chan struct{})
	cl, c, _ := open(t, DefaultOptions(), nil, func(*Conn) handler {
		return func(context.Context, Message) error { <-release; return nil }
	})
	defer close(release)
	cl.write(text("work"))
	cl.write(text("waits in the inbox"))
	cl.write(masked(fin|opPing, []byte("alive?")))
	cl.want(opPong, "alive?")
	c.TrySend(Prepare([]byte("push"), false))
	cl.want(opText, "push")
}

func TestHandlersNeverOverlapAndKeepOrder(t *testing.T) {
	var running atomic.Int32
	next := 0
	cl, _, _ := open(t, DefaultOptions(), nil, func(c *Conn) handler {
		return func(ctx context.Context, m Message) error {
			if running.Add(1) != 1 {
				t.Error("two handlers run at once")
			}
			defer running.Add(-1)
			if want := fmt.Sprint(next); string(m.Data) != want {
				t.Errorf("message %q, want %q", m.Data, want)
			}
			next++
			c.SendWait(ctx, Prepare(m.Data, false))
			return nil
		}
	})
	go func() {
		for i := range 300 {
			cl.write(text(fmt.Sprint(i)))
		}
	}()
	for i := range 300 {
		cl.want(opText, fmt.Sprint(i))
	}
}

func TestReadAheadIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		cl, _, done := piped(t, DefaultOptions(), func(*Conn) handler {
			return func(context.Context, Message) error { <-release; return nil }
		})
		var taken atomic.Int32
		go func() {
			for {
				if _, err := cl.Conn.Write(text("m")); err != nil {
					return
				}
				taken.Add(1)
			}
		}()
		synctest.Wait()
		if n := taken.Load(); n > inboxMessages+streamBuffer/int32(len(text("m")))+3 {
			t.Errorf("%d messages were read ahead of the handler", n)
		}
		cl.Close()
		close(release)
		<-done
	})
}

func TestPingAndIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := DefaultOptions()
		o.PingInterval, o.IdleTimeout = 30*time.Second, 70*time.Second
		cl, _, done := piped(t, o, echo)
		start := time.Now()
		cl.want(opPing, "")
		cl.write(masked(fin|opPong, nil)) // heard at 30 s, idle at 100 s
		cl.want(opPing, "")
		cl.want(opPing, "")
		cl.want(opClose, "1001 ")
		if got := time.Since(start); got != 100*time.Second {
			t.Errorf("closed as idle after %v, want 100s", got)
		}
		cl.write(closing(1001, ""))
		if got := <-done; got.Code != 1001 || got.Cause != CauseIdle {
			t.Errorf("got %d %s, want 1001 idle", got.Code, got.Cause)
		}
	})
}

func TestRunningHandlerIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := DefaultOptions()
		o.PingInterval = 0
		cl, c, done := piped(t, o, func(c *Conn) handler {
			return func(context.Context, Message) error {
				time.Sleep(10 * o.IdleTimeout)
				c.TrySend(Prepare([]byte("done"), false))
				return nil
			}
		})
		start := time.Now()
		cl.write(text("work"))
		cl.want(opText, "done")
		cl.want(opClose, "1001 ")
		if got := time.Since(start); got != 11*o.IdleTimeout {
			t.Errorf("closed after %v, want %v", got, 11*o.IdleTimeout)
		}
		c.Cut(CauseGone)
		<-done
	})
}

func TestIdleConnectionKeepsNothing(t *testing.T) {
	cl, c, _ := open(t, DefaultOptions(), nil, echo)
	before := runtime.NumGoroutine()
	for range 20 {
		cl.write(text("x"))
		cl.want(opText, "x")
	}
	c.loop.crew.wait()
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) { // they take a moment to go
			t.Fatalf("%d goroutines after messages, %d before", runtime.NumGoroutine(), before)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sending || c.handling || c.queue != nil || c.inbox != nil || c.fd < 0 {
		t.Errorf("sender %v, handler %v, queue %v, inbox %v, descriptor %d, want nothing but that kept",
			c.sending, c.handling, c.queue, c.inbox, c.fd)
	}
}

// A connection may break, or be cut, between Accept and Start.
func TestEndBeforeStart(t *testing.T) {
	for name, end := range map[string]func(*Conn){
		"cut":   func(c *Conn) { c.Cut(CauseGone) },
		"close": func(c *Conn) { c.Close(1000, "", CauseServer) },
		"kill":  func(c *Conn) { c.Kill(1013, "", CauseSlow) },
	} {
		t.Run(name, func(t *testing.T) {
			loop, o, done := newLoop(t), DefaultOptions(), make(chan Closed, 1)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c := loop.New(&o)
				if err := c.Accept(w, r, ""); err != nil {
					t.Error(err)
					return
				}
				end(c)
				runtime.Gosched()
				done <- <-start(c, ignore)
			}))
			defer s.Close()
			tcp, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			cl := &client{t: t, Conn: tcp, r: bufio.NewReader(tcp)}
			cl.write([]byte(handshake))
			cl.expect101()
			_ = cl.Close()
			<-done
		})
	}
}

// What Cut has closed must not be put into the poller's set, where its number
// may be another connection's by then.
func TestCutWhileItStarts(t *testing.T) {
	loop, o := newLoop(t), DefaultOptions()
	for range 100 {
		_, c, closed := openOn(t, loop, o, nil, func(c *Conn) handler {
			go c.Cut(CauseServer)
			return ignore
		})
		if got := <-closed; got.Cause != CauseServer {
			t.Errorf("closed for %v, want %v", got.Cause, CauseServer)
		}
		if n := c.line.(*poller).turns.Len(); n != 0 {
			t.Errorf("%d connections are in the set after the end", n)
		}
	}
}
