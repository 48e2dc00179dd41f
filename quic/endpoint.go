package quic

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"

	quicgo "github.com/quic-go/quic-go"
	"golang.org/x/sys/unix"
)

// Options say how an Endpoint is opened.
type Options struct {
	// Network is "udp", "udp4" or "udp6", as for net.ListenPacket.
	Network string
	// Addr is the UDP address, "host:port". An empty host means every address
	// of the machine, port 0 a free one.
	Addr string
	// Sockets is the number of sockets, 1 to MaxSockets.
	Sockets int
	// Keys are those of tokens and resets.
	Keys *Keys
	// ProveAbove is how many handshakes may be under way before new clients must
	// prove their address first. Zero means that all must.
	ProveAbove int
	// Doubts says that a new client must prove its address first, however few
	// handshakes are under way. Who asks may be somebody else than the address
	// says. It must not wait. Nil doubts nobody.
	Doubts func(net.Addr) bool
	// Admit decides about each new client before anything is answered; an error
	// refuses it. The context ends with the connection or its handshake, and so
	// must the one that is returned, which is the connection's. It must not
	// wait. Nil admits all.
	Admit func(context.Context, *quicgo.ClientInfo) (context.Context, error)
	// Log gets what the kernel could not do, once for each.
	Log *slog.Logger
}

// An Endpoint is one UDP address with its sockets and the connections on them.
// Its methods may be called from any goroutine.
type Endpoint struct {
	Handshakes Handshakes

	sockets    []*socket
	transports []*quicgo.Transport
	log        *slog.Logger
	noGSO      sync.Once
}

// Open opens the sockets. Errors of the operating system can be told by
// errors.Is.
func Open(o Options) (*Endpoint, error) {
	conns, err := openSockets(o.Network, o.Addr, o.Sockets)
	if err != nil {
		return nil, err
	}
	e := &Endpoint{log: o.Log}
	e.Handshakes.proveAbove, e.Handshakes.doubts = int64(o.ProveAbove), o.Doubts
	for i, c := range conns {
		s := newSocket(c, i, e.refusedGSO)
		e.sockets = append(e.sockets, s)
		e.transports = append(e.transports, &quicgo.Transport{
			Conn:                  s,
			ConnectionIDGenerator: connIDs{socket: i, sockets: len(conns)},
			StatelessResetKey:     o.Keys.reset(),
			TokenGeneratorKey:     o.Keys.token(),
			VerifySourceAddress:   e.Handshakes.mustProve,
			ConnContext:           e.admit(o.Admit),
		})
	}
	for _, s := range e.sockets {
		s.group = e.sockets
	}
	e.prepare()
	return e, nil
}

// admit returns what decides about new clients.
func (e *Endpoint) admit(ask func(context.Context, *quicgo.ClientInfo) (context.Context, error)) func(context.Context, *quicgo.ClientInfo) (context.Context, error) {
	return func(ctx context.Context, c *quicgo.ClientInfo) (context.Context, error) {
		if ask != nil {
			var err error
			if ctx, err = ask(ctx, c); err != nil {
				return nil, err
			}
		}
		return e.Handshakes.begin(ctx, c)
	}
}

// openSockets binds sockets to one address. The first is bound alone, so that an
// address that somebody else has is an error.
func openSockets(network, addr string, sockets int) ([]*net.UDPConn, error) {
	var conns []*net.UDPConn
	for range sockets {
		lc := net.ListenConfig{}
		if len(conns) > 0 {
			lc.Control = func(_, _ string, c syscall.RawConn) error {
				var inner error
				err := c.Control(func(fd uintptr) { inner = shareAddr(int(fd)) })
				return errors.Join(err, inner)
			}
		}
		c, err := lc.ListenPacket(context.Background(), network, addr)
		if err != nil {
			closeAll(conns)
			return nil, err
		}
		udp := c.(*net.UDPConn) // ListenPacket says so of these networks
		conns = append(conns, udp)
		if len(conns) == 1 && sockets > 1 {
			if err := control(udp, shareAddr); err != nil {
				closeAll(conns)
				return nil, fmt.Errorf("share %s between sockets: %w", addr, err)
			}
			addr = udp.LocalAddr().String() // port 0 has become one
		}
	}
	return conns, nil
}

func shareAddr(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }

func closeAll(conns []*net.UDPConn) {
	for _, c := range conns {
		_ = c.Close() // nothing was read from it
	}
}

// wantedBuffer is what quic-go asks for, in bytes. A socket that is not read for
// a moment loses what does not fit.
const wantedBuffer = 7 << 20

// prepare sets what the kernel can do for the sockets, and says what it cannot.
func (e *Endpoint) prepare() {
	for i, s := range e.sockets {
		if err := s.joinPackets(); err != nil && i == 0 {
			e.log.Info("the kernel does not join UDP packets (GRO); uploads over HTTP/3 cost more", "err", err)
		}
		if got := growBuffers(s.UDPConn); got < wantedBuffer && i == 0 {
			e.log.Info("UDP buffers are small; set net.core.rmem_max and net.core.wmem_max to 7500000 for fast HTTP/3",
				"bytes", got, "wanted", wantedBuffer)
		}
	}
	if n := len(e.sockets); n > 1 {
		if err := steer(e.sockets[0].UDPConn, n); err != nil {
			e.log.Info("the kernel does not sort UDP packets by connection; the server does, at some cost", "err", err)
		}
	}
}

// growBuffers asks for larger buffers and returns the smaller one.
func growBuffers(c *net.UDPConn) int {
	got := 0
	_ = control(c, func(fd int) error { // 0 is small
		for _, o := range [...]struct{ get, set, force int }{
			{unix.SO_RCVBUF, unix.SO_RCVBUF, unix.SO_RCVBUFFORCE},
			{unix.SO_SNDBUF, unix.SO_SNDBUF, unix.SO_SNDBUFFORCE},
		} {
			if unix.SetsockoptInt(fd, unix.SOL_SOCKET, o.force, wantedBuffer) != nil { // needs CAP_NET_ADMIN
				_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, o.set, wantedBuffer) // asked below
			}
			size, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, o.get)
			if err != nil {
				return err
			}
			if got == 0 || size < got {
				got = size
			}
		}
		return nil
	})
	return got
}

// refusedGSO is called when a packet had to be sent without the kernel's help.
func (e *Endpoint) refusedGSO() {
	e.noGSO.Do(func() {
		e.log.Info("a network device does not split UDP packets (GSO); they are sent one by one, which costs more")
	})
}

// noBufferWarning keeps quic-go from writing to the standard log what prepare
// says.
const noBufferWarning = "QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING"

// Listen begins to accept connections and returns a listener for each socket;
// serve all of them. They accept before the handshake is complete, and the caller
// tells by Done when it is.
func (e *Endpoint) Listen(t *tls.Config, c *quicgo.Config) ([]*quicgo.EarlyListener, error) {
	if _, set := os.LookupEnv(noBufferWarning); !set {
		os.Setenv(noBufferWarning, "true")
		defer os.Unsetenv(noBufferWarning)
	}
	var listeners []*quicgo.EarlyListener
	for _, transport := range e.transports {
		l, err := transport.ListenEarly(t, c)
		if err != nil {
			return nil, err // Close ends those before it
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// Addr returns the address.
func (e *Endpoint) Addr() *net.UDPAddr { return e.sockets[0].LocalAddr().(*net.UDPAddr) }

// Close ends everything. Clients of connections that are still open are told
// nothing: close them first.
func (e *Endpoint) Close() error {
	var errs []error
	for _, t := range e.transports {
		errs = append(errs, t.Close())
	}
	for _, s := range e.sockets {
		errs = append(errs, s.UDPConn.Close())
	}
	return errors.Join(errs...)
}
