package descriptor

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pair returns both ends of a TCP connection; the first is the server's.
func pair(t *testing.T) (server, client net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = server.Close(), client.Close() })
	_ = client.SetDeadline(time.Now().Add(time.Minute))
	return server, client
}

// park is Park that ends with the test.
func park(t *testing.T, conn net.Conn) Parked {
	t.Helper()
	d, ok := Park(conn)
	if !ok {
		t.Fatal("a TCP connection cannot be parked")
	}
	t.Cleanup(func() { _ = unix.Close(d.FD) })
	return d
}

// A run serves a set and passes its events on.
type run struct {
	*Set
	events chan Event
	done   chan struct{}
	stop   atomic.Bool
}

func serve(t *testing.T) *run {
	t.Helper()
	set, err := NewSet()
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Set: set, events: make(chan Event, 100), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		events := make([]Event, 4)
		set.Serve(func() bool {
			for {
				n := set.Take(events)
				for _, e := range events[:n] {
					r.events <- e
				}
				if n == 0 {
					return r.stop.Load()
				}
			}
		})
	}()
	t.Cleanup(func() {
		r.stop.Store(true)
		set.Ring()
		<-r.done
		set.Close()
	})
	return r
}

// want waits for an event with one of these bits.
func (r *run) want(t *testing.T, tag int32, bits uint32) {
	t.Helper()
	for patience := time.After(time.Minute); ; {
		select {
		case e := <-r.events:
			if e.Fd == tag && (bits == 0 || e.Events&bits != 0) {
				return
			}
		case <-patience:
			t.Fatalf("no event %#x for %d came", bits, tag)
		}
	}
}

func TestParkedConnectionGoesOn(t *testing.T) {
	server, client := pair(t)
	d := park(t, server)
	b := make([]byte, 100)
	if n, err := Read(d.FD, b); n != 0 || err != ErrWouldBlock {
		t.Errorf("Read with nothing there = %d, %v", n, err)
	}
	set := serve(t)
	if err := set.Add(d.FD, In|Out|Hup|Edge, 7); err != nil {
		t.Fatal(err)
	}
	_, _ = client.Write([]byte("ping"))
	set.want(t, 7, In)
	if n, err := Read(d.FD, b); string(b[:n]) != "ping" || err != nil {
		t.Errorf("Read = %q, %v", b[:n], err)
	}
	if n, err := Write(d.FD, []byte("pong")); n != 4 || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
	if _, err := io.ReadFull(client, b[:4]); string(b[:4]) != "pong" || err != nil {
		t.Errorf("the client got %q, %v", b[:4], err)
	}
	set.Ring()
	set.want(t, Bell, 0)

	block := make([]byte, 1<<20)
	for n := len(block); n > 0; { // until the kernel takes nothing
		var err error
		if n, err = Write(d.FD, block); err != nil {
			t.Fatal(err)
		}
	}
	go func() { _, _ = io.CopyN(io.Discard, client, 1<<20) }()
	set.want(t, 7, Out)
	_ = client.Close()
	set.want(t, 7, HangUps)
	set.Remove(d.FD)
}

func TestOnlyTCPIsParked(t *testing.T) {
	one, other := net.Pipe()
	defer other.Close()
	if _, ok := Park(one); ok {
		t.Error("a pipe was parked")
	}
	server, _ := pair(t)
	secure := tls.Server(server, &tls.Config{})
	if _, ok := Park(secure); ok {
		t.Error("TLS was parked on a connection that is not Parkable")
	}
	if _, err := server.Write([]byte("x")); err != nil {
		t.Errorf("what was not parked: %v", err)
	}
}

func TestParkedTLS(t *testing.T) {
	certs := httptest.NewUnstartedServer(nil)
	certs.StartTLS()
	defer certs.Close()
	plain, client := pair(t)
	accepted := make(chan net.Conn, 1)
	accepted <- plain
	l := Parkable(once{accepted})
	below, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server := tls.Server(below, certs.TLS)
	shaken := make(chan error, 1)
	over := tls.Client(client, &tls.Config{InsecureSkipVerify: true})
	go func() { shaken <- over.Handshake() }()
	if err := errors.Join(server.Handshake(), <-shaken); err != nil {
		t.Fatal(err)
	}
	d := park(t, server)
	set := serve(t)
	if err := set.Add(d.FD, In|Out|Hup|Edge, 0); err != nil {
		t.Fatal(err)
	}
	_, _ = over.Write([]byte("ping"))
	b := make([]byte, 100)
	for got := ""; got != "ping"; {
		n, err := d.TLS.Read(b)
		if got += string(b[:n]); err != nil && !errors.Is(err, ErrWouldBlock) {
			t.Fatalf("Read = %q, %v", b[:n], err)
		}
		if err != nil {
			set.want(t, 0, In)
		}
	}

	record := bytes.Repeat([]byte("0123456789abcdef"), 1<<10)
	sent := 0
	for !d.TLS.Waiting() { // until the kernel takes no more
		n, err := d.TLS.Write(record)
		if sent += n; err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(over)
		got <- all
	}()
	for d.TLS.Flush() {
		set.want(t, 0, Out)
	}
	if err := d.TLS.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if all := <-got; !bytes.Equal(all, bytes.Repeat(record, sent/len(record))) {
		t.Errorf("the client got %d bytes, want the %d that were sent", len(all), sent)
	}
	d.TLS.Forget()
	if _, err := d.TLS.Read(b); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read of a forgotten descriptor = %v", err)
	}
}

// once is a listener for one connection.
type once struct{ conns chan net.Conn }

func (o once) Accept() (net.Conn, error) { return <-o.conns, nil }
func (o once) Close() error              { return nil }
func (o once) Addr() net.Addr            { return &net.TCPAddr{} }
