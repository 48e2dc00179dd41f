package server

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// entered returns a connection that was let in, and its client.
func entered(t *testing.T) (*conn, net.Conn) {
	t.Helper()
	c, client := connected(t)
	return newConns(1, 0).enter(&conn{TCPConn: c, remote: c.RemoteAddr()}, false), client
}

func TestReadDeadlineOfTheDescriptorIsNotTheLastWord(t *testing.T) {
	c, client := entered(t)
	for _, wants := range []time.Time{{}, time.Now().Add(time.Hour)} {
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(wants); err != nil {
			t.Fatal(err)
		}
		if err := c.TCPConn.SetReadDeadline(time.Now()); err != nil { // the minute is over
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 10))
			got <- err
		}()
		if _, err := client.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil {
			t.Errorf("deadline %v: %v, want what the client sent", wants, err)
		}
	}
}

func TestReadsFailAtTheDeadline(t *testing.T) {
	c, client := entered(t)
	big, small := make([]byte, 10), make([]byte, 1)
	for _, p := range [][]byte{big, small} {
		for _, at := range []time.Time{time.Now().Add(time.Minute), {}, time.Now().Add(time.Millisecond), longAgo, time.Now().Add(-time.Minute)} {
			if err := c.SetReadDeadline(at); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := c.Read(p); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes: %d, %v, want the deadline", len(p), n, err)
		}
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Write([]byte("xy")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if n, err := c.Read(small); n != 1 || err != nil {
			t.Errorf("%d, %v, want a byte", n, err)
		}
	}
}

func TestDeadlineLongAgoEndsTheReadUnderWay(t *testing.T) {
	c, _ := entered(t)
	for _, size := range []int{1, 10} {
		got := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, size))
			got <- err
		}()
		if err := c.SetReadDeadline(longAgo); err != nil {
			t.Fatal(err)
		}
		if err := <-got; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes: %v, want the deadline", size, err)
		}
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
}
