package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// newConns are connections with limits and no listener.
func newConns(max, perIP int) *connections {
	return newConnections(LimitsConfig{MaxConnections: max, PerIPMaxConnections: perIP}, nil)
}

// connected returns both ends of a connection.
func connected(t *testing.T) (accepted *net.TCPConn, client net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client = dial(t, l.Addr())
	t.Cleanup(func() { _ = client.Close() })
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn), client
}

// enterFrom lets a connection with a remote address in, opened some time ago.
func enterFrom(t *testing.T, a *connections, addr string) *conn {
	t.Helper()
	c, _ := connected(t)
	remote, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return a.enter(&conn{TCPConn: c, remote: remote, local: c.LocalAddr()}, true)
}

func TestConnectionsOfOneClientAreLimited(t *testing.T) {
	a := newConns(100, 2)
	first, second := enterFrom(t, a, "203.0.113.1:1"), enterFrom(t, a, "203.0.113.1:2")
	third := enterFrom(t, a, "203.0.113.1:3")
	if first.refused != nil || second.refused != nil || third.refused == nil {
		t.Errorf("refused: %v %v %v, want the third alone", first.refused, second.refused, third.refused)
	}
	if enterFrom(t, a, "203.0.113.2:1").refused != nil {
		t.Error("another client is refused")
	}
	if enterFrom(t, a, "[2001:db8::1]:1").refused != nil || enterFrom(t, a, "[2001:db8::2]:1").refused != nil {
		t.Error("two of one /64 are refused")
	}
	if enterFrom(t, a, "[2001:db8::3]:1").refused == nil {
		t.Error("a third of one /64 is let in")
	}
	_ = first.Close()
	_ = first.Close() // counts once
	if enterFrom(t, a, "203.0.113.1:4").refused != nil {
		t.Error("refused although one has left")
	}
	if enterFrom(t, a, "203.0.113.1:5").refused == nil {
		t.Error("a second close made room for another one")
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	a := newConns(1, 0)
	enterFrom(t, a, "203.0.113.1:1")
	var last *conn
	for range refusalsMax {
		if last = enterFrom(t, a, "203.0.113.2:1"); last == nil || last.refused == nil {
			t.Fatal("not to be answered with 503")
		}
		last.refused.Stop() // its time is not over, however long this takes
	}
	if enterFrom(t, a, "203.0.113.2:1") != nil {
		t.Error("one more is to be answered, want it reset")
	}
	_ = last.Close()
	if enterFrom(t, a, "203.0.113.2:1") == nil {
		t.Error("reset although another one has left")
	}
}

func TestTheOldestThatAskedForNothingMakesRoom(t *testing.T) {
	a := newConns(3, 0)
	busy, older, newer := enterFrom(t, a, "203.0.113.1:1"), enterFrom(t, a, "203.0.113.1:2"), enterFrom(t, a, "203.0.113.1:3")
	for _, c := range []*conn{busy, older, newer} {
		c.opened = c.opened.Add(-freshTime)
	}
	a.track(busy, http.StateActive)
	a.track(busy, http.StateIdle)
	young := enterFrom(t, a, "203.0.113.2:1")
	if young.refused != nil {
		t.Fatal("refused although another could make room")
	}
	a.mu.Lock()
	young.opened = young.opened.Add(time.Hour) // however long this takes
	a.mu.Unlock()
	if _, err := older.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the oldest is still open: %v", err)
	}
	for _, c := range []*conn{busy, newer} {
		if _, err := c.Write([]byte("x")); err != nil {
			t.Errorf("another one was closed: %v", err)
		}
	}
	a.track(newer, http.StateHijacked)
	if enterFrom(t, a, "203.0.113.2:2").refused == nil { // the first of it is too young
		t.Error("let in although nobody makes room")
	}
	if n := a.count(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

// A connection in advance would hold up http.Server.Shutdown for seconds.
func TestAStopClosesWhatAskedForNothing(t *testing.T) {
	a := newConns(10, 0)
	fresh, idle := enterFrom(t, a, "203.0.113.1:1"), enterFrom(t, a, "203.0.113.1:2")
	a.track(idle, http.StateActive)
	a.track(idle, http.StateIdle)
	a.closeFresh()
	if _, err := fresh.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("one that asked for nothing is still open: %v", err)
	}
	if _, err := idle.Write([]byte("x")); err != nil {
		t.Errorf("one that is net/http's to close was closed: %v", err)
	}
}

func TestARefusedConnectionIsAnsweredAndClosed(t *testing.T) {
	s := newTest(t, files(t, "a.txt"), &fakePool{}, func(c *Config) { c.Server.Limits.MaxConnections = 1 })
	addr, stop := start(t, s)
	first := dial(t, addr)
	in := bufio.NewReader(first)
	ask := func(c net.Conn, in *bufio.Reader) *http.Response {
		t.Helper()
		if _, err := io.WriteString(c, "GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		return r
	}
	if r := ask(first, in); r.StatusCode != 200 {
		t.Fatalf("the first: %s", r.Status)
	}
	second := dial(t, addr)
	in2 := bufio.NewReader(second)
	if r := ask(second, in2); r.StatusCode != 503 || !r.Close || r.Header.Get("Retry-After") != "1" {
		t.Errorf("the second: %s %v, want 503 with Retry-After and the connection closed", r.Status, r.Header)
	}
	if _, err := in2.ReadByte(); err != io.EOF {
		t.Errorf("after the 503: %v, want the end", err)
	}
	if r := ask(first, in); r.StatusCode != 200 {
		t.Errorf("the first again: %s", r.Status)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if n := s.conns.count(); n != 0 {
		t.Errorf("%d connections are counted after the end", n)
	}
}

func TestSlowTakerIsOneWhoTakesTooLittleOfWhatWaits(t *testing.T) {
	const window, rate = 10 * time.Second, 100
	var tk taken
	look := func(seconds, waiting, acked int) bool {
		return tk.tooSlow(timeZero.Add(time.Duration(seconds)*time.Second), waiting, uint64(acked), window, rate)
	}
	if look(0, 5000, 0) || look(5, 4900, 100) {
		t.Error("cut before the time is over")
	}
	if !look(10, 4500, 500) {
		t.Error("500 bytes in 10s are not too few")
	}
	tk = taken{}
	if look(0, 5000, 0) || look(10, 3900, 1100) || !look(20, 3800, 1200) {
		t.Error("want the second time cut, not the first")
	}
	// A trickle that is taken at once, such as server-sent events over a long way.
	tk = taken{}
	for i := range 100 {
		if look(i*5, 20, i*20) {
			t.Fatalf("cut at %ds although each piece is taken", i*5)
		}
	}
	tk = taken{}
	if look(0, 10, 7) || look(9, 10, 7) || !look(10, 10, 7) {
		t.Error("want one that takes nothing cut")
	}
	tk = taken{}
	if look(0, 10, 0) || look(5, 0, 10) || look(10, 10, 10) || look(15, 10, 10) {
		t.Error("cut although it had taken all in between")
	}
}

func TestClientsThatDoNotReadAreCut(t *testing.T) {
	s := newTest(t, files(t, "a.txt"), &fakePool{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := s.guard(l)
	defer g.Close()
	slow, quick := dial(t, l.Addr()), dial(t, l.Addr())
	defer slow.Close()
	defer quick.Close()
	toSlow, err := g.Accept()
	if err != nil {
		t.Fatal(err)
	}
	toQuick, err := g.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = slow.(*net.TCPConn).SetReadBuffer(4096)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _, _ = io.Copy(io.Discard, quick) }) // until toQuick is closed
	if _, err := toQuick.Write(make([]byte, 1<<20)); err != nil {
		t.Error(err)
	}
	ended := make(chan error)
	go func() {
		_, err := toSlow.Write(make([]byte, 64<<20))
		ended <- err
	}()
	// The clock is the test's: what counts is what the kernel says is waiting.
	for now := timeZero; ; now = now.Add(time.Minute) {
		s.conns.cutSlow(now, time.Minute, 1<<30)
		select {
		case err := <-ended:
			if err == nil {
				t.Error("the slow client took everything")
			}
			_ = toQuick.Close()
			return
		case <-time.After(10 * time.Millisecond): // the kernel is still moving what fits
		case <-t.Context().Done():
			t.Fatal("never cut")
		}
	}
}

func TestUpgradedConnectionsAreNotCutAsSlow(t *testing.T) {
	a := newConns(2, 1)
	c := enterFrom(t, a, "203.0.113.1:1")
	_ = c.SetWriteBuffer(4096)
	place := c.leaveSeat()
	go func() { _, _ = c.Write(make([]byte, 64<<20)) }() // until the test closes it
	for i := range 3 {
		a.cutSlow(timeZero.Add(time.Duration(i)*time.Hour), time.Minute, 1<<30)
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		t.Errorf("it was cut: %v", err)
	}
	_ = c.Close()
	if a.count() != 1 || enterFrom(t, a, "203.0.113.1:2").refused == nil {
		t.Error("its place is free although its socket is open")
	}
	place.stand()
	if a.count() != 0 || enterFrom(t, a, "203.0.113.1:2").refused != nil {
		t.Error("its place is not free although its socket is closed")
	}
}

func TestSlowBodiesAreRefused(t *testing.T) {
	in := &incoming{stall: 10 * time.Second, rate: 100}
	at := func(seconds int, n int64) bool {
		in.n = n
		return in.tooSlow(timeZero.Add(time.Duration(seconds) * time.Second))
	}
	if at(0, 1) || at(9, 2) {
		t.Error("too slow before the time is over")
	}
	if !at(10, 3) {
		t.Error("3 bytes in 10s are not too slow")
	}
	if at(15, 10) || at(20, 5000) {
		t.Error("5000 bytes in 10s are too slow")
	}
}

func TestWatchSlowEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	newConns(1, 0).watchSlow(ctx, time.Second, 1)
}
