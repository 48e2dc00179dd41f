package server

import (
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	"ephpm/phpbridge"
)

// errorPages are the pages of a site for errors: URL paths of files or scripts. A nil
// *errorPages has none.
type errorPages struct {
	byStatus  map[int]string
	byClass   [6]string // by the first digit
	intercept bool      // also in place of what scripts print
}

// newErrorPages returns nil when there are none.
func newErrorPages(c ErrorPages, intercept bool) *errorPages {
	if len(c) == 0 {
		return nil
	}
	p := &errorPages{byStatus: map[int]string{}, intercept: intercept}
	for status, page := range c {
		if status[1:] == "xx" {
			p.byClass[status[0]-'0'] = page
		} else {
			n, _ := strconv.Atoi(status) // Validate saw three digits
			p.byStatus[n] = page
		}
	}
	return p
}

// of returns the page for a status, or "".
func (p *errorPages) of(status int) string {
	if p == nil || status < 400 || status > 599 {
		return ""
	}
	if page, ok := p.byStatus[status]; ok {
		return page
	}
	return p.byClass[status/100]
}

// An errorPager answers the errors of one request with pages of its site, at most
// once: a page that cannot be shown has none of its own.
type errorPager struct {
	site  *site
	visit *visit
	now   time.Time
}

// answer answers with the page for a status and reports whether there is one.
func (e *errorPager) answer(w *response, status int) bool {
	w.page = nil
	name := e.site.errorPages.of(status)
	if name == "" {
		return false
	}
	switch f := e.visit.tree.locate(name, e.now); f.kind {
	case aFile:
		return e.sendPage(w, status, f.name)
	case aScript:
		// Who is busy or keeps a client away starts nothing for it.
		if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
			return false
		}
		e.runPage(w, status, f.script)
		return true
	}
	e.site.log.Warn("error page is not there", "site", e.site.name, "status", status, "page", name)
	return false
}

func (e *errorPager) sendPage(w *response, status int, name string) bool {
	t := e.visit.tree
	f, err := t.file(name, e.now)
	if err != nil {
		return false
	}
	var content io.Reader
	if f.content == nil {
		opened, _, err := t.openFile(name)
		if err != nil {
			return false
		}
		defer opened.Close()
		content = opened
	}
	w.dropHeader()
	h := w.Header()
	h["Content-Type"] = f.header.kind
	h["Content-Length"] = f.header.length
	w.WriteHeader(status)
	switch {
	case w.request.Method == http.MethodHead:
	case content == nil:
		_, err = w.Write(f.content)
	default:
		err = w.sendAll(content, f.id.size)
	}
	if err != nil {
		w.cut = true
	}
	return true
}

// runPage runs a script for a status. It is a GET without a body, whatever failed.
func (e *errorPager) runPage(w *response, status int, script *script) {
	w.dropHeader()
	s, v := e.site, e.visit
	r := *w.request
	r.Header = maps.Clone(r.Header)
	for _, name := range []string{"Content-Type", "Content-Length", "Transfer-Encoding"} {
		delete(r.Header, name)
	}
	if r.Method != http.MethodHead {
		r.Method = http.MethodGet
	}
	v.route = route{script: script, query: v.target.query}
	c := cgi{request: &r, id: v.id, target: v.target, route: &v.route, root: v.tree.shown, bodyLen: -1, status: status, user: v.user}
	_, err := s.runner.Serve(r.Context(), &restater{w, status}, &phpbridge.Request{
		ID: v.id, Site: s.name, Class: phpbridge.Page, Script: script.file, Vars: append(c.appendTo(nil), s.vars...), Host: s.host, Store: s.tenant.storeNumber, Timeout: s.timeout,
	})
	w.unlimitWrite()
	switch {
	case err == nil:
	case w.begun():
		w.cut = true
	default:
		s.logRun(v, err, false)
		w.fail(status)
	}
}

// A restater is the ResponseWriter of an error page's script: an answer that is none
// of its own has the status of the error.
type restater struct {
	to     *response
	status int
}

// Header implements http.ResponseWriter.
func (r *restater) Header() http.Header { return r.to.Header() }

// WriteHeader implements http.ResponseWriter.
func (r *restater) WriteHeader(status int) {
	if status == http.StatusOK {
		status = r.status
	}
	r.to.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *restater) Write(p []byte) (int, error) {
	if !r.to.begun() {
		r.to.WriteHeader(r.status)
	}
	return r.to.Write(p)
}

// FlushError is Flush for http.ResponseController.
func (r *restater) FlushError() error {
	if !r.to.begun() {
		r.to.WriteHeader(r.status)
	}
	return r.to.FlushError()
}

// An interceptor is the ResponseWriter of a script whose errors get the pages of the
// site. What it prints with one goes nowhere.
type interceptor struct {
	http.ResponseWriter
	pages  *errorPages
	begun  bool
	status int // the page is for it; 0: the answer is the script's
}

// WriteHeader implements http.ResponseWriter.
func (i *interceptor) WriteHeader(status int) {
	if status >= 200 && !i.begun {
		i.begun = true
		if i.pages.of(status) != "" {
			i.status = status
		}
	}
	if i.status == 0 {
		i.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (i *interceptor) Write(p []byte) (int, error) {
	i.begun = true
	if i.status != 0 {
		return len(p), nil
	}
	return i.ResponseWriter.Write(p)
}

// FlushError is Flush for http.ResponseController.
func (i *interceptor) FlushError() error {
	i.begun = true
	if i.status != 0 {
		return nil
	}
	return http.NewResponseController(i.ResponseWriter).Flush()
}
