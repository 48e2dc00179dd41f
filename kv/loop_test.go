package kv

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// serveParked is serve with the Server at hand, and a way to stop it.
func serveParked(t *testing.T, o ServerOptions) (s *Server, addr net.Addr, stop func()) {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	s = NewServer(o)
	go func() { done <- s.Serve(ctx, l); close(done) }()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return s, l.Addr(), stop
}

// waitParked waits until n clients are parked.
func waitParked(t *testing.T, s *Server, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		have := 0
		for _, c := range s.allClients() {
			c.socket.mu.Lock()
			if c.parked() {
				have++
			}
			c.socket.mu.Unlock()
		}
		if have == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d clients are parked, want %d", have, n)
		}
	}
}

func (s *Server) allClients() (all []*client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		all = append(all, c)
	}
	return all
}

func bulk(b []byte) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(b), b) }

// What takes long and what does not fit into the socket leaves the loop and comes
// back; the replies stay in order.
func TestRepliesStayInOrderWhenAClientLeavesItsLoop(t *testing.T) {
	store := newStore(t, Options{MemoryLimit: 8 << 20})
	value := bytes.Repeat([]byte("0123456789abcdef"), 16<<10)
	mustSet(t, store, "k", string(value))
	s, addr, _ := serveParked(t, ServerOptions{Default: store})
	p := dial(t, addr)
	const rounds = 40
	go func() {
		for range rounds {
			_, _ = io.WriteString(p.conn, "PING\r\nGET k\r\nKEYS *\r\nMULTI\r\nKEYS *\r\nEXEC\r\nPING end\r\n") // or the replies are missing
		}
	}()
	keys := "*1\r\n$1\r\nk\r\n"
	want := "+PONG\r\n" + bulk(value) + keys + "+OK\r\n+QUEUED\r\n*1\r\n" + keys + bulk([]byte("end"))
	got := make([]byte, len(want))
	for i := range rounds {
		if _, err := io.ReadFull(p.r, got); err != nil || string(got) != want {
			t.Fatalf("round %d: %v, %d bytes that are not what was asked for", i, err, len(got))
		}
	}
	waitParked(t, s, 1)
}

func TestAParkedClientThatNeverReadsHoldsUpNobody(t *testing.T) {
	store := newStore(t, Options{MemoryLimit: 8 << 20})
	mustSet(t, store, "k", strings.Repeat("x", 1<<20))
	s, addr, _ := serveParked(t, ServerOptions{Default: store})
	deaf, other := dial(t, addr), dial(t, addr)
	waitParked(t, s, 2)
	deaf.send(strings.Repeat("GET k\r\n", 1000))
	waitParked(t, s, 1)
	for range 100 {
		if got := other.do("PING"); got != "+PONG" {
			t.Fatalf("PING: %s", got)
		}
	}
	for deadline := time.Now().Add(time.Minute); s.Stats().Open > 1; time.Sleep(time.Millisecond) {
		for _, c := range s.allClients() {
			c.cutIfStale(1000) // seconds from the start: what is being written has waited for long
		}
		if time.Now().After(deadline) {
			t.Fatal("the client that does not read is not cut")
		}
	}
	if n, err := io.Copy(io.Discard, deaf.r); n >= 1000<<20 {
		t.Errorf("the client that did not read got %d bytes and %v, want it to be cut", n, err)
	}
	if got := other.do("PING"); got != "+PONG" {
		t.Errorf("PING: %s", got)
	}
}

func TestAParkedClientIsCutWhenItIsIdle(t *testing.T) {
	s, addr, _ := serveParked(t, ServerOptions{Default: newStore(t, Options{MemoryLimit: 1 << 20}), IdleTimeout: 10 * time.Second})
	idle := dial(t, addr)
	waitParked(t, s, 1)
	for _, c := range s.allClients() {
		c.cutIfStale(10)
		c.cutIfStale(11)
	}
	if _, err := idle.r.ReadByte(); err != io.EOF {
		t.Errorf("the idle client reads %v, want EOF", err)
	}
	waitParked(t, s, 0)
}

func TestParkedClientsEndWithTheServer(t *testing.T) {
	s, addr, stop := serveParked(t, ServerOptions{Default: newStore(t, Options{MemoryLimit: 1 << 20})})
	peers := []*peer{dial(t, addr), dial(t, addr), dial(t, addr)}
	waitParked(t, s, len(peers))
	peers[1].send("GET") // and no more
	stop()
	for _, p := range peers {
		_, _ = io.Copy(io.Discard, p.r) // ends, be it with a reset
	}
	if st := s.Stats(); st.Open != 0 || st.Connections != 3 {
		t.Errorf("after the stop: %+v", st)
	}
}

// A command may come in any pieces; meanwhile others are answered.
func TestAParkedClientMaySendSlowly(t *testing.T) {
	store := newStore(t, Options{MemoryLimit: 8 << 20})
	_, addr, _ := serveParked(t, ServerOptions{Default: store})
	slow, other := dial(t, addr), dial(t, addr)
	value := strings.Repeat("0123456789", 50_000)
	command := "*3\r\n" + bulk([]byte("SET")) + bulk([]byte("k")) + bulk([]byte(value))
	for i := 0; i < len(command); i += 997 {
		if _, err := io.WriteString(slow.conn, command[i:min(i+997, len(command))]); err != nil {
			t.Fatal(err)
		}
		if got := other.do("PING"); got != "+PONG" {
			t.Fatalf("PING: %s", got)
		}
	}
	if got := slow.read(); got != "+OK" {
		t.Fatalf("SET: %s", got)
	}
	if got, _, err := store.Get([]byte("k")); string(got) != value || err != nil {
		t.Errorf("%d bytes are stored, %v, want %d", len(got), err, len(value))
	}
}

// Who has to authenticate has a goroutine until then.
func TestAClientIsParkedOnceItHasAuthenticated(t *testing.T) {
	store := newStore(t, Options{MemoryLimit: 1 << 20})
	s, addr, _ := serveParked(t, ServerOptions{Authenticate: func(_, password string) *Store {
		if password == "p" {
			return store
		}
		return nil
	}})
	p := dial(t, addr)
	for _, step := range [][2]string{
		{"GET k", "-NOAUTH Authentication required."}, {"AUTH p", "+OK"}, {"SET k v", "+OK"}, {"GET k", `"v"`},
	} {
		if got := p.do(step[0]); got != step[1] {
			t.Errorf("%s: %s, want %s", step[0], got, step[1])
		}
	}
	waitParked(t, s, 1)
	if got := p.do("AUTH wrong"); !strings.HasPrefix(got, "-WRONGPASS") {
		t.Errorf("AUTH wrong: %s", got)
	}
	if got := p.do("RESET") + p.do("GET k"); got != "+RESET-NOAUTH Authentication required." {
		t.Errorf("RESET, GET: %s", got)
	}
}

// What a client sent once does not stay: there may be many clients.
func TestAParkedClientKeepsNoMemoryOfLongCommands(t *testing.T) {
	s, addr, _ := serveParked(t, ServerOptions{Default: newStore(t, Options{MemoryLimit: 8 << 20})})
	p := dial(t, addr)
	args := append([]string{"MGET"}, strings.Split(strings.Repeat("k ", 50_000), " ")...)
	if _, err := io.WriteString(p.conn, arrayOf(args...)+arrayOf("SET", "k", strings.Repeat("x", 500_000))); err != nil {
		t.Fatal(err)
	}
	p.read()
	if got := p.read(); got != "+OK" {
		t.Fatalf("SET: %s", got)
	}
	if got := p.do("PING"); got != "+PONG" { // whatever came before is over
		t.Fatalf("PING: %s", got)
	}
	waitParked(t, s, 1)
	c := s.allClients()[0]
	_ = p.conn.Close() // the loop finds out
	for deadline := time.Now().Add(time.Minute); s.Stats().Open > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the client is not gone")
		}
	}
	// Nobody serves it any more.
	if n := cap(c.in) + 24*cap(c.parser.args) + 16*cap(c.parser.spans) + cap(c.reply.b); n > 64<<10 {
		t.Errorf("it kept %d bytes", n)
	}
}
