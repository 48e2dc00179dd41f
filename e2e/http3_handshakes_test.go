package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// A deafConn hears of a handshake only that its address is to be proved.
type deafConn struct{ net.PacketConn }

// ReadFrom implements net.PacketConn.
func (c deafConn) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := c.PacketConn.ReadFrom(p)
		if err != nil || n > 0 && p[0]&0xf0 == 0xf0 { // Retry (RFC 9000 §17.2.5)
			return n, from, err
		}
	}
}

// A client that has proved its address takes a place though it never ends its
// handshake; one that has not takes none from whom it says it is.
func TestHTTP3HandshakesAreLimited(t *testing.T) {
	t.Parallel()
	for _, proved := range []bool{true, false} {
		retryAbove := 1000
		if proved {
			retryAbove = 0
		}
		a := startHTTP3(t, appOptions{
			TOML: metricsOn + fmt.Sprintf("[server.limits]\nper_ip_max_connections = 3\n[server.http3]\nretry_above = %d\nhandshake_timeout = \"1h\"\n", retryAbove),
		})
		retries, err := a.metric("ephpm_http3_retries_total") // by the one connection that asks
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var dialing sync.WaitGroup
		for range 2 {
			udp, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			transport := &quic.Transport{Conn: deafConn{udp}}
			dialing.Go(func() {
				c := &tls.Config{RootCAs: a.ca.Pool, NextProtos: []string{http3.NextProtoH3}}
				if _, err := transport.Dial(ctx, a.Addr, c, &quic.Config{HandshakeIdleTimeout: time.Hour}); err == nil {
					t.Error("a client that hears nothing has shaken hands")
				}
				_ = transport.Close()
				_ = udp.Close()
			})
		}
		if proved {
			a.waitMetric("ephpm_http_connections", 3)
			var refused *quic.TransportError
			if _, err := a.tryConn(); !errors.As(err, &refused) || refused.ErrorCode != quic.ConnectionRefused {
				t.Errorf("beyond the limit: %v, want CONNECTION_REFUSED", err)
			}
		} else {
			err := eventually(func() error { // the two may not have been heard of yet
				c, err := a.tryConn()
				if err != nil {
					return err
				}
				_ = c.CloseWithError(0, "")
				now, err := a.metric("ephpm_http3_retries_total")
				if err == nil && now == retries {
					err = errors.New("nobody had to prove an address")
				}
				return err
			})
			if err != nil {
				t.Errorf("beside two that may lie: %v", err)
			}
		}
		cancel()
		dialing.Wait()
	}
}
