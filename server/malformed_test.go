package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestMalformedRequestsOfNewerVersions(t *testing.T) {
	for name, spoil := range map[string]func(r *http.Request){
		"":                       func(*http.Request) {},
		"the same host":          func(r *http.Request) { r.Header.Set("Host", "EXAMPLE.com") },
		"a length":               func(r *http.Request) { r.ContentLength = 4; r.Header.Set("Content-Length", "4") },
		"a length, no body yet":  func(r *http.Request) { r.ContentLength = -1; r.Header.Set("Content-Length", "4") },
		"an odd method":          func(r *http.Request) { r.Method = "M-SEARCH" },
		"bad: another host":      func(r *http.Request) { r.Header.Set("Host", "other") },
		"bad: two hosts":         func(r *http.Request) { r.Header["Host"] = []string{"example.com", "example.com"} },
		"bad: no method":         func(r *http.Request) { r.Method = "" },
		"bad: a request line":    func(r *http.Request) { r.Method = "GET / HTTP/1.1" },
		"bad: a method in UTF-8": func(r *http.Request) { r.Method = "G\u00cbT" },
		"bad: no body":           func(r *http.Request) { r.Header.Set("Content-Length", "4") },
		"bad: below 0":           func(r *http.Request) { r.Header.Set("Content-Length", "-1") },
		"bad: a sign":            func(r *http.Request) { r.Header.Set("Content-Length", "+0") },
		"bad: two lengths":       func(r *http.Request) { r.Header["Content-Length"] = []string{"0", "0"} },
	} {
		r := httptest.NewRequest("GET", "/", nil)
		spoil(r)
		if got := isMalformed(r); got != strings.HasPrefix(name, "bad") {
			t.Errorf("%q: malformed: %v", name, got)
		}
	}
}

func FuzzIsToken(f *testing.F) {
	for _, seed := range []string{"GET", "", "M-SEARCH", "G T", "GET\r\nX: y", "\x7f", "\xff", "a(b)", "!#$%&'*+-.^_`|~"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !isToken(s) {
			return
		}
		if s == "" || strings.ContainsAny(s, " \t\r\n\x00:/()<>@,;\\\"[]?={}") || strings.ContainsFunc(s, func(c rune) bool { return c > 0x7e || c <= ' ' }) {
			t.Errorf("%q is taken for a token", s)
		}
	})
}
