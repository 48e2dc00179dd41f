package kv

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener of connections in memory.
type pipes struct {
	conns  chan net.Conn
	closed context.Context
	close  context.CancelFunc
}

func newPipes() *pipes {
	p := &pipes{conns: make(chan net.Conn)}
	p.closed, p.close = context.WithCancel(context.Background())
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed.Done():
		return nil, net.ErrClosed
	}
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) Close() error {
	p.close()
	return nil
}

// servePipes runs f with a server whose clients come by pipe.
func servePipes(t *testing.T, o ServerOptions, f func(connect func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, Options{MemoryLimit: 1 << 20})
		mustSet(t, store, "k", strings.Repeat("x", 10_000))
		o.Default, o.Log = store, slog.New(slog.DiscardHandler)
		s := NewServer(o)
		ctx, stop := context.WithCancel(t.Context())
		l := newPipes()
		done := make(chan error)
		go func() { done <- s.Serve(ctx, l) }()
		f(func() net.Conn {
			client, server := net.Pipe()
			l.conns <- server
			return client
		})
		stop()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if st := s.Stats(); st.Open != 0 {
			t.Errorf("%d connections are left", st.Open)
		}
	})
}

// lateListener accepts one connection when it is closed already.
type lateListener struct {
	*pipes
	late net.Conn
}

func (l *lateListener) Accept() (net.Conn, error) {
	<-l.closed.Done()
	synctest.Wait() // whoever cuts connections at the end has done so
	conn := l.late
	if l.late = nil; conn == nil {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func TestServeEndsAlthoughSomebodyComesAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(ServerOptions{Default: newStore(t, Options{MemoryLimit: 1 << 20}), Log: slog.New(slog.DiscardHandler)})
		client, server := net.Pipe()
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := s.Serve(ctx, &lateListener{newPipes(), server}); err != nil {
			t.Errorf("Serve: %v", err)
		}
		if _, err := client.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the late client reads %v, want EOF", err)
		}
	})
}

func TestAnIdleClientIsCut(t *testing.T) {
	servePipes(t, ServerOptions{IdleTimeout: 30 * time.Second}, func(connect func() net.Conn) {
		conn := connect()
		start := time.Now()
		time.Sleep(20 * time.Second)
		if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
			t.Fatal(err)
		}
		reply, err := io.ReadAll(conn)
		if err != nil || string(reply) != "+PONG\r\n" {
			t.Errorf("reply %q, %v", reply, err)
		}
		if took := time.Since(start); took < 50*time.Second || took > 53*time.Second {
			t.Errorf("cut after %v, want 30s after the last command", took)
		}
	})
}

func TestASubscriberMayBeQuiet(t *testing.T) {
	servePipes(t, ServerOptions{IdleTimeout: 30 * time.Second}, func(connect func() net.Conn) {
		conn := connect()
		if _, err := io.WriteString(conn, "SUBSCRIBE c\r\n"); err != nil {
			t.Fatal(err)
		}
		const want = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
		reply := make([]byte, len(want))
		if _, err := io.ReadFull(conn, reply); err != nil || string(reply) != want {
			t.Fatalf("reply %q, %v", reply, err)
		}
		time.Sleep(time.Hour)
		other := connect()
		if _, err := io.WriteString(other, "PUBLISH c hi\r\n"); err != nil {
			t.Fatal(err)
		}
		message := make([]byte, 5)
		if _, err := io.ReadFull(conn, message); err != nil {
			t.Errorf("no message after an hour: %v", err)
		}
	})
}

// A client that asks and never reads stands alone, and is cut.
func TestAClientThatNeverReadsIsCut(t *testing.T) {
	servePipes(t, ServerOptions{WriteTimeout: 10 * time.Second}, func(connect func() net.Conn) {
		conn := connect()
		start := time.Now()
		sent := 0
		for {
			n, err := io.WriteString(conn, strings.Repeat("GET k\r\n", 100))
			if sent += n; err != nil {
				break
			}
		}
		if took := time.Since(start); took < 9*time.Second || took > 13*time.Second {
			t.Errorf("cut after %v, want 10s", took)
		}
		if sent > 200_000 { // its replies would be a thousand times as much
			t.Errorf("it could send %d bytes", sent)
		}
	})
}
