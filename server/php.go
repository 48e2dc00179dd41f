package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"ephpm/phpbridge"
)

// A runner runs scripts: the pool, or a fake in tests.
type runner interface {
	Serve(ctx context.Context, w http.ResponseWriter, r *phpbridge.Request) (phpbridge.Result, error)
}

// A run is what a script's run needs, reused by request after request.
type run struct {
	request  phpbridge.Request
	vars     phpbridge.Vars
	body     body
	handover handover
}

var runs = sync.Pool{New: func() any { return new(run) }}

// allowScript is Allow for scripts. They get any other method but TRACE as well.
var allowScript = []string{"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"}

// maxKeptVars bounds the buffer of variables that a run keeps for the next one.
const maxKeptVars = 64 << 10

// runScript reads the body, runs the route's script and answers with what it
// prints.
func (s *site) runScript(w *response, r *http.Request, v *visit) handler {
	if r.Method == http.MethodTrace { // PHP would be asked to show cookies and passwords to who may not see them
		w.Header()["Allow"] = allowScript
		w.fail(http.StatusMethodNotAllowed)
		return handlerError
	}
	if s.overRate(w) {
		return handlerError
	}
	run := runs.Get().(*run)
	defer run.release()
	if err := run.body.read(w, r, s.maxBody, s.stall, s.minRate); err != nil {
		return s.failBody(w, r, v, err)
	}
	w.trail.body = max(0, run.body.length)
	c := cgi{request: r, id: v.id, target: v.target, route: &v.route, root: v.tree.shown, bodyLen: run.body.length, user: v.user}
	run.vars = append(c.appendTo(run.vars[:0]), s.vars...)
	run.request = phpbridge.Request{
		ID:      v.id,
		Site:    s.name,
		Method:  r.Method,
		URI:     v.target.uri,
		Class:   phpbridge.Page,
		Script:  v.route.script.file,
		Vars:    run.vars,
		Body:    run.body.reader(),
		BodyLen: max(0, run.body.length),
		Host:    s.host,
		Store:   s.tenant.storeNumber,
		Timeout: s.timeout,
	}
	w.stall = s.stall // a worker waits
	var to http.ResponseWriter = w
	if len(s.sendRoots) > 0 {
		run.handover = handover{to: w}
		to = &run.handover
	}
	var caught *interceptor
	if s.errorPages != nil && s.errorPages.intercept {
		caught = &interceptor{ResponseWriter: to, pages: s.errorPages}
		to = caught
	}
	result, err := s.runner.Serve(r.Context(), to, &run.request)
	w.unlimitWrite()
	w.trail.queued, w.trail.ran = result.Queued, result.Ran
	printed := w.taken
	if err != nil {
		s.failRun(w, r, v, err)
	}
	s.metrics.scriptRan(result, printed, err == nil && w.status < 500)
	if err == nil && run.handover.by != "" {
		s.sendNamed(w, r, v, &run.handover)
	}
	if err == nil && caught != nil && caught.status != 0 {
		w.fail(caught.status)
	}
	return handlerPHP
}

// release makes a run ready for the next request.
func (r *run) release() {
	r.body.close()
	r.request, r.handover = phpbridge.Request{}, handover{}
	if cap(r.vars) > maxKeptVars {
		r.vars = nil
	}
	runs.Put(r)
}

// failBody answers a request whose body did not arrive.
func (s *site) failBody(w *response, r *http.Request, v *visit, err error) handler {
	if hasConnection(r) {
		w.Header().Set("Connection", "close")
	}
	switch {
	case errors.Is(err, errLeftHalf):
		w.cut = true
	case errors.Is(err, errTooLong):
		s.metrics.bodyOverflow()
		w.fail(http.StatusRequestEntityTooLarge)
	case errors.Is(err, errStalled):
		s.metrics.timeout(stageBody)
		w.fail(http.StatusRequestTimeout)
	case errors.Is(err, errMangled):
		w.fail(http.StatusBadRequest)
	default:
		s.logError(v, err)
		w.fail(http.StatusInternalServerError)
	}
	return handlerError
}

// failRun answers a request whose script did not. What has begun is cut, so that
// nobody takes a part for the whole.
func (s *site) failRun(w *response, r *http.Request, v *visit, err error) {
	if w.lost || r.Context().Err() != nil {
		w.cut = true // nobody is there
		return
	}
	status := statusOf(err)
	if status == http.StatusGatewayTimeout {
		s.metrics.timeout(stageRequest)
	}
	s.logRun(v, err, w.begun())
	if w.begun() {
		w.cut = true
		return
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.fail(status)
}

// statusOf is the answer for an error of Serve.
func statusOf(err error) int {
	var crash *phpbridge.CrashError
	switch {
	case errors.Is(err, phpbridge.ErrBusy), errors.Is(err, phpbridge.ErrClosed):
		return http.StatusServiceUnavailable
	case errors.Is(err, phpbridge.ErrTimeout):
		return http.StatusGatewayTimeout
	case errors.Is(err, phpbridge.ErrTooLarge):
		return http.StatusRequestHeaderFieldsTooLarge
	case errors.As(err, &crash):
		return http.StatusBadGateway
	}
	return http.StatusInternalServerError
}

// phpSettings are the ini settings that follow from the configuration and the
// machine; ini_overrides comes last and beats them. One limit rules request bodies:
// PHP's own, which would drop a form in silence, are set to max_body_size (0 is "no
// limit" for both).
func phpSettings(c Config, have machine) []phpbridge.INI {
	var ini []phpbridge.INI
	set := func(name string, value int64) {
		ini = append(ini, phpbridge.INI{Name: name, Value: strconv.FormatInt(value, 10)})
	}
	if c.PHP.MemoryLimit != "" {
		ini = append(ini, phpbridge.INI{Name: "memory_limit", Value: c.PHP.MemoryLimit})
	}
	set("max_execution_time", int64(time.Duration(c.PHP.MaxExecutionTime)/time.Second))
	set("post_max_size", int64(c.Server.Request.MaxBodySize))
	set("upload_max_filesize", int64(c.Server.Request.MaxBodySize))

	cache := have.opcache()
	set("opcache.memory_consumption", cache.memory>>20)
	if !slices.ContainsFunc(c.PHP.INIOverrides, func(o INI) bool { return o.Name == "opcache.memory_consumption" }) {
		set("opcache.interned_strings_buffer", cache.strings>>20) // a part of the memory: PHP does not start without room for it
	}
	set("opcache.max_accelerated_files", cache.files)
	if every := c.PHP.OPcacheRevalidate; every == Never {
		set("opcache.validate_timestamps", 0)
	} else {
		set("opcache.validate_timestamps", 1)
		set("opcache.revalidate_freq", int64(time.Duration(every)/time.Second))
	}
	for _, o := range c.PHP.INIOverrides {
		ini = append(ini, phpbridge.INI(o))
	}
	return ini
}
