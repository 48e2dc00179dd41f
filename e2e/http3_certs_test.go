package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// nameOver returns whom the certificate is for that a client of HTTP/3 is shown. An
// empty sni stands for a client that asks for no name: none does so for an address.
func nameOver(t *testing.T, addr, sni string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := quic.DialAddr(ctx, addr, &tls.Config{ServerName: sni, InsecureSkipVerify: true, NextProtos: []string{http3.NextProtoH3}}, nil)
	if err != nil {
		t.Fatalf("%q: %v", sni, err)
	}
	defer func() { _ = c.CloseWithError(0, "") }() // it was only opened
	return c.ConnectionState().TLS.PeerCertificates[0].Subject.CommonName
}

// Certificates over HTTP/3 are those over TCP: chosen by name, and taken up when their
// files change.
func TestHTTP3ShowsTheSameCertificates(t *testing.T) {
	t.Parallel()
	ca, dirs, toml := certifiedSites(t)
	a := startApp(t, appOptions{TOML: toml})
	_, port, err := net.SplitHostPort(a.waitLog(`msg="HTTP/3 listening" addr="?(\S+?)"? `)[1])
	if err != nil {
		t.Fatal(err)
	}
	addr := "127.0.0.1:" + port
	for sni, want := range map[string]string{
		"a.test": "a.test", "A.test": "a.test", "x.wild.test": "wild.test", "other.test": "default.test", "": "default.test",
	} {
		if got := nameOver(t, addr, sni); got != want {
			t.Errorf("%q gets the certificate of %s, want %s", sni, got, want)
		}
	}
	ca.issue(dirs["a.test"], "renewed.test")
	if err := eventually(func() error {
		if got := nameOver(t, addr, "a.test"); got != "renewed.test" {
			return fmt.Errorf("the certificate is still %s", got)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if got := nameOver(t, addr, "x.wild.test"); got != "wild.test" {
		t.Errorf("then another site's name gets that of %s", got)
	}
}
