package quic

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	quicgo "github.com/quic-go/quic-go"
)

// patience limits what should happen at once.
const patience = time.Minute

// serverTLS has a certificate that nobody signed.
var serverTLS = sync.OnceValue(func() *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		NextProtos:   []string{"echo"},
	}
})

func clientTLS() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"echo"}}
}

// An echo is an Endpoint whose streams come back.
type echo struct {
	*Endpoint
	t       *testing.T
	resumed atomic.Int64 // clients that came with a session ticket
	proved  atomic.Int64 // clients whose address was known
}

func startEcho(t *testing.T, o Options) *echo {
	t.Helper()
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.Keys == nil {
		o.Keys = NewKeys()
	}
	o.Network, o.Log = "udp", slog.New(slog.DiscardHandler)
	e := &echo{t: t}
	o.Admit = func(ctx context.Context, c *quicgo.ClientInfo) (context.Context, error) {
		if c.AddrVerified {
			e.proved.Add(1)
		}
		return ctx, nil
	}
	var err error
	if e.Endpoint, err = Open(o); err != nil {
		t.Fatal(err)
	}
	conf := serverTLS().Clone()
	conf.SetSessionTicketKeys(o.Keys.Tickets("echo"))
	listeners, err := e.Listen(conf, &quicgo.Config{MaxIdleTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, l := range listeners {
		wg.Go(func() { e.accept(ctx, &wg, l) })
	}
	t.Cleanup(func() {
		cancel()
		if err := e.Close(); err != nil && !errors.Is(err, net.ErrClosed) { // by the test
			t.Error(err)
		}
		wg.Wait()
	})
	return e
}

func (e *echo) accept(ctx context.Context, wg *sync.WaitGroup, l *quicgo.EarlyListener) {
	for {
		c, err := l.Accept(ctx)
		if err != nil {
			return
		}
		wg.Go(func() {
			select {
			case <-c.HandshakeComplete():
				Done(c)
				if c.ConnectionState().TLS.DidResume {
					e.resumed.Add(1)
				}
			case <-c.Context().Done():
			}
			for {
				s, err := c.AcceptStream(ctx)
				if err != nil {
					return
				}
				_, _ = io.Copy(s, s) // the client sees what it is
				_ = s.Close()
			}
		})
	}
}

// dial connects from a socket of its own.
func (e *echo) dial(conf *tls.Config, config *quicgo.Config) (*quicgo.Conn, *quicgo.Transport) {
	e.t.Helper()
	tr := newTransport(e.t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := tr.Dial(ctx, e.Addr(), conf, config)
	if err != nil {
		e.t.Fatal(err)
	}
	return c, tr
}

func newTransport(t *testing.T) *quicgo.Transport {
	t.Helper()
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	tr := &quicgo.Transport{Conn: udp}
	t.Cleanup(func() {
		_ = tr.Close()
		_ = udp.Close()
	})
	return tr
}

// ping sends text through a new stream and returns what comes back.
func ping(c *quicgo.Conn, text string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := c.OpenStreamSync(ctx)
	if err != nil {
		return "", err
	}
	_ = s.SetDeadline(time.Now().Add(patience))
	if _, err := s.Write([]byte(text)); err != nil {
		return "", err
	}
	_ = s.Close()
	b, err := io.ReadAll(s)
	return string(b), err
}

func wantPing(t *testing.T, c *quicgo.Conn, text string) {
	t.Helper()
	if got, err := ping(c, text); err != nil || got != text {
		t.Fatalf("sent %q, got %q, %v", text, got, err)
	}
}

// move gives the client another address.
func move(t *testing.T, c *quicgo.Conn) {
	t.Helper()
	path, err := c.AddPath(newTransport(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := path.Probe(ctx); err != nil {
		t.Fatalf("probe the new address: %v", err)
	}
	if err := path.Switch(); err != nil {
		t.Fatal(err)
	}
}

func TestConnectionsSurviveOtherAddresses(t *testing.T) {
	for _, test := range []struct {
		name    string
		sockets int
		unsteer bool // the kernel sorts by address: packets are handed over
	}{
		{"one socket", 1, false},
		{"sorted by the kernel", 4, false},
		{"sorted by us", 4, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := startEcho(t, Options{Sockets: test.sockets, ProveAbove: 1000})
			if test.unsteer {
				if err := unsteer(e.sockets[0].UDPConn); err != nil {
					t.Fatal(err)
				}
			}
			for range 6 {
				c, _ := e.dial(clientTLS(), nil)
				wantPing(t, c, "at home")
				for range 2 {
					move(t, c)
					wantPing(t, c, "elsewhere")
				}
				_ = c.CloseWithError(0, "")
			}
		})
	}
}

// A router that forgets its mapping changes the address without telling anybody.
func TestConnectionSurvivesANewMapping(t *testing.T) {
	t.Parallel()
	e := startEcho(t, Options{Sockets: 4, ProveAbove: 1000})
	for range 4 {
		nat := newRouter(t, e.Addr())
		tr := newTransport(t)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		c, err := tr.Dial(ctx, nat.inside.LocalAddr(), clientTLS(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			wantPing(t, c, "through the router")
			nat.forget()
		}
		wantPing(t, c, "through the router")
		_ = c.CloseWithError(0, "")
	}
}

func TestSocketsHandOverWhatTheKernelJoined(t *testing.T) {
	t.Parallel()
	e := startEcho(t, Options{Sockets: 3, ProveAbove: 1000})
	tr := newTransport(t) // one address for all connections
	var conns []*quicgo.Conn
	for range 6 {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		c, err := tr.Dial(ctx, e.Addr(), clientTLS(), nil)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	text := string(make([]byte, 300<<10))
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() {
			if got, err := ping(c, text); err != nil || got != text {
				t.Errorf("got %d bytes back, %v; want %d", len(got), err, len(text))
			}
		})
	}
	wg.Wait()
}

func TestAddressThatSomebodyHasIsAnError(t *testing.T) {
	t.Parallel()
	e := startEcho(t, Options{Sockets: 2, ProveAbove: 1000})
	for _, sockets := range []int{1, 2} {
		_, err := Open(Options{Network: "udp", Addr: e.Addr().String(), Sockets: sockets, Keys: NewKeys(), Log: slog.New(slog.DiscardHandler)})
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("with %d sockets: got %v, want EADDRINUSE", sockets, err)
		}
	}
}

func TestStrangersProveTheirAddressWhenManyShakeHands(t *testing.T) {
	t.Parallel()
	e := startEcho(t, Options{Sockets: 1, ProveAbove: 0})
	c, _ := e.dial(clientTLS(), nil)
	wantPing(t, c, "hi")
	if got := e.Handshakes.Retries(); got < 1 {
		t.Errorf("%d clients were asked for a proof, want at least 1", got)
	}
	if got := e.proved.Load(); got != 1 {
		t.Errorf("%d clients proved their address, want 1", got)
	}
	eventually(t, func() bool { return e.Handshakes.underWay.Load() == 0 }, "the handshake is still counted as under way")

	doubted := startEcho(t, Options{Sockets: 1, ProveAbove: 1000, Doubts: func(net.Addr) bool { return true }})
	c, _ = doubted.dial(clientTLS(), nil)
	wantPing(t, c, "hi")
	if got := doubted.proved.Load(); got != 1 {
		t.Errorf("%d doubted clients proved their address, want 1", got)
	}

	calm := startEcho(t, Options{Sockets: 1, ProveAbove: 1})
	c, _ = calm.dial(clientTLS(), nil)
	wantPing(t, c, "hi")
	if got := calm.Handshakes.Retries(); got != 0 {
		t.Errorf("%d clients were asked for a proof while nothing was going on", got)
	}
}

func TestHandshakesThatNobodyEndsAreCountedAsFailed(t *testing.T) {
	t.Parallel()
	e := startEcho(t, Options{Sockets: 1, ProveAbove: 1000})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := newTransport(t).Dial(ctx, e.Addr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"other"}}, nil); err == nil {
		t.Fatal("a client without a protocol of ours was let in")
	}
	eventually(t, func() bool { return e.Handshakes.Failed() == 1 }, "the failed handshake is not counted")
	eventually(t, func() bool { return e.Handshakes.underWay.Load() == 0 }, "the handshake is still counted as under way")
}

func TestWhatClientsKeptIsTakenByTheNextProcess(t *testing.T) {
	t.Parallel()
	keys := NewKeys()
	conf := clientTLS()
	conf.ServerName = "test"
	conf.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	config := &quicgo.Config{TokenStore: quicgo.NewLRUTokenStore(4, 4)}
	for i := range int64(2) {
		e := startEcho(t, Options{Sockets: 1, Keys: keys, ProveAbove: 1000})
		c, _ := e.dial(conf, config)
		wantPing(t, c, "hi")
		wantPing(t, c, "a round trip after the tickets")
		_ = c.CloseWithError(0, "")
		eventually(t, func() bool { return e.resumed.Load() == i && e.proved.Load() == i },
			"process %d: resumed %d, address known %d; want both %d", i, e.resumed.Load(), e.proved.Load(), i)
	}
}

func TestClientOfADeadProcessLearnsOfIt(t *testing.T) {
	t.Parallel()
	keys := NewKeys()
	e := startEcho(t, Options{Sockets: 2, Keys: keys, ProveAbove: 1000})
	c, _ := e.dial(clientTLS(), &quicgo.Config{MaxIdleTimeout: time.Hour})
	wantPing(t, c, "hi")
	addr := e.Addr().String()
	if err := e.Close(); err != nil { // as if it had died: clients are told nothing
		t.Fatal(err)
	}
	startEcho(t, Options{Addr: addr, Sockets: 2, Keys: keys, ProveAbove: 1000})
	_, err := ping(c, "are you there?")
	var reset *quicgo.StatelessResetError
	if !errors.As(err, &reset) {
		t.Errorf("got error %v, want a stateless reset", err)
	}
}

func eventually(t *testing.T, ok func() bool, format string, args ...any) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf(format, args...)
		}
	}
}
