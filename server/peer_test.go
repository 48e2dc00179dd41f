package server

import (
	"net/netip"
	"testing"
)

// Addresses are split in the way that is documented, and none is too odd.
func TestPeerOfOddAddresses(t *testing.T) {
	for remote, want := range map[string]struct{ addr, port, ip string }{
		"192.0.2.1:80":            {"192.0.2.1", "80", "192.0.2.1"},
		"192.0.2.1":               {"192.0.2.1", "", "192.0.2.1"},
		"[2001:db8::1]:80":        {"2001:db8::1", "80", "2001:db8::1"},
		"[2001:db8::1]":           {"2001:db8::1", "", "2001:db8::1"},
		"2001:db8::1":             {"2001:db8::1", "", "2001:db8::1"},
		"[fe80::1%eth0]:80":       {"fe80::1%eth0", "80", "fe80::1"},
		"fe80::1%eth0":            {"fe80::1%eth0", "", "fe80::1"},
		"[::ffff:192.0.2.1]:80":   {"::ffff:192.0.2.1", "80", "192.0.2.1"},
		"":                        {"", "", ""},
		":":                       {"", "", ""},
		":80":                     {"", "80", ""},
		"[":                       {"", "", ""},
		"[]":                      {"", "", ""},
		"[:":                      {"", "", ""},
		"[:9000":                  {"", "9000", ""},
		"[::1:80":                 {"::1", "80", "::1"},
		"]:80":                    {"", "80", ""},
		"@":                       {"@", "", ""}, // of a Unix socket
		"host.example:80":         {"host.example", "80", ""},
		"\x00\xff:\x00":           {"\x00\xff", "\x00", ""},
		"[fe80::1%]:80":           {"fe80::1%", "80", ""},
		"::::::::::::::::::::::1": {"::::::::::::::::::::::1", "", ""},
	} {
		p := newPeer(remote, remote)
		ip := ""
		if p.ip != (netip.Addr{}) {
			ip = p.ip.String()
		}
		if p.addr != want.addr || p.port != want.port || ip != want.ip || p.local != want.addr {
			t.Errorf("%q is split into %q, %q and the IP %q, at %q; want %q", remote, p.addr, p.port, ip, p.local, want)
		}
	}
}
