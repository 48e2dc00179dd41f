package kv

import (
	"log/slog"
	"net"
	"testing"
	"time"
)

// sinkConn takes whatever is written.
type sinkConn struct{ net.Conn }

func (sinkConn) RemoteAddr() net.Addr        { return &net.TCPAddr{} }
func (sinkConn) LocalAddr() net.Addr         { return &net.TCPAddr{} }
func (sinkConn) Write(b []byte) (int, error) { return len(b), nil }
func (sinkConn) SetDeadline(time.Time) error { return nil }

// BenchmarkAnswer is the way of a command through a client, without the network.
func BenchmarkAnswer(b *testing.B) {
	for name, command := range map[string]string{
		"get": "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000001\r\n",
		"set": "*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000001\r\n$3\r\nxxx\r\n",
	} {
		b.Run(name, func(b *testing.B) {
			s, err := New(Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			if err := s.Set([]byte("key:000000000001"), []byte("xxx"), 0); err != nil {
				b.Fatal(err)
			}
			c := newClient(NewServer(ServerOptions{Log: slog.New(slog.DiscardHandler)}), nil, sinkConn{}, 1)
			c.enter(s)
			var batch []byte
			for range 16 {
				batch = append(batch, command...)
			}
			for range b.N / 16 {
				c.in = append(c.in[:0], batch...)
				if !c.answer() {
					b.Fatal("it ended")
				}
			}
		})
	}
}
