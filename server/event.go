package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"ephpm/phpbridge"
	"ephpm/websocket"
)

// An event is one run of a site's WebSocket script.
type event struct {
	name string // eventConnect, eventMessage or eventDisconnect
	vars phpbridge.Vars
	body []byte

	waited time.Duration // before dispatch
}

// dispatch runs an event and counts it. The script's output goes to w.
func (s *sockets) dispatch(ctx context.Context, c *socket, e event, w http.ResponseWriter) (fatal bool, err error) {
	counts := s.metrics.event[e.name]
	counts.given.Inc()
	posts := s.posts(c, e.name)
	defer c.posts.Store(nil)
	result, err := s.inTurn(ctx, e.name, w, &phpbridge.Request{
		ID:      c.requestID,
		Site:    s.site,
		Method:  e.name,
		Class:   phpbridge.Event,
		Script:  c.script,
		Vars:    e.vars,
		Body:    bytes.NewReader(e.body),
		BodyLen: int64(len(e.body)),
		Host:    s.host(c.id),
		Store:   s.storeNumber,
		Posts:   posts,
		Timeout: s.requestTimeout,
		Wait:    waitFor(e.name),
	})
	if v, ok := w.(*verdict); ok {
		v.client.trail.queued, v.client.trail.ran = result.Queued, result.Ran
	}
	if err != nil {
		s.failed(ctx, c, e.name, failure(ctx, err), slog.Any("err", err))
		return false, err
	}
	counts.ran.Observe(result.Ran.Seconds())
	queued := e.waited + result.Queued
	counts.queued.Observe(queued.Seconds())
	if e.name != eventMessage && s.log.Enabled(ctx, slog.LevelDebug) {
		s.log.Debug("event ran", "site", s.site, "event", e.name, "connection", c.id.String(), "queued", queued, "ran", result.Ran)
	}
	return result.Fatal, nil
}

// posts returns how the script of an event sends to its socket. Before and after
// the socket is open it waits for each message to be taken.
func (s *sockets) posts(c *socket, name string) *phpbridge.Posts {
	if name != eventMessage {
		return nil
	}
	p := phpbridge.NewPosts(s.maxMessage)
	c.posts.Store(p)
	if c.conn.Closing() { // and may have told nobody
		p.Stop()
	}
	return p
}

// waitFor is how long an event may wait for a worker, zero for the pool's own
// limit. A disconnect must not be lost, so it waits as long as it takes.
func waitFor(name string) time.Duration {
	if name == eventDisconnect {
		return forEver
	}
	return 0
}

// forEver is longer than any server runs.
const forEver = 100 * 365 * 24 * time.Hour

// inTurn gives a request to the pool when it is its turn. Only disconnect waits
// for that as long as it takes: it must not be lost.
func (s *sockets) inTurn(ctx context.Context, name string, w http.ResponseWriter, r *phpbridge.Request) (phpbridge.Result, error) {
	var waited time.Duration
	select {
	case s.turns <- struct{}{}:
	default:
		start := time.Now()
		if err := s.waitForTurn(ctx, name); err != nil {
			return phpbridge.Result{}, err
		}
		waited = time.Since(start)
	}
	defer func() { <-s.turns }()
	result, err := s.php.Serve(ctx, w, r)
	result.Queued += waited
	return result, err
}

func (s *sockets) waitForTurn(ctx context.Context, name string) error {
	n := &s.metrics.event[name].waiting
	n.Add(1)
	defer n.Add(-1)
	var over <-chan time.Time
	if name != eventDisconnect {
		over = time.After(s.eventWait)
	}
	select {
	case s.turns <- struct{}{}:
		return nil
	case <-over:
		return phpbridge.ErrBusy
	case <-ctx.Done():
		return ctx.Err()
	}
}

// failed counts and logs an event that did not run to its end.
func (s *sockets) failed(ctx context.Context, c *socket, name, reason string, detail slog.Attr) {
	s.metrics.eventFailures.WithLabelValues(name, reason).Inc()
	level := slog.LevelWarn
	if reason == failedCanceled {
		level = slog.LevelDebug
	}
	s.log.LogAttrs(ctx, level, "event failed", slog.String("site", s.site), slog.String("event", name),
		slog.String("connection", c.id.String()), slog.String("reason", reason), detail)
}

func failure(ctx context.Context, err error) string {
	var crash *phpbridge.CrashError
	switch {
	case errors.Is(err, phpbridge.ErrTimeout):
		return failedTimeout
	case errors.Is(err, phpbridge.ErrBusy):
		return failedBusy
	case errors.As(err, &crash):
		return failedCrash
	case ctx.Err() != nil, errors.Is(err, phpbridge.ErrClosed):
		return failedCanceled
	}
	return failedOther
}

// message runs the message event. It never fails: what it cannot run closes the
// socket, and a script that breaks costs only its event.
func (s *sockets) message(ctx context.Context, c *socket, m websocket.Message) error {
	err := s.runMessage(ctx, c, m)
	switch {
	case errors.Is(err, phpbridge.ErrTimeout):
		c.conn.Close(websocket.CodeInternal, "", websocket.CauseTimeout)
	case errors.Is(err, phpbridge.ErrBusy):
		c.conn.Close(websocket.CodeTryAgain, "", websocket.CauseServer)
	case errors.Is(err, phpbridge.ErrClosed):
		c.conn.Close(websocket.CodeGoingAway, "", websocket.CauseShutdown)
	}
	return nil
}

func (s *sockets) runMessage(ctx context.Context, c *socket, m websocket.Message) error {
	opcode, contentType := "text", "text/plain; charset=utf-8"
	if m.Binary {
		opcode, contentType = "binary", "application/octet-stream"
	}
	vars := c.event(eventMessage)
	vars = vars.Add("WS_OPCODE", opcode)
	vars = vars.Add("CONTENT_TYPE", contentType)

	err := s.dispatchSilently(ctx, c, event{name: eventMessage, vars: vars, body: m.Data})
	if errors.Is(err, phpbridge.ErrTimeout) {
		s.metrics.eventTimeouts.Inc()
	}
	return err
}

// disconnect runs the disconnect event of a connection that ended at a time. The
// client is gone, so ctx is the server's.
func (s *sockets) disconnect(ctx context.Context, c *socket, closed websocket.Closed, ended time.Time) {
	vars := c.event(eventDisconnect)
	vars = vars.Add("WS_CLOSE_CODE", strconv.Itoa(closed.Code))
	vars = vars.Add("WS_CLOSE_REASON", closed.Reason)
	vars = vars.Add("WS_CLOSE_CAUSE", string(closed.Cause))
	vars = vars.Add("WS_DURATION_MS", strconv.FormatInt(closed.Duration.Milliseconds(), 10))
	waited := time.Since(ended)
	_ = s.dispatchSilently(ctx, c, event{name: eventDisconnect, vars: vars, waited: waited}) // counted and logged, and there is nobody to tell
}

// errFatal is that of an event whose script has failed. It was counted and logged.
var errFatal = errors.New("fatal error, or a status of 500 and above")

// dispatchSilently runs an event whose output nobody gets.
func (s *sockets) dispatchSilently(ctx context.Context, c *socket, e event) error {
	w := &silence{header: http.Header{}}
	fatal, err := s.dispatch(ctx, c, e, w)
	if err != nil {
		return err
	}
	if fatal || w.status >= http.StatusInternalServerError {
		s.failed(ctx, c, e.name, failedFatal, slog.Int("status", w.status))
		return errFatal
	}
	return nil
}

// silence is a ResponseWriter that keeps only the status.
type silence struct {
	header http.Header
	status int
}

func (w *silence) Header() http.Header         { return w.header }
func (w *silence) Write(p []byte) (int, error) { return len(p), nil }
func (w *silence) Flush()                      {}
func (w *silence) WriteHeader(status int) {
	if w.status < http.StatusOK {
		w.status = status
	}
}

// A verdict is the ResponseWriter of a connect event. A 2xx stays here and
// accepts the client; anything else goes to the client as the script said it.
type verdict struct {
	client *response
	header http.Header
	status int // 0 until the script has decided
}

func (v *verdict) Header() http.Header { return v.header }

func (v *verdict) accepted() bool { return v.status == 0 || v.status/100 == 2 }

// WriteHeader decides. Informational responses are not for a handshake.
func (v *verdict) WriteHeader(status int) {
	if v.status != 0 || status < http.StatusOK {
		return
	}
	v.status = status
	if v.accepted() {
		return
	}
	h := v.client.Header()
	for name, values := range v.header {
		h[name] = slices.Clone(values)
	}
	v.client.WriteHeader(status)
}

func (v *verdict) Write(p []byte) (int, error) {
	v.WriteHeader(http.StatusOK)
	if v.accepted() {
		return len(p), nil
	}
	return v.client.Write(p)
}

// Flush passes what was written to the client that is refused.
func (v *verdict) Flush() {
	v.WriteHeader(http.StatusOK)
	if !v.accepted() {
		v.client.Flush()
	}
}

// notReplayed are the variables that belong to the upgrade request alone.
var notReplayed = map[string]bool{
	"HTTP_CONNECTION": true, "HTTP_UPGRADE": true, "HTTP_SEC_WEBSOCKET_KEY": true,
	"HTTP_SEC_WEBSOCKET_VERSION": true, "HTTP_SEC_WEBSOCKET_EXTENSIONS": true,
	"HTTP_CONTENT_LENGTH": true, "HTTP_CONTENT_TYPE": true, "HTTP_TRANSFER_ENCODING": true,
	"CONTENT_LENGTH": true, "CONTENT_TYPE": true,
	"REQUEST_TIME": true, "REQUEST_TIME_FLOAT": true,
}

// eventVars returns the variables of the connect event and those that every
// later event repeats. Later events extend the second, whose capacity is its
// length, so each gets a copy.
func eventVars(upgrade phpbridge.Vars, id string, same bool) (connect, replayed phpbridge.Vars) {
	origin := "0"
	if same {
		origin = "1"
	}
	common := func(v phpbridge.Vars) phpbridge.Vars {
		v = v.Add("WS_CONNECTION_ID", id)
		return v.Add("WS_SAME_ORIGIN", origin)
	}
	connect = common(append(phpbridge.Vars(nil), upgrade...))
	connect = connect.Add("WS_EVENT", eventConnect)
	for name, value := range upgrade.All() {
		if !notReplayed[name] {
			replayed = replayed.Add(name, value)
		}
	}
	return connect, append(phpbridge.Vars(nil), common(replayed)...)
}

// event returns the variables of a later event, to which more can be added.
func (c *socket) event(name string) phpbridge.Vars {
	v := make(phpbridge.Vars, len(c.vars), len(c.vars)+256)
	copy(v, c.vars)
	return v.Add("WS_EVENT", name)
}

// budget is what is left of the time that an event may wait for slow clients.
// One wait gets half of it, so that the first stuck client does not use up what
// healthy ones need.
type budget struct{ left time.Duration }

// wait runs f with the time it may take.
func (b *budget) wait(ctx context.Context, f func(context.Context) bool) bool {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, b.left/2)
	defer cancel()
	ok := f(ctx)
	b.left = max(0, b.left-time.Since(start))
	return ok
}
