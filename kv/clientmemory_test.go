package kv

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// eventually waits until what has been asked for is so.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute: %s is not so", what)
		}
	}
}

// floods are what clients can make the server hold: what one of them sends, over
// and over or once.
var floods = map[string]struct {
	once, again string
}{
	"unfinished commands": {once: "*3\r\n$3\r\nset\r\n$1\r\nk\r\n$900000\r\n" + strings.Repeat("x", 800_000)},
	"many arguments":      {once: "*100001\r\n" + strings.Repeat("$1\r\nx\r\n", 100_000)},
	"transactions":        {once: "MULTI\r\n", again: "SET k " + strings.Repeat("x", 10_000) + "\r\n"},
	"watched keys":        {again: "WATCH " + strings.Repeat("w", 5_000) + "%d\r\n"},
	"replies":             {again: "GET big\r\n"},
	"replies on the way":  {again: "MGET big big\r\nPING\r\n"},
	"subscriptions":       {again: "SUBSCRIBE " + strings.Repeat("c", 5_000) + "%d\r\n"},
}

// Whatever clients make the server hold, all of them together are bounded, those
// who hold most are cut, and the others are served.
func TestAFloodOfClientsIsBounded(t *testing.T) {
	t.Parallel()
	const limit, clients = 3 << 20, 12
	for name, flood := range floods {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newStore(t, Options{MemoryLimit: 4 << 20})
			mustSet(t, store, "big", strings.Repeat("x", 1<<20))
			s, addr, _ := serveParked(t, ServerOptions{Default: store, ClientsMemory: limit})
			good := dial(t, addr)
			for range clients {
				p := dial(t, addr)
				go func() { // it ends with the connection
					_, err := io.WriteString(p.conn, flood.once)
					for i := 0; err == nil && flood.again != ""; i++ {
						_, err = io.WriteString(p.conn, strings.ReplaceAll(flood.again, "%d", fmt.Sprint(i)))
					}
				}()
			}
			eventually(t, "a client is cut", func() bool { return s.Stats().Evicted > 0 })
			for range 10 {
				if got := good.do("PING"); got != "+PONG" {
					t.Fatalf("PING: %s", got)
				}
				// Each may have one charge that it has not yet been cut for.
				if got := s.Stats().Memory; got > limit+clients<<22 {
					t.Fatalf("clients hold %d bytes, the limit is %d", got, limit)
				}
			}
			for _, c := range s.allClients() {
				c.cut()
			}
			eventually(t, "nothing is held any more", func() bool { return s.Stats().Memory == 0 })
		})
	}
}

// serveNetwork is serveParked on a TCP address or a Unix socket.
func serveNetwork(t *testing.T, network string, o ServerOptions) (*Server, net.Addr) {
	t.Helper()
	if network == "tcp" {
		s, addr, _ := serveParked(t, o)
		return s, addr
	}
	o.Log = slog.New(slog.DiscardHandler)
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	s, done := NewServer(o), make(chan error)
	go func() { done <- s.Serve(t.Context(), l) }()
	t.Cleanup(func() { // t.Context is done
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s, l.Addr()
}

// The client that holds most is told why, wherever it is served; the one whose
// command was the last drop goes on.
func TestTheHeaviestClientIsCutWithAnError(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp", "unix"} {
		for compression, place := range map[Compression]string{CompressNone: "in a loop", CompressZstd: "in a goroutine"} {
			t.Run(network+" "+place, func(t *testing.T) {
				t.Parallel()
				store := newStore(t, Options{MemoryLimit: 4 << 20, Compression: compression})
				s, addr := serveNetwork(t, network, ServerOptions{Default: store, ClientsMemory: 2 << 20})
				heavy, light := dial(t, addr), dial(t, addr)
				before := int64(0)
				for _, client := range []struct {
					p     *peer
					bytes int
				}{{heavy, 700_000}, {light, 300_000}} {
					client.p.send(fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n%s", client.bytes+3, strings.Repeat("x", client.bytes)))
					eventually(t, "all has been read", func() bool { return s.Stats().Memory >= before+int64(client.bytes) })
					before = s.Stats().Memory
				}
				other := dial(t, addr)
				other.send("MULTI")
				other.read()
				for range 12 {
					other.send("ECHO " + strings.Repeat("x", 60_000))
					if got := other.read(); got != "+QUEUED" {
						t.Fatal(got)
					}
				}
				// All three are near the limit now, and heavy has most.
				for s.Stats().Evicted == 0 {
					other.send("ECHO " + strings.Repeat("x", 60_000))
					if got := other.read(); got != "+QUEUED" {
						t.Fatal(got)
					}
				}
				if got := heavy.read(); got != "-"+textClientsMemory {
					t.Errorf("the heaviest got %q", got)
				}
				if n, err := heavy.r.Read(make([]byte, 1)); n != 0 || err == nil {
					t.Errorf("then %d bytes and %v, want the end", n, err)
				}
				light.send("x")
				if got := light.read(); !strings.HasPrefix(got, `"xxx`) {
					t.Errorf("the lightest got %.100s", got)
				}
			})
		}
	}
}

// A value as large as the store can have is read by a client, whatever the limit.
func TestTheLongestValueIsNoReasonToCut(t *testing.T) {
	t.Parallel()
	store := newStore(t, Options{MemoryLimit: 16 << 20})
	value := strings.Repeat("x", 15<<20)
	mustSet(t, store, "k", value)
	s, addr, _ := serveParked(t, ServerOptions{Default: store, ClientsMemory: 16 << 20})
	p := dial(t, addr)
	p.send("GET k")
	if got := p.read(); len(got) != len(value)+2 {
		t.Errorf("GET: %d bytes, want %d", len(got), len(value)+2)
	}
	if got := p.do("MGET k k"); got != "-ERR the reply would be too long" {
		t.Errorf("MGET of more than clients may hold: %.100s", got)
	}
	if st := s.Stats(); st.Evicted != 0 {
		t.Errorf("%d clients were cut", st.Evicted)
	}
	eventually(t, "nothing is held any more", func() bool { return s.Stats().Memory == 0 })
}
