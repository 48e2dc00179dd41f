package server

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
)

// headerOf is a header as the library writes it.
func headerOf(t testing.TB, version byte, command proxyproto.ProtocolVersionAndCommand, tlvs ...proxyproto.TLV) []byte {
	t.Helper()
	h := &proxyproto.Header{
		Version: version, Command: command, TransportProtocol: proxyproto.TCPv6,
		SourceAddr:      &net.TCPAddr{IP: net.ParseIP("2001:db8::7"), Port: 1234},
		DestinationAddr: &net.TCPAddr{IP: net.ParseIP("2001:db8::80"), Port: 443},
	}
	if err := h.SetTLVs(tlvs); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := h.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestProxyHeaders(t *testing.T) {
	big := proxyproto.TLV{Type: 0xE0, Value: make([]byte, 2000)}
	for name, test := range map[string]struct{ header, remote, local string }{
		"version 1, IPv4":      {"PROXY TCP4 203.0.113.7 192.0.2.80 56324 443\r\n", "203.0.113.7:56324", "192.0.2.80:443"},
		"version 1, IPv6":      {"PROXY TCP6 2001:db8::7 2001:db8::80 1 65535\r\n", "[2001:db8::7]:1", "[2001:db8::80]:65535"},
		"version 1, unknown":   {"PROXY UNKNOWN\r\n", "", ""},
		"version 1, longest":   {"PROXY UNKNOWN " + strings.Repeat("f", 91) + "\r\n", "", ""},
		"version 2":            {string(headerOf(t, 2, proxyproto.PROXY)), "[2001:db8::7]:1234", "[2001:db8::80]:443"},
		"version 2, with more": {string(headerOf(t, 2, proxyproto.PROXY, big)), "[2001:db8::7]:1234", "[2001:db8::80]:443"},
		"version 2, local":     {string(headerOf(t, 2, proxyproto.LOCAL)), "", ""},
		"version 2, bare":      {string(proxyV2Start) + "\x20\x00\x00\x00", "", ""},
	} {
		const request = "GET / HTTP/1.1\r\n"
		in := strings.NewReader(test.header + request)
		header, err := proxyHeader(in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if rest, _ := io.ReadAll(in); string(rest) != request {
			t.Errorf("%s: %q is left, want the request", name, rest)
		}
		remote, local, err := parseProxyHeader(header)
		got := func(a net.Addr) string {
			if a == nil {
				return ""
			}
			return a.String()
		}
		if err != nil || got(remote) != test.remote || got(local) != test.local {
			t.Errorf("%s: %v %v %v, want %q %q", name, remote, local, err, test.remote, test.local)
		}
	}
}

func TestBadProxyHeaders(t *testing.T) {
	for _, header := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03abcdefgh", // TLS
		"PROXY TCP4 203.0.113.7 192.0.2.80 1 99999\r\n",
		"PROXY TCP4 203.0.113.7 192.0.2.80 1\r\n",
		"PROXY TCP4 2001:db8::7 192.0.2.80 1 2\r\n",
		"PROXY TCP4 203.0.113.7 192.0.2.80 1 2\n",
		"PROXY UNKNOWN " + strings.Repeat("f", 200),
		"PROXY TCP4 203.0.113.7",
		"PROXY UNKNOWN\r",
		string(proxyV2Start) + "\x21\x11\xff\xff" + strings.Repeat("x", 70_000),
		string(proxyV2Start) + "\x21\x11\x00\x02ab",
		string(proxyV2Start) + "\x31\x11\x00\x0c123456789012",
		string(proxyV2Start),
		"", "P", "\r\n\r\n",
	} {
		header2, err := proxyHeader(strings.NewReader(header))
		if err == nil {
			_, _, err = parseProxyHeader(header2)
		}
		if err == nil {
			t.Errorf("%.60q is taken", header)
		}
	}
}

func TestALateProxyHeaderHoldsUpNobody(t *testing.T) {
	s := newTest(t, files(t, "a.txt"), &fakePool{}, func(c *Config) {
		c.Server.ProxyProtocol = true
		c.Server.Security.TrustedProxies = []string{"127.0.0.1"}
		c.Server.Timeouts.HeaderRead = Duration(time.Hour)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := s.guard(l)
	late, prompt := dial(t, l.Addr()), dial(t, l.Addr())
	defer late.Close()
	defer prompt.Close()
	if _, err := io.WriteString(prompt, "PROXY TCP4 203.0.113.7 192.0.2.80 56324 443\r\nhello"); err != nil {
		t.Fatal(err)
	}
	c, err := g.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if c.RemoteAddr().String() != "203.0.113.7:56324" || c.LocalAddr().String() != "192.0.2.80:443" {
		t.Errorf("addresses %v and %v", c.RemoteAddr(), c.LocalAddr())
	}
	b := make([]byte, 5)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "hello" {
		t.Errorf("behind the header: %q, %v", b, err)
	}
	_ = c.Close()
	if err := g.Close(); err != nil { // returns when the late one is closed
		t.Error(err)
	}
	if _, err := late.Read(b); err == nil {
		t.Error("the late one is still open")
	}
	if _, err := g.Accept(); err == nil {
		t.Error("a closed gate accepts")
	}
}

// FuzzProxyHeader checks that no header is read further than to its end, and that
// none gives half an address.
func FuzzProxyHeader(f *testing.F) {
	f.Add([]byte("PROXY TCP4 203.0.113.7 192.0.2.80 56324 443\r\nrest"))
	f.Add([]byte("PROXY UNKNOWN\r\n"))
	f.Add(headerOf(f, 2, proxyproto.PROXY, proxyproto.TLV{Type: 0xE0, Value: []byte("x")}))
	f.Add(headerOf(f, 2, proxyproto.LOCAL))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		header, err := proxyHeader(r)
		if err != nil {
			return
		}
		if len(header) > proxyV2Fixed+proxyV2Max || !bytes.HasPrefix(in, header) || r.Len() != len(in)-len(header) {
			t.Fatalf("%d bytes of header, %d are left of %d", len(header), r.Len(), len(in))
		}
		remote, local, err := parseProxyHeader(header)
		if (remote == nil) != (local == nil) || err != nil && remote != nil {
			t.Fatalf("%v, %v, %v", remote, local, err)
		}
	})
}
