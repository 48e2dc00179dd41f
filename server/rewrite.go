package server

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// A pattern fits decoded paths: a path in which one "*" stands for anything, or a
// regular expression for all of it.
type pattern struct {
	prefix, suffix string
	star           bool
	expr           *regexp.Regexp // nil: the above
}

func newPattern(path, expr string) (pattern, error) {
	if expr != "" {
		e, err := regexp.Compile(`^(?:` + expr + `)$`)
		if err != nil {
			return pattern{}, fmt.Errorf("%q is not a regular expression: %w", expr, err)
		}
		return pattern{expr: e}, nil
	}
	var p pattern
	p.prefix, p.suffix, p.star = strings.Cut(path, "*")
	return p, nil
}

// groups is how many parts of a path can be named.
func (p pattern) groups() int {
	switch {
	case p.expr != nil:
		return p.expr.NumSubexp()
	case p.star:
		return 1
	}
	return 0
}

// match returns the parts of a path that fits, the whole of it first.
func (p pattern) match(path string) ([]string, bool) {
	if p.expr != nil {
		parts := p.expr.FindStringSubmatch(path)
		return parts, parts != nil
	}
	if !p.star {
		return []string{path}, path == p.prefix
	}
	if len(path) < len(p.prefix)+len(p.suffix) || !strings.HasPrefix(path, p.prefix) || !strings.HasSuffix(path, p.suffix) {
		return nil, false
	}
	return []string{path, path[len(p.prefix) : len(path)-len(p.suffix)]}, true
}

// matchesItself reports whether what a redirect leads to is redirected again, for
// every path.
func (p pattern) matchesItself(to string) bool {
	if !strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "$uri") {
		return false
	}
	for _, part := range []string{"", "a", "b/c"} {
		path := p.prefix + p.suffix
		if p.star {
			path = p.prefix + part + p.suffix
		}
		path, _ = expand(to, &expansion{parts: []string{path, part}, path: path})
		if _, ok := p.match(path); !ok {
			return false
		}
	}
	return true
}

// An expansion is what the variables of a target stand for.
type expansion struct {
	parts       []string // $1 and so on, behind the whole path
	path        string   // $uri
	query, host string
	escape      func(string) string // for what is put into the path; nil: nothing
}

// expand fills in the variables of a target and returns its path and its query,
// without the "?". In the query, what the client chose is escaped.
func expand(to string, x *expansion) (path, query string) {
	path, query, has := strings.Cut(to, "?")
	escape := x.escape
	if escape == nil {
		escape = func(s string) string { return s }
	}
	path = placeholder.ReplaceAllStringFunc(path, func(name string) string { return escape(x.value(name)) })
	if !has {
		return path, x.query
	}
	query = placeholder.ReplaceAllStringFunc(query, func(name string) string {
		if name == "$query_string" {
			return x.query
		}
		return url.QueryEscape(x.value(name))
	})
	return path, strings.TrimSuffix(query, "&")
}

func (x *expansion) value(name string) string {
	switch name {
	case "$uri":
		return x.path
	case "$host":
		return x.host
	case "$query_string":
		return x.query
	}
	if n, err := strconv.Atoi(name[1:]); err == nil && n < len(x.parts) {
		return x.parts[n]
	}
	return ""
}

// escapePath encodes a decoded path for a Location.
func escapePath(path string) string {
	b := make([]byte, 0, len(path)+8)
	for i := range len(path) {
		c := path[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~!$&'()*+,;=:@/", c) >= 0 {
			b = append(b, c)
			continue
		}
		const digits = "0123456789ABCDEF"
		b = append(b, '%', digits[c>>4], digits[c&15])
	}
	return string(b)
}

// A redirect is a checked RedirectConfig.
type redirect struct {
	pattern
	to     string
	status int
}

// maxHops is how many redirects of our own a client may be sent through.
const maxHops = 10

// redirects are those of a site, in order.
type redirects []redirect

// find returns where a client is sent that asks for path, and the status; or "". A
// redirect that would lead into a circle is none.
func (all redirects) find(path, query, host string) (location string, status int) {
	location, next, status := all.step(path, query, host)
	for range maxHops {
		if next == "" {
			return location, status
		}
		if next == path {
			return "", 0
		}
		_, next, _ = all.step(next, query, host)
	}
	return "", 0
}

// step is one redirect; next is the path that it leads to on this site.
func (all redirects) step(path, query, host string) (location, next string, status int) {
	for i := range all {
		r := &all[i]
		parts, ok := r.match(path)
		if !ok {
			continue
		}
		x := expansion{parts: parts, path: path, query: query, host: host}
		if strings.HasPrefix(r.to, "/") || strings.HasPrefix(r.to, "$uri") {
			next, _ = expand(r.to, &x)
		}
		x.escape = escapePath
		to, withQuery := expand(r.to, &x)
		if next != "" {
			to = "/" + strings.TrimLeft(to, "/") // two slashes would name another host
			next = "/" + strings.TrimLeft(next, "/")
		}
		if withQuery != "" {
			to += "?" + withQuery
		}
		return to, next, r.status
	}
	return "", "", 0
}

func newRedirects(list []RedirectConfig) redirects {
	var all redirects
	for _, c := range list {
		r := redirect{to: c.To, status: c.Status}
		if r.status == 0 {
			r.status = http.StatusFound
		}
		r.pattern, _ = newPattern(c.Path, c.Regexp) // Validate has compiled it
		all = append(all, r)
	}
	return all
}

// rewrites are those of a site, in order.
type rewrites []redirect

// find returns what is served for path: the path and the query; or false for what
// was asked for. The result is never rewritten again.
func (all rewrites) find(path, query string) (string, string, bool) {
	for i := range all {
		r := &all[i]
		if parts, ok := r.match(path); ok {
			path, query = expand(r.to, &expansion{parts: parts, path: path, query: query})
			return path, query, true
		}
	}
	return "", "", false
}

func newRewrites(list []RewriteConfig) rewrites {
	var all rewrites
	for _, c := range list {
		r := redirect{to: c.To}
		r.pattern, _ = newPattern(c.Path, c.Regexp) // Validate has compiled it
		all = append(all, r)
	}
	return all
}
