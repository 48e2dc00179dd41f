package server

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// A pathGlob fits a path: without "*" and "?" it is a path with all below it, else a
// glob, in which "/dir/*" is /dir, too.
type pathGlob string

func (g pathGlob) fits(path string) bool {
	glob := string(g)
	if !strings.ContainsAny(glob, "*?") {
		glob = strings.TrimSuffix(glob, "/")
		return strings.HasPrefix(path, glob) && (len(path) == len(glob) || path[len(glob)] == '/')
	}
	if dir, ok := strings.CutSuffix(glob, "/*"); ok && dir == path {
		return true
	}
	return matchGlob(glob, path)
}

// fitsAny reports whether a path, or the script that it may begin with, fits one of
// the globs. The path is cleaned.
func fitsAny(globs []pathGlob, path string, php extensions) bool {
	for _, g := range globs {
		if g.fits(path) {
			return true
		}
		for end := php.end(path, 0); end > 0; end = php.end(path, end) {
			if g.fits(path[:end]) {
				return true
			}
		}
	}
	return false
}

// cleanPath is a decoded path without empty and "." segments, as rules see it.
func cleanPath(path string) string {
	name := fileName(path)
	switch {
	case name == ".":
		return "/"
	case isDirectoryPath(path):
		return "/" + name + "/"
	}
	return "/" + name
}

// rules say what is refused, redirected and rewritten on a site before anything is
// looked up. They never change.
type rules struct {
	scripts   extensions
	blocked   []pathGlob
	php       []pathGlob // the only scripts that are run; empty: all
	redirects redirects
	rewrites  rewrites
	access    []access
	auth      []*auth
}

// An access is a checked AccessConfig.
type access struct {
	path        []pathGlob
	allow, deny []netip.Prefix
}

// newRules returns nil when there are none.
func newRules(c Config, with *shared) *rules {
	r := &rules{
		scripts:   c.Server.PHPExtensions,
		blocked:   globs(c.Server.Security.BlockedPaths),
		php:       globs(c.Server.Security.AllowedPHPPaths),
		redirects: newRedirects(c.Redirects),
		rewrites:  newRewrites(c.Rewrites),
	}
	for _, a := range c.Access {
		r.access = append(r.access, access{globs([]string{a.Path}), prefixes(a.Allow), prefixes(a.Deny)})
	}
	for _, a := range c.Auth {
		r.auth = append(r.auth, newAuth(a, with.passwords))
	}
	if len(r.blocked)+len(r.php)+len(r.redirects)+len(r.rewrites)+len(r.access)+len(r.auth) == 0 {
		return nil
	}
	return r
}

func globs(list []string) []pathGlob {
	var all []pathGlob
	for _, text := range list {
		all = append(all, pathGlob(text))
	}
	return all
}

// apply answers a request that a rule answers, and reports whether it did. It may
// change what the visit looks for.
func (r *rules) apply(s *site, w *response, q *http.Request, v *visit, now time.Time) bool {
	path := cleanPath(v.path)
	if !r.open(w, q, path) {
		return true
	}
	host, _ := splitHostPort(q.Host)
	if location, status := r.redirects.find(v.path, v.target.query, host); location != "" {
		w.Header().Set("Location", location)
		w.fail(status)
		return true
	}
	if !r.known(s, w, q, v, path, now) {
		return true
	}
	to, query, ok := r.rewrites.find(v.path, v.target.query)
	if !ok {
		return false
	}
	if strings.ContainsAny(to, "\\\x00") || hasDotDot(to) || !strings.HasPrefix(to, "/") {
		w.fail(http.StatusBadRequest)
		return true
	}
	v.path, v.target.query, v.rewritten = to, query, true
	if path = cleanPath(to); s.routes.hidden != 0 && hasHidden(to) {
		w.fail(s.routes.hidden)
		return true
	}
	return !r.open(w, q, path) || !r.known(s, w, q, v, path, now)
}

// open refuses what is blocked and whom no address list lets in.
func (r *rules) open(w *response, q *http.Request, path string) bool {
	if fitsAny(r.blocked, path, r.scripts) || !r.admits(q, path) {
		w.fail(http.StatusForbidden)
		return false
	}
	return true
}

func (r *rules) admits(q *http.Request, path string) bool {
	for i := range r.access {
		a := &r.access[i]
		if !fitsAny(a.path, path, r.scripts) {
			continue
		}
		in := func(list []netip.Prefix) bool {
			return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(peerOf(q).ip) })
		}
		if in(a.deny) || len(a.allow) > 0 && !in(a.allow) {
			return false
		}
	}
	return true
}

// known asks for a name and a password where the path wants them.
func (r *rules) known(s *site, w *response, q *http.Request, v *visit, path string, now time.Time) bool {
	for _, a := range r.auth {
		if fitsAny(a.path, path, r.scripts) {
			return a.check(s, w, q, v, now)
		}
	}
	return true
}

// applyRoute is apply for what the path has led to, such as the index file of a
// directory: who may not ask for it gets it by no other path.
func (r *rules) applyRoute(s *site, w *response, q *http.Request, v *visit, now time.Time) bool {
	path := "/" + v.route.file
	switch script := v.route.script; {
	case script != nil:
		if path = script.name; len(r.php) > 0 && !fitsAny(r.php, path, r.scripts) {
			w.fail(http.StatusForbidden)
			return true
		}
	case v.route.file == "":
		return false
	}
	return !r.open(w, q, path) || !r.known(s, w, q, v, path, now)
}
