package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"
)

// A pebble is Let's Encrypt's small ACME authority in this process. Every name is
// at 127.0.0.1 for it.
type pebble struct {
	URL    string         // of its directory
	Roots  *x509.CertPool // of the certificates that it issues; after open
	Orders atomic.Int64   // how many certificates were asked for

	t      testing.TB
	opened chan struct{} // closed by open
	front  http.Handler  // once opened
}

// newPebble starts an authority that lets every request wait until open. Its own
// certificate is the other authority's.
func newPebble(t testing.TB, own *authority) *pebble {
	t.Helper()
	p := &pebble{t: t, opened: make(chan struct{})}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-p.opened:
		case <-r.Context().Done():
			return
		}
		if strings.HasPrefix(r.URL.Path, "/order-plz") {
			p.Orders.Add(1)
		}
		p.front.ServeHTTP(w, r)
	}))
	dir := t.TempDir()
	own.issue(dir, "acme.test")
	cert, err := tls.LoadX509KeyPair(dir+"/cert.pem", dir+"/key.pem")
	if err != nil {
		t.Fatal(err)
	}
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.StartTLS()
	t.Cleanup(s.Close)
	p.URL = s.URL + wfe.DirectoryPath
	return p
}

// open lets it work. It checks names at these ports of 127.0.0.1.
func (p *pebble) open(httpPort, tlsPort int) {
	p.t.Helper()
	_ = os.Setenv("PEBBLE_VA_NOSLEEP", "1")      // the same for every test
	_ = os.Setenv("PEBBLE_WFE_NONCEREJECT", "0") // else a few requests fail by chance
	out := log.New(p.t.Output(), "pebble: ", 0)
	store := db.NewMemoryStore()
	issuer := ca.New(out, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {}})
	p.Roots = x509.NewCertPool()
	p.Roots.AppendCertsFromPEM(issuer.GetRootCert(0).PEM())
	checks := va.New(out, httpPort, tlsPort, true, everyNameIsHere(p.t), store)
	front := wfe.New(out, store, checks, issuer, []string{"acme.test"}, true, false, 1, 1)
	p.front = front.Handler()
	close(p.opened)
}

// everyNameIsHere starts a name server and returns its address.
func everyNameIsHere(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		reply := new(dns.Msg)
		reply.SetReply(q)
		if q.Question[0].Qtype == dns.TypeA {
			reply.Answer = append(reply.Answer, &dns.A{
				Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET},
				A:   net.IPv4(127, 0, 0, 1),
			})
		}
		_ = w.WriteMsg(reply) // the authority asks again
	})}
	ended := make(chan struct{})
	go func() { // until Shutdown
		defer close(ended)
		_ = s.ActivateAndServe()
	}()
	t.Cleanup(func() {
		_ = l.Close() // ends it, whether it has begun or not
		_ = s.Shutdown()
		<-ended
	})
	return l.Addr().String()
}
