package server

import (
	"cmp"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxListed bounds the entries of a listing.
const maxListed = 10_000

// A listing is a directory without an index file.
type listing struct {
	Path    string
	Up      bool // it is not the root
	Entries []listed
	More    bool // some are left out
}

// A listed is one entry of a listing.
type listed struct {
	Name, Link, Size, Modified string

	dir bool
}

// The names are for people who use a screen reader, too: one table with headings.
var listingPage = template.Must(template.New("listing").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Index of {{.Path}}</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem; color-scheme: light dark }
th, td { text-align: left; padding: 0 2rem 0 0; font-weight: normal }
thead th { font-weight: bold }
td { font-variant-numeric: tabular-nums }
</style>
</head>
<body>
<main>
<h1>Index of {{.Path}}</h1>
{{if .Up}}<p><a href="../">Parent directory</a></p>
{{end}}<table>
<thead><tr><th scope="col">Name</th><th scope="col">Size</th><th scope="col">Last modified (UTC)</th></tr></thead>
<tbody>
{{range .Entries}}<tr><th scope="row"><a href="{{.Link}}">{{.Name}}</a></th><td>{{.Size}}</td><td>{{.Modified}}</td></tr>
{{end}}</tbody>
</table>
{{if .More}}<p>There are more.</p>
{{end}}</main>
</body>
</html>
`))

// sendListing lists the directory that the route names.
func (s *site) sendListing(w *response, r *http.Request, v *visit) handler {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header()["Allow"] = allowFile
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
		} else {
			w.fail(http.StatusMethodNotAllowed)
		}
		return handlerStatic
	}
	l, err := s.list(v.tree, v.route.listing)
	if err != nil {
		s.failFile(w, v, err)
		return handlerStatic
	}
	w.Header()["Content-Type"] = typeHTML
	w.WriteHeader(http.StatusOK)
	_ = listingPage.Execute(w, l) // a client that is gone misses it
	return handlerStatic
}

var typeHTML = []string{"text/html; charset=utf-8"}

// list reads a directory below the root. What a client could not fetch is left out.
func (s *site) list(t *tree, dir string) (*listing, error) {
	opened, err := t.dir.Open(dir)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	entries, err := opened.ReadDir(maxListed + 1)
	if err != nil && len(entries) == 0 && !errors.Is(err, io.EOF) {
		return nil, err
	}
	l := &listing{Path: "/", Up: dir != "."}
	if l.Up {
		l.Path = "/" + dir + "/"
	}
	if len(entries) > maxListed {
		entries, l.More = entries[:maxListed], true
	}
	for _, e := range entries {
		if one, ok := s.listOne(t, dir, e); ok {
			l.Entries = append(l.Entries, one)
		}
	}
	slices.SortFunc(l.Entries, func(a, b listed) int {
		if a.dir != b.dir {
			return map[bool]int{true: -1, false: 1}[a.dir]
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return l, nil
}

func (s *site) listOne(t *tree, dir string, e fs.DirEntry) (listed, bool) {
	name := e.Name()
	if s.routes.hidden != 0 && strings.HasPrefix(name, ".") || strings.ContainsAny(name, "\\\x00") {
		return listed{}, false
	}
	below := fileName(dir + "/" + name)
	f := t.look(below)
	if f.kind != aFile && f.kind != directory || t.php.conceal(name) && !t.php.fit(name) {
		return listed{}, false
	}
	info, err := t.dir.Stat(f.name)
	if err != nil || isFile(info, t.secret) {
		return listed{}, false
	}
	one := listed{Name: name, Link: "./" + url.PathEscape(name), Modified: info.ModTime().UTC().Format(time.DateTime)}
	if one.dir = info.IsDir(); one.dir {
		one.Name += "/"
		one.Link += "/"
	} else {
		one.Size = roundSize(info.Size())
	}
	return one, true
}

// roundSize writes a number of bytes for people.
func roundSize(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, unit := float64(n), -1
	for f >= 1024 && unit < 3 {
		f /= 1024
		unit++
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " " + [...]string{"KiB", "MiB", "GiB", "TiB"}[unit]
}
