package server

import (
	"testing"
)

func TestSplitHostPortTakesAnything(t *testing.T) {
	for in, want := range map[string][2]string{
		"": {"", ""}, "a": {"a", ""}, "a:1": {"a", "1"}, "a:": {"a", ""}, ":": {"", ""}, ":9000": {"", "9000"},
		"[": {"[", ""}, "[]": {"[]", ""}, "[:": {"[", ""}, "[:9000": {"[", "9000"}, "[::1]": {"[::1]", ""}, "[::1]:80": {"[::1]", "80"},
		"[::1:80": {"[::1", "80"}, "::1": {"::1", ""}, "[fe80::1%eth0]:1": {"[fe80::1%eth0]", "1"}, "1.2.3.4:5": {"1.2.3.4", "5"},
	} {
		if host, port := splitHostPort(in); host != want[0] || port != want[1] {
			t.Errorf("splitHostPort(%q) = %q, %q; want %q", in, host, port, want)
		}
	}
}
