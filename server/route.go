package server

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A route is what a request path leads to. One of status, script, file and listing is
// set.
type route struct {
	status int // answer this

	// location is set for a directory that was asked for without its slash: a
	// client that can be redirected is, so that relative links work.
	location string

	script   *script // run this
	pathInfo string
	query    string // QUERY_STRING

	file    string // send this; a name below the root
	known   *file  // what is known of it; may be nil
	listing string // list this directory below the root
}

// A step is one entry of the fallback list.
type step struct {
	status   int    // of "=404"
	path     string // with "$uri"; without the slash at the end of a directory entry
	dir      bool   // the entry ended in a slash: a directory with an index
	hasQuery bool
	query    string // with "$uri" and "$query_string"
}

// parseFallback takes a checked fallback list apart.
func parseFallback(entries []string) []step {
	steps := make([]step, 0, len(entries))
	for _, entry := range entries {
		var s step
		if code, ok := strings.CutPrefix(entry, "="); ok {
			s.status, _ = strconv.Atoi(code) // Validate saw three digits
		} else {
			s.path, s.query, s.hasQuery = strings.Cut(entry, "?")
			if s.path != "/" {
				s.path, s.dir = strings.CutSuffix(s.path, "/")
			}
		}
		steps = append(steps, s)
	}
	return steps
}

// routes is how a site finds a route: its fallback list and what belongs to it.
type routes struct {
	fallback []step
	index    []string
	listings bool // a directory without an index is listed
	hidden   int  // the status of a hidden path; 0 when there are none
}

// find walks the fallback list for the decoded path until an entry names
// something that exists. An entry without a query keeps the client's.
func (r *routes) find(t *tree, u target, path string, now time.Time) route {
	own := t.locate(path, now)
	for i := range r.fallback {
		s := &r.fallback[i]
		if s.status != 0 {
			return route{status: s.status}
		}
		f := own
		if s.path != "$uri" {
			f = t.locate(strings.ReplaceAll(s.path, "$uri", path), now)
		}
		location := ""
		if f.kind == directory && (s.dir || s.path != "$uri") {
			dir := f.name
			f = r.indexOf(t, dir, now)
			if s.path == "$uri" && !isDirectoryPath(path) {
				location = u.withSlash()
			}
			if f.kind == nothing && r.listings && s.path == "$uri" {
				return route{listing: dir, location: location}
			}
		} else if s.dir {
			f.kind = nothing
		}
		switch f.kind {
		case refused:
			return route{status: 403}
		case aSource:
			return route{status: 404}
		case aFile:
			return route{file: f.name, known: f.file, location: location}
		case aScript:
			return route{script: f.script, pathInfo: f.pathInfo, query: s.queryFor(u, path), location: location}
		}
	}
	return route{status: 404}
}

// indexOf finds the index file of a directory below the root.
func (r *routes) indexOf(t *tree, dir string, now time.Time) found {
	for _, name := range r.index {
		if dir != "." {
			name = dir + "/" + name
		}
		if f := t.locate("/"+name, now); f.kind == aFile || f.kind == aScript {
			return f
		}
	}
	return found{}
}

// queryFor returns the query string behind a step. In it "$uri" is escaped: the
// client chose it and must not add parameters.
func (s *step) queryFor(u target, path string) string {
	if !s.hasQuery || s.query == "$query_string" {
		return u.query
	}
	q := s.query
	if strings.Contains(q, "$uri") {
		q = strings.ReplaceAll(q, "$uri", url.QueryEscape(path))
	}
	q = strings.ReplaceAll(q, "$query_string", u.query)
	return strings.TrimSuffix(q, "&")
}

// withSlash is the target with a slash behind its path, as a Location. Two
// slashes at its start would name another host.
func (u target) withSlash() string {
	loc := "/" + strings.TrimLeft(u.path, "/") + "/"
	loc = strings.ReplaceAll(loc, "#", "%23")
	if u.query != "" {
		loc += "?" + u.query
	}
	return loc
}
