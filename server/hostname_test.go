package server

import (
	"strings"
	"testing"
)

func TestHostName(t *testing.T) {
	label := strings.Repeat("a", 63)
	for field, want := range map[string]string{
		"":                              "",
		"example.org":                   "example.org",
		"Example.ORG":                   "example.org",
		"example.org.":                  "example.org",
		"example.org:8080":              "example.org",
		"example.org.:443":              "example.org",
		"example.org:":                  "example.org",
		"localhost":                     "localhost",
		"a_b-c.example":                 "a_b-c.example",
		"xn--bcher-kva.example":         "xn--bcher-kva.example",
		"127.0.0.1:80":                  "127.0.0.1",
		"[::1]":                         "::1",
		"[0:0::1]:8080":                 "::1",
		"[2001:DB8::1]":                 "2001:db8::1",
		label + "." + label:             label + "." + label,
		strings.Repeat("a.", 126) + "a": strings.Repeat("a.", 126) + "a", // 253 bytes
	} {
		if got, ok := hostName(field); !ok || got != want {
			t.Errorf("hostName(%q) = %q, %v; want %q", field, got, ok, want)
		}
	}
	for _, field := range []string{
		".", "..", ":", ":80", ".example.org", "example..org", "example.org..", "a/b", "a\\b", "../a", "a b", "a%2fb", "a%20b",
		"a@b", "user@example.org", "exämple.org", "a\x00b", "a,b", "*.example.org", "example.org:http", "example.org:65536", "example.org:-1",
		"example.org:+80", "example.org:080000", "example.org:80:80", "::1", "2001:db8::1", "[::1", "[]", "[::1]80", "[::1]:x", "[fe80::1%25eth0]",
		"[fe80::1%eth0]", "[127.0.0.1]", "[example.org]", "[::1]]", label + "a.example", strings.Repeat("a.", 127) + "a",
	} {
		if got, ok := hostName(field); ok {
			t.Errorf("hostName(%q) = %q, want it refused", field, got)
		}
	}
}

func FuzzHostName(f *testing.F) {
	for _, seed := range []string{
		"", "example.org", "EXAMPLE.org.:80", "[::1]:80", "[::ffff:1.2.3.4]", "127.0.0.1", "..", "../../etc", "a%2e%2e", ":", "[", "a:b:c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, field string) {
		name, ok := hostName(field)
		if !ok {
			return
		}
		if strings.ContainsAny(name, "/\\ %[]\x00*@") || strings.HasPrefix(name, ".") || strings.Contains(name, "..") || len(name) > maxHostName {
			t.Errorf("hostName(%q) = %q", field, name)
		}
		again := name
		if strings.Contains(name, ":") {
			again = "[" + name + "]"
		}
		if same, ok := hostName(again); !ok || same != name {
			t.Errorf("hostName(%q) = %q, but of that %q, %v", field, name, same, ok)
		}
	})
}

func TestTheLongestNameThatFitsWins(t *testing.T) {
	var table nameTable[string]
	for _, pattern := range []string{"example.org", "*.example.org", "*.shop.example.org", "de.shop.example.org"} {
		table.set(pattern, pattern)
	}
	for name, want := range map[string]string{
		"example.org":             "example.org",
		"www.example.org":         "*.example.org",
		"a.b.example.org":         "*.example.org",
		"shop.example.org":        "*.example.org",
		"fr.shop.example.org":     "*.shop.example.org",
		"www.fr.shop.example.org": "*.shop.example.org",
		"de.shop.example.org":     "de.shop.example.org",
		"org":                     "",
		"notexample.org":          "",
		"example.org.evil":        "",
		"":                        "",
	} {
		if got, _ := table.find(name); got != want {
			t.Errorf("find(%q) = %q, want %q", name, got, want)
		}
	}
}

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
