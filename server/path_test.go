package server

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestParseTargetKeepsWhatTheClientSpelled(t *testing.T) {
	tests := []struct {
		in   string
		want target
		ok   bool
	}{
		{"/", target{"/", "/", ""}, true},
		{"/a%20b?x=%3E&y#z", target{"/a%20b?x=%3E&y#z", "/a%20b", "x=%3E&y#z"}, true},
		{"/a?", target{"/a?", "/a", ""}, true},
		{"//a//b", target{"//a//b", "//a//b", ""}, true},
		{"http://host:80/p?q", target{"/p?q", "/p", "q"}, true},
		{"HTTPS://host", target{"/", "/", ""}, true},
		{"http://host?q=/x", target{"/?q=/x", "/", "q=/x"}, true},
		{"http://host#/x", target{"/#/x", "/#/x", ""}, true},
		{"http://host/a@b?c@d", target{"/a@b?c@d", "/a@b", "c@d"}, true},
		{"http://user@host/", target{}, false},
		{"http://user:password@host", target{}, false},
		{"http://@host?x", target{}, false},
		{"http:///x", target{}, false},
		{"http://?x", target{}, false},
		{"/a b", target{}, false},
		{"/?a\tb", target{}, false},
		{"/\r\nX: y", target{}, false},
		{"/\x00", target{}, false},
		{"/\x7f", target{}, false},
		{"*", target{}, false},
		{"host:443", target{}, false},
		{"ftp://host/x", target{}, false},
		{"", target{}, false},
	}
	for _, tt := range tests {
		got, ok := parseTarget(tt.in)
		if got != tt.want || ok != tt.ok {
			t.Errorf("parseTarget(%q) = %+v, %v; want %+v, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func TestDecodePathRefusesEverySpellingOfAnEscape(t *testing.T) {
	bad := []string{
		"", "a", "/%", "/%2", "/%zz", "/a%2fb", "/a%2Fb", "/a%5cb", "/a%5Cb", `/a\b`, "/a%00b", "/a\x00",
		"/..", "/../a", "/a/..", "/a/../b", "/%2e%2e/a", "/.%2e", "/a/%2E./b", "/a/..%2fb",
	}
	for _, raw := range bad {
		if got, ok := decodePath(raw); ok {
			t.Errorf("decodePath(%q) = %q, want it refused", raw, got)
		}
	}
}

func TestDecodePathDecodes(t *testing.T) {
	for raw, want := range map[string]string{
		"/":                "/",
		"/test%2Ehtml":     "/test.html",
		"/a/./b":           "/a/./b",
		"/a/...":           "/a/...",
		"/a..b/..c/d..":    "/a..b/..c/d..",
		"/%C8%BA%ff\xfe":   "/\u023a\xff\xfe",
		"/a+b%20c%25%3f":   "/a+b c%?",
		"//double//slash/": "//double//slash/",
	} {
		if got, ok := decodePath(raw); !ok || got != want {
			t.Errorf("decodePath(%q) = %q, %v; want %q", raw, got, ok, want)
		}
	}
}

func TestHiddenPaths(t *testing.T) {
	for p, want := range map[string]bool{
		"/":                     false,
		"/a.b/c.d":              false,
		"/./a":                  false,
		"/a/.":                  false,
		"/.env":                 true,
		"/a/.git/config":        true,
		"//.env":                true,
		"/./.env":               true,
		"/...":                  true,
		"/.well-known/acme":     false,
		"/.well-known":          false,
		"/.well-known/.env":     true,
		"/.well-knownx/a":       true,
		"/a/.well-known/x":      true,
		"/.well-known/a/b/.git": true,
	} {
		if got := hasHidden(p); got != want {
			t.Errorf("hasHidden(%q) = %v, want %v", p, got, want)
		}
	}
}

func TestFileNameIsClean(t *testing.T) {
	for p, want := range map[string]string{
		"/":            ".",
		"//":           ".",
		"/./.":         ".",
		"/a":           "a",
		"/a/":          "a",
		"//a//b/./c/.": "a/b/c",
		"/.env":        ".env",
		"/a/.b":        "a/.b",
		"/./a":         "a",
	} {
		if got := fileName(p); got != want {
			t.Errorf("fileName(%q) = %q, want %q", p, got, want)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{
		"/", "/a?b=c", "*", "x:80", "http://x", "HTTPS://x:1/y?z", "http://a@x/", "http:///", "//x/y", "/a b", "/\r\n", "http://x?/@", "http://x#@/", "ftp://x/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := parseTarget(s)
		if !ok {
			return
		}
		if !strings.HasPrefix(got.path, "/") || !strings.HasSuffix(s, strings.TrimPrefix(got.uri, "/")) {
			t.Errorf("parseTarget(%q) = %+v: not the end of what was sent", s, got)
		}
		if uri := got.path + "?" + got.query; uri != got.uri && got.path != got.uri {
			t.Errorf("parseTarget(%q) = %+v: path and query are not the whole", s, got)
		}
		if strings.ContainsAny(got.uri, " \r\n\t\x00") {
			t.Errorf("parseTarget(%q) = %+v: would end a line", s, got)
		}
	})
}

func FuzzDecodePath(f *testing.F) {
	for _, seed := range []string{
		"/", "/a/b.php/c", "/%2e%2e/x", "/.%2e/x", "/%252e%252e/", "/a%2f..%2fb", `/\..\x`, "/%00", "/%", "//../",
		"/a/./..", "/%c0%ae%c0%ae/", "/...", "/a/..;/b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		p, ok := decodePath(raw)
		if !ok {
			return
		}
		if strings.ContainsAny(p, "\x00\\") {
			t.Errorf("decodePath(%q) = %q: holds a NUL or a backslash", raw, p)
		}
		for segment := range strings.SplitSeq(p, "/") {
			if segment == ".." {
				t.Errorf("decodePath(%q) = %q: holds a .. segment", raw, p)
			}
		}
		if name := fileName(p); !filepath.IsLocal(name) || filepath.Clean(name) != name {
			t.Errorf("fileName(%q) = %q: not a clean local name", p, name)
		}
	})
}
