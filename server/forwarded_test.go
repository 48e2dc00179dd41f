package server

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// trusted are proxies at 10.0.0.0/8, 127.0.0.1 and fd00::/8.
func trusted(change func(c *SecurityConfig)) proxies {
	c := defaultSecurity()
	c.TrustedProxies = []string{"10.0.0.0/8", "127.0.0.1", "fd00::/8"}
	if change != nil {
		change(&c)
	}
	return newProxies(c)
}

// requestFrom is a request on a connection from an address. Lines of header are
// "Name: value".
func requestFrom(t proxies, addr string, lines ...string) *http.Request {
	r := httptest.NewRequest("GET", "http://site.example/", nil)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	remote := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))
	local := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 80), Port: 80}
	return r.WithContext(t.withPeer(context.Background(), remote, local))
}

func TestTheClientIsTheFirstFromTheRightThatIsNotTrusted(t *testing.T) {
	const proxy = "10.1.2.3:4444"
	for _, test := range []struct {
		from, header string
		addr, port   string
	}{
		{proxy, "X-Forwarded-For: 203.0.113.7", "203.0.113.7", ""},
		{proxy, "X-Forwarded-For: 203.0.113.7:1234", "203.0.113.7", "1234"},
		{proxy, "X-Forwarded-For: 2001:db8::1", "2001:db8::1", ""},
		{proxy, "X-Forwarded-For: [2001:DB8::1]:99", "2001:db8::1", "99"},
		{proxy, "X-Forwarded-For: [2001:db8::1]", "2001:db8::1", ""},
		{proxy, "X-Forwarded-For: ::ffff:203.0.113.7", "203.0.113.7", ""},
		{proxy, "X-Forwarded-For: 1.1.1.1, 203.0.113.7, 10.9.9.9, fd00::1", "203.0.113.7", ""},
		{proxy, "X-Forwarded-For: 10.0.0.1,10.0.0.2", "10.0.0.1", ""},
		{proxy, "X-Forwarded-For:  , 203.0.113.7 , ", "203.0.113.7", ""},
		{"[fd00::2]:1", "X-Forwarded-For: 203.0.113.7", "203.0.113.7", ""},
		{"[::ffff:10.1.2.3]:4444", "X-Forwarded-For: 203.0.113.7", "203.0.113.7", ""},

		// What is no address ends what is known.
		{proxy, "X-Forwarded-For: unknown", "10.1.2.3", "4444"},
		{proxy, "X-Forwarded-For: 1.1.1.1, evil, 10.0.0.9", "10.0.0.9", ""},
		{proxy, "X-Forwarded-For: 1.1.1.1; DROP TABLE", "10.1.2.3", "4444"},
		{proxy, "X-Forwarded-For: 999.1.1.1", "10.1.2.3", "4444"},
		{proxy, "X-Forwarded-For: fe80::1%eth0", "10.1.2.3", "4444"},
		{proxy, "X-Forwarded-For: ", "10.1.2.3", "4444"},
		{proxy, "X-Forwarded-For: 1.1.1.1:99999", "10.1.2.3", "4444"},

		{proxy, "Forwarded: for=203.0.113.7", "203.0.113.7", ""},
		{proxy, `Forwarded: For="[2001:db8::1]:4711";proto=https`, "2001:db8::1", "4711"},
		{proxy, `Forwarded: for=1.1.1.1, for=203.0.113.7;by=_x, for=10.0.0.2`, "203.0.113.7", ""},
		{proxy, `Forwarded: for=", for=203.0.113.7`, "203.0.113.7", ""}, // an open quote of the client's
		{proxy, `Forwarded: for="1.1.1.1`, "10.1.2.3", "4444"},
		{proxy, `Forwarded: for=_hidden`, "10.1.2.3", "4444"},
		{proxy, `Forwarded: for=unknown, for=10.0.0.5`, "10.0.0.5", ""},
		{proxy, `Forwarded: for=1.1.1.1;for=2.2.2.2`, "10.1.2.3", "4444"},
		{proxy, `Forwarded: nonsense`, "10.1.2.3", "4444"},

		// Nobody else is believed.
		{"203.0.113.9:55", "X-Forwarded-For: 1.1.1.1", "203.0.113.9", "55"},
		{"203.0.113.9:55", "Forwarded: for=1.1.1.1", "203.0.113.9", "55"},
		{"[2001:db8::9]:55", "X-Forwarded-For: 1.1.1.1", "2001:db8::9", "55"},
	} {
		all := trusted(nil)
		p := peerOf(all.through(requestFrom(all, test.from, test.header)))
		if p.addr != test.addr || p.port != test.port {
			t.Errorf("from %s with %q: client %s port %q, want %s port %q", test.from, test.header, p.addr, p.port, test.addr, test.port)
		}
		if p.local != "192.0.2.80" {
			t.Errorf("SERVER_ADDR became %q", p.local)
		}
	}
}

func TestListsMayBeSpreadOverLines(t *testing.T) {
	all := trusted(nil)
	r := all.through(requestFrom(all, "10.0.0.1:1", "X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 203.0.113.7, 10.0.0.2", "X-Forwarded-For: 10.0.0.3"))
	if p := peerOf(r); p.addr != "203.0.113.7" {
		t.Errorf("client %s, want 203.0.113.7", p.addr)
	}
}

func TestSchemeAndPortOfTheClient(t *testing.T) {
	const via = "X-Forwarded-For: 203.0.113.7"
	for _, test := range []struct {
		header       []string
		scheme, port string
	}{
		{[]string{via, "X-Forwarded-Proto: https", "X-Forwarded-Port: 8443"}, "https", "8443"},
		{[]string{via, "X-Forwarded-Proto: HTTP"}, "http", ""},
		{[]string{via, "X-Forwarded-Proto: wss"}, "https", ""},
		{[]string{"X-Forwarded-Proto: https"}, "https", ""},
		{[]string{via, "X-Forwarded-Proto: gopher", "X-Forwarded-Port: 70000"}, "", ""},
		{[]string{via, "X-Forwarded-Port: +1"}, "", ""},
		{[]string{via, "X-Forwarded-Port: 0"}, "", ""},
		// With a value for each hop the client's counts, else nobody knows whose it is.
		{[]string{"X-Forwarded-For: 1.1.1.1, 203.0.113.7, 10.0.0.2", "X-Forwarded-Proto: http, https, http"}, "https", ""},
		{[]string{"X-Forwarded-For: 203.0.113.7, 10.0.0.2", "X-Forwarded-Proto: https, http"}, "https", ""},
		{[]string{via, "X-Forwarded-Proto: https, http"}, "", ""},
		{[]string{"Forwarded: for=203.0.113.7;proto=https;host=\"a.example:8443\""}, "https", "8443"},
		{[]string{"Forwarded: for=1.1.1.1;proto=http, for=203.0.113.7;proto=https, for=10.0.0.2;proto=http"}, "https", ""},
		{[]string{"Forwarded: for=203.0.113.7"}, "", ""},
	} {
		all := trusted(nil)
		p := peerOf(all.through(requestFrom(all, "10.0.0.1:1", test.header...)))
		if p.scheme != test.scheme || p.serverPort != test.port {
			t.Errorf("%q: scheme %q port %q, want %q and %q", test.header, p.scheme, p.serverPort, test.scheme, test.port)
		}
	}
}

func TestOneFamilyOfHeadersIsBelieved(t *testing.T) {
	both := []string{"X-Forwarded-For: 203.0.113.1", "Forwarded: for=203.0.113.2"}
	for headers, want := range map[string]string{
		ProxyHeadersAny: "203.0.113.1", ProxyHeadersX: "203.0.113.1", ProxyHeadersForwarded: "203.0.113.2",
	} {
		all := trusted(func(c *SecurityConfig) { c.ProxyHeaders = headers })
		if p := peerOf(all.through(requestFrom(all, "10.0.0.1:1", both...))); p.addr != want {
			t.Errorf("%s: client %s, want %s", headers, p.addr, want)
		}
	}
	x := trusted(func(c *SecurityConfig) { c.ProxyHeaders = ProxyHeadersX })
	if p := peerOf(x.through(requestFrom(x, "10.0.0.1:1", both[1]))); p.addr != "10.0.0.1" {
		t.Errorf("Forwarded alone with x-forwarded: client %s, want the proxy", p.addr)
	}
}

func TestProxiesNameTheHostOnlyWhenTheyMay(t *testing.T) {
	for _, test := range []struct {
		may          bool
		header, want string
	}{
		{false, "X-Forwarded-Host: other.example", "site.example"},
		{true, "X-Forwarded-Host: other.example:81", "other.example:81"},
		{true, "X-Forwarded-Host: a b", "site.example"},
		{true, "X-Forwarded-Host: a/b", "site.example"},
		{true, `Forwarded: host="other.example:81"`, "other.example:81"},
	} {
		all := trusted(func(c *SecurityConfig) { c.ProxyHost = test.may })
		original := requestFrom(all, "10.0.0.1:1", test.header)
		if r := all.through(original); r.Host != test.want {
			t.Errorf("%q, allowed: %v: host %q, want %q", test.header, test.may, r.Host, test.want)
		}
		if original.Host != "site.example" {
			t.Error("the original request was changed")
		}
	}
}

func TestSameOriginBehindAProxy(t *testing.T) {
	for _, test := range []struct {
		origin string
		header []string
		want   bool
	}{
		{"https://site.example", []string{"X-Forwarded-Proto: https"}, true},
		{"http://site.example", []string{"X-Forwarded-Proto: https"}, false}, // a page that anybody on the way can write
		{"http://site.example", []string{"X-Forwarded-Proto: http"}, true},
		{"https://site.example:8443", []string{"X-Forwarded-Proto: https", "X-Forwarded-Port: 8443"}, true},
		{"https://site.example:8443", []string{"X-Forwarded-Proto: https"}, false},
		{"https://site.example", []string{"X-Forwarded-Proto: https", "X-Forwarded-Port: 8443"}, true}, // Host says so
	} {
		all := trusted(nil)
		r := all.through(requestFrom(all, "10.0.0.1:1", append(test.header, "Origin: "+test.origin)...))
		if got := sameOrigin(r); got != test.want {
			t.Errorf("origin %s with %q: %v, want %v", test.origin, test.header, got, test.want)
		}
	}
}

func TestVariablesOfARequestThroughAProxy(t *testing.T) {
	pool := &fakePool{}
	s := newTest(t, files(t, "index.php"), pool, func(c *Config) { c.Server.Security.TrustedProxies = []string{"10.0.0.0/8"} })
	r := requestFrom(s.proxies, "10.0.0.1:1", "X-Forwarded-For: 203.0.113.7", "X-Forwarded-Proto: https", "X-Forwarded-Port: 8443")
	r.RequestURI = "/"
	s.ServeHTTP(httptest.NewRecorder(), r)
	for name, want := range map[string]string{
		"REMOTE_ADDR": "203.0.113.7", "REMOTE_HOST": "203.0.113.7", "REMOTE_PORT": "", "HTTPS": "on", "REQUEST_SCHEME": "https",
		"SERVER_PORT": "8443", "SERVER_NAME": "site.example", "HTTP_HOST": "site.example", "SERVER_ADDR": "192.0.2.80",
		"HTTP_X_FORWARDED_FOR": "203.0.113.7",
	} {
		if got := pool.vars[name]; got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

// FuzzForwarded checks that what a client can write reaches no further than the
// proxy's own element, and that nothing but an address becomes one.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{
		"1.1.1.1", "for=1.1.1.1", `for="[::1]:1"`, `for="`, `for="\`, `for=a;for=b`, "unknown", ",,", "[", "]:", "a,b;c=d", "::1%x", `"`,
	} {
		f.Add(seed, seed)
	}
	all := trusted(func(c *SecurityConfig) { c.ProxyHost = true })
	f.Fuzz(func(t *testing.T, client, proto string) {
		for field, own := range map[string]string{"X-Forwarded-For": "203.0.113.7", "Forwarded": "for=203.0.113.7"} {
			r := requestFrom(all, "10.0.0.1:1")
			r.Header[field] = []string{client + ", " + own}
			r.Header["X-Forwarded-Proto"] = []string{proto}
			r.Header["X-Forwarded-Host"] = []string{proto}
			q := all.through(r)
			if p := peerOf(q); p.addr != "203.0.113.7" {
				t.Errorf("%s %q: client %q, want what the proxy added", field, r.Header[field], p.addr)
			}
			r.Header[field] = []string{client}
			q = all.through(r)
			p := peerOf(q)
			if _, err := netip.ParseAddr(p.addr); err != nil {
				t.Errorf("%s %q: client %q is no address", field, client, p.addr)
			}
			if !slices.Contains([]string{"", "http", "https"}, p.scheme) || strings.ContainsFunc(q.Host, notInHost) {
				t.Errorf("scheme %q, host %q", p.scheme, q.Host)
			}
		}
	})
}
