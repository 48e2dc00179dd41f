package quic

import (
	"net"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// A router passes packets of one client to a server, from an address of its own
// that it changes when it forgets.
type router struct {
	t      *testing.T
	inside *net.UDPConn
	server *net.UDPAddr
	wg     sync.WaitGroup

	mu      sync.Mutex // guards the following
	client  *net.UDPAddr
	outside *net.UDPConn
}

func newRouter(t *testing.T, server *net.UDPAddr) *router {
	t.Helper()
	r := &router{t: t, server: server}
	r.inside = r.listen()
	r.forget()
	r.wg.Go(func() {
		b := make([]byte, 2048)
		for {
			n, from, err := r.inside.ReadFromUDP(b)
			if err != nil {
				return
			}
			r.mu.Lock()
			r.client = from
			_, _ = r.outside.WriteToUDP(b[:n], r.server) // lost, as in a network
			r.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		_ = r.inside.Close()
		r.mu.Lock()
		_ = r.outside.Close()
		r.mu.Unlock()
		r.wg.Wait()
	})
	return r
}

func (r *router) listen() *net.UDPConn {
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// forget takes another address for the client.
func (r *router) forget() {
	c := r.listen()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outside != nil {
		_ = r.outside.Close() // what was on its way is lost
	}
	r.outside = c
	r.wg.Go(func() {
		b := make([]byte, 2048)
		for {
			n, _, err := c.ReadFromUDP(b)
			if err != nil {
				return
			}
			r.mu.Lock()
			_, _ = r.inside.WriteToUDP(b[:n], r.client) // lost, as in a network
			r.mu.Unlock()
		}
	})
}

// unsteer takes back steer.
func unsteer(c *net.UDPConn) error {
	return control(c, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_REUSEPORT_BPF, 0)
	})
}
