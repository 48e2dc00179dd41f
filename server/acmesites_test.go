package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func newTestACMESites(t *testing.T, known ...string) *acmeSites {
	t.Helper()
	a, err := newACME(TLSConfig{CacheDir: t.TempDir()}, []string{"own.example"}, 0, 443, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	a.dir.open(func(name string) bool { return slices.Contains(known, name) })
	return a.dir
}

func TestOnlyNamesOfDirectoriesAreAskedFor(t *testing.T) {
	s := newTestACMESites(t, "a.example", "own.example", "localhost", "b.localhost", "short", "a_b.example", "192.0.2.1")
	for i := range 1000 {
		if s.order(fmt.Sprintf("invented%d.example", i)) != nil {
			t.Fatal("an invented name is asked for")
		}
	}
	for _, name := range []string{"own.example", "localhost", "b.localhost", "short", "a_b.example", "192.0.2.1", ""} {
		if s.order(name) != nil {
			t.Errorf("%q is asked for", name)
		}
	}
	first, second := s.order("a.example"), s.order("a.example")
	if first == nil || first != second || len(s.queue) != 1 {
		t.Errorf("two clients wait for %v and %v, and %d names are asked for; want one order", first, second, len(s.queue))
	}
	if got := fmt.Sprint(s.acme.names()); got != "[own.example a.example]" || !s.acme.manages("A.example:443") || s.acme.manages("b.example") {
		t.Errorf("the names are %s", got)
	}
}

func TestWhoWaitsForACertificateGoesOn(t *testing.T) {
	for name, settle := range map[string]func(s *acmeSites){
		"it is there": func(s *acmeSites) {
			_ = s.acme.event(context.Background(), eventReady, map[string]any{"sans": []string{"a.example"}})
		},
		"it failed": func(s *acmeSites) {
			_ = s.acme.event(context.Background(), eventFailed, map[string]any{"identifier": "a.example"})
		},
		"it is gone": func(s *acmeSites) { s.forget([]string{"a.example", "a.example"}) },
	} {
		s := newTestACMESites(t, "a.example")
		settled := s.order("a.example")
		settle(s)
		settle(s) // more than once does no harm
		<-settled
		if after := s.order("a.example"); (after != nil) != (name == "it is gone") {
			t.Errorf("%s: the next client waits: %v", name, after != nil)
		}
	}
}

func TestOrdersThatWaitAreBounded(t *testing.T) {
	var names []string
	for i := range maxOrders + 1 {
		names = append(names, fmt.Sprintf("s%d.example", i))
	}
	s := newTestACMESites(t, names...)
	for i, name := range names {
		if got := s.order(name) != nil; got != (i < maxOrders) {
			t.Fatalf("order %d is taken: %v", i+1, got)
		}
	}
	<-s.queue
	if s.order(names[maxOrders]) == nil {
		t.Error("the one that found no place is never asked for")
	}
}

func TestACMEDomainsOfSites(t *testing.T) {
	yes, no := true, false
	c := Config{Sites: []SiteConfig{
		{Names: []string{"a.example", "*.a.example", "localhost", "a.internal", "[::1]"}},
		{Names: []string{"b.example"}, TLS: SiteTLSConfig{Cert: "b.pem", Key: "b.key"}},
		{Names: []string{"c.example"}, TLS: SiteTLSConfig{ACME: &yes}},
		{Names: []string{"d.example"}, TLS: SiteTLSConfig{ACME: &no}},
	}}
	c.Server.TLS.Domains = []string{"Z.example", "a.example"}
	for all, want := range map[bool]string{false: "z.example a.example c.example", true: "z.example a.example c.example"} {
		c.Server.TLS.ACMESites = all
		if got := strings.Join(c.acmeDomains(), " "); got != want {
			t.Errorf("acme_sites = %v: %s, want %s", all, got, want)
		}
	}
	c.Server.TLS.Domains = nil
	for all, want := range map[bool]string{false: "c.example", true: "a.example c.example"} {
		c.Server.TLS.ACMESites = all
		if got := strings.Join(c.acmeDomains(), " "); got != want {
			t.Errorf("without domains, acme_sites = %v: %s, want %s", all, got, want)
		}
	}
}

func TestHandshakeForAnInventedNameDoesNotWait(t *testing.T) {
	s := newTestACMESites(t, "a.example")
	for _, sni := range []string{"", "b.example", "own.example", "..", "A.example.evil"} {
		s.await(&tls.ClientHelloInfo{ServerName: sni}) // waits for ever, or not
	}
	if len(s.queue) != 0 {
		t.Errorf("%d names are asked for", len(s.queue))
	}
}
