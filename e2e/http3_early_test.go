package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// A script may refuse what came early; the client asks again when the handshake is
// complete, and is answered (RFC 8470 §5.2).
func TestEarlyRequestIsRefusedByTheScript(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{
		TOML:  "[server.http3]\nearly_data = true\n",
		Files: map[string]string{"early.php": early},
	})
	cache := tls.NewLRUClientSessionCache(1)
	err := eventually(func() error { // the ticket comes late, or a busy server looks when the handshake is complete
		client := a.newClient(&tls.Config{ClientSessionCache: cache}, nil)
		defer client.CloseIdleConnections()
		resp, body, err := send(client, a.request(http3.MethodGet0RTT, "/early.php?refuse", ""))
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusTooEarly {
			return fmt.Errorf("%s %q, want 425", resp.Status, body)
		}
		if resp, body, err := send(client, a.request("GET", "/early.php?refuse", "")); err != nil || body != "GET - " {
			t.Errorf("asked again: %v %q, %v", resp, body, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A proxy in front that took a request early says so, and cannot be made to wait.
func TestEarlyRequestOfAProxyIsRefused(t *testing.T) {
	t.Parallel()
	for enabled, want := range map[bool]int{true: 425, false: 200} {
		a := startHTTP3(t, appOptions{
			TOML:  fmt.Sprintf("[server.http3]\nearly_data = %v\n", enabled),
			Files: map[string]string{"early.php": early},
		})
		for _, method := range []string{"POST", "PUT", "DELETE", "PROPFIND"} {
			if resp, _ := a.do(a.request(method, "/early.php", "", "Early-Data", "1")); resp.StatusCode != want {
				t.Errorf("%s with Early-Data, early data %v: %s, want %d", method, enabled, resp.Status, want)
			}
		}
		if resp, body := a.do(a.request("GET", "/early.php", "", "Early-Data", "1")); resp.StatusCode != 200 || body != "GET 1 " {
			t.Errorf("GET with Early-Data: %s %q, want the script to see it", resp.Status, body)
		}
	}
}

// A client that goes to another address keeps its connection, and its next request
// comes from there, whichever socket of the server the packets reach.
func TestRequestsComeFromWhereTheClientIsNow(t *testing.T) {
	t.Parallel()
	for _, sockets := range []int{1, 4} {
		a := startHTTP3(t, appOptions{
			TOML:  fmt.Sprintf("[server.http3]\nsockets = %d\n", sockets),
			Files: map[string]string{"index.php": `<?php echo $_SERVER['REMOTE_ADDR'], ' ', $_SERVER['REMOTE_PORT'];`},
		})
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		at := func(ip string) *quic.Transport {
			udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(ip)})
			if err != nil {
				t.Fatal(err)
			}
			transport := &quic.Transport{Conn: udp}
			t.Cleanup(func() {
				_ = transport.Close()
				_ = udp.Close()
			})
			return transport
		}
		first := at("127.0.0.1")
		conn, err := first.Dial(ctx, a.Addr, &tls.Config{RootCAs: a.ca.Pool, NextProtos: []string{http3.NextProtoH3}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		client := (&http3.Transport{}).NewClientConn(conn)
		where := func() string {
			resp, err := client.RoundTrip(a.request("GET", "/", ""))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
		want := func(transport *quic.Transport) string {
			addr := transport.Conn.LocalAddr().(*net.UDPAddr)
			return fmt.Sprintf("%s %d", addr.IP, addr.Port)
		}
		if got := where(); got != want(first) {
			t.Errorf("%d sockets: the client is at %q, want %q", sockets, got, want(first))
		}
		for _, ip := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"} {
			next := at(ip)
			path, err := conn.AddPath(next)
			if err == nil {
				err = path.Probe(ctx)
			}
			if err == nil {
				err = path.Switch()
			}
			if err != nil {
				t.Fatalf("%d sockets: move to %s: %v", sockets, ip, err)
			}
			err = eventually(func() error { // packets under way tell the server
				if got := where(); got != want(next) {
					return fmt.Errorf("the client is at %q, want %q", got, want(next))
				}
				return nil
			})
			if err != nil {
				t.Errorf("%d sockets: %v", sockets, err)
			}
		}
		if err := conn.CloseWithError(0, ""); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}
}
