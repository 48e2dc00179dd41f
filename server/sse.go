package server

import (
	"crypto/rand"
	"encoding/binary"
	"net/http"
	"strconv"
	"sync"
	"time"

	"ephpm/eventstream"
	"ephpm/phpbridge"
	"ephpm/websocket"
)

// streamOptions is what the event streams of a site are made of.
type streamOptions struct {
	// conn bounds each. Its Era and Stats are set by newEventStreams.
	conn eventstream.Options
	// history is how many messages the channels that they join remember at least, for
	// clients that come back.
	history int
	// pollWait is how long a poll waits for a frame.
	pollWait time.Duration
}

// eventStreams is what the event streams of one site share.
type eventStreams struct {
	streamOptions
	keys    streamKeys
	metrics *streamMetrics
}

func newEventStreams(o *streamOptions, m *socketMetrics) *eventStreams {
	s := &eventStreams{streamOptions: *o, keys: newStreamKeys(), metrics: m.streams}
	var era [4]byte
	rand.Read(era[:]) // never fails
	s.conn.Era = binary.BigEndian.Uint32(era[:])
	s.conn.Stats = &m.streams.frames
	return s
}

// An eventStream is a connection without a socket, as a sink. resume belongs to the
// connect event; the other methods may be called from any goroutine.
type eventStream struct {
	*eventstream.Conn
	c    *socket
	cors http.Header // what connect said of other origins; never changes after it

	mu     sync.Mutex // guards the following
	resume *resume    // nil when the client was answered
	full   time.Duration
}

// newEventStream returns one whose client is to be sent what it missed.
func (s *sockets) newEventStream(r resume) *eventStream {
	e := &eventStream{Conn: s.streamLoop.New(&s.streams.conn), resume: &r}
	e.GoOn(r.since)
	return e
}

// Close implements sink. A client that does not poll cannot be waited for when the
// server stops.
func (e *eventStream) Close(code int, reason string, cause websocket.Cause) {
	e.Conn.Close(code, reason, string(cause))
	if cause == websocket.CauseShutdown {
		e.CutIdle()
	}
}

// Kill implements sink.
func (e *eventStream) Kill(code int, reason string, cause websocket.Cause) bool {
	return e.Conn.Kill(code, reason, string(cause))
}

// Cut implements sink.
func (e *eventStream) Cut(cause websocket.Cause) { e.Conn.Cut(string(cause)) }

// A streamHandler is told what happens to an eventStream.
type streamHandler struct{ *socket }

// Closed implements eventstream.Handler.
func (h streamHandler) Closed(c eventstream.Closed) {
	h.socket.Closed(websocket.Closed{
		Code: c.Code, Reason: c.Reason, Cause: websocket.Cause(c.Cause), Duration: c.Duration,
		FramesIn: c.FramesIn, FramesOut: c.FramesOut, BytesIn: c.BytesIn, BytesOut: c.BytesOut,
	})
}

// openStream answers a request for a connection without a socket: with its events
// until it has ended, or with the first of its polls.
func (s *sockets) openStream(w *response, r *http.Request, vars phpbridge.Vars, requestID string, a ask) {
	t := overSSE
	if a.kind == asksPoll {
		t = overPoll
	}
	script, ok := s.entrypoint()
	if !ok { // it was there a moment ago
		s.refuse(w, r, t, &refusal{status: http.StatusNotFound, reason: refusedEntrypoint, text: "Not Found"})
		return
	}
	body, no := s.checkRequest(w, r)
	if no != nil {
		s.refuse(w, r, t, no)
		return
	}
	newest, _ := s.histories.newest()
	from := newResume(a.last, s.streams.conn.Era, newest)
	e := s.newEventStream(from)
	e.c = &socket{site: s, conn: e, transport: t, script: script, requestID: requestID}
	header, ok := s.enter(w, r, e.c, vars, body)
	if !ok {
		return
	}
	hello := eventstream.Hello{Connection: e.c.id.String(), Key: s.streams.keys.of(e.c.id), Resumed: s.begin(e)}
	s.established(r, e.c)
	e.cors = crossHeader(header)
	travel(w.Header(), header)
	s.allowCross(w.Header(), r, e)
	if t == overPoll {
		s.answerPoll(w, r, e, 0, 0, &hello)
		return
	}
	w.stall = s.streams.conn.WriteTimeout
	h := w.Header()
	h["Content-Type"] = typeEvents
	h["X-Accel-Buffering"] = noBuffering // nginx in front passes on what comes
	if len(h["Cache-Control"]) == 0 {
		h["Cache-Control"] = noStore
	}
	own := hasConnection(r) && peerOf(r).conn != nil
	w.last = w.last || own // nothing of HTTP follows on it
	w.WriteHeader(http.StatusOK)
	if !own || !s.park(w, r, e, hello) {
		e.Serve(r.Context(), w, hello)
	}
}

// park lets an event stream that has a connection to itself go on without net/http,
// whose goroutine and buffers would be held as long. It reports false when it must go on
// with it.
func (s *sockets) park(w *response, r *http.Request, e *eventStream, hello eventstream.Hello) bool {
	e.c.seat = peerOf(r).conn.leaveSeat() // leave gives it back
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return false
	}
	w.hijacked = true
	if err := e.Park(conn, r.ProtoAtLeast(1, 1), hello); err != nil {
		s.log.Warn("event stream ends before it began", "site", s.site, "addr", peerOf(r).addr, "err", err)
	}
	return true
}

// Header values that are shared and never changed.
var (
	typeEvents  = []string{"text/event-stream"}
	noBuffering = []string{"no"}
	noStore     = []string{"no-store"}
)

// begin opens a connection that connect has accepted, and reports whether it goes on
// from where the client was.
func (s *sockets) begin(e *eventStream) (resumed bool) {
	e.mu.Lock()
	r := *e.resume
	e.resume = nil
	e.mu.Unlock()
	at := uint64(0)
	if s.streams.history > 0 {
		_, at = s.histories.newest()
	}
	resumed = r.complete() && at != 0
	if r.asked {
		s.streams.metrics.resumed.WithLabelValues(strconv.FormatBool(resumed)).Inc()
	}
	e.Open(streamHandler{e.c}, e.c.transport == overPoll, at)
	return resumed
}

// depth is how many messages a channel must remember that a connection joins.
func (s *sockets) depth(conn sink, asked int) int {
	if _, ok := conn.(*eventStream); ok {
		return max(asked, s.streams.history)
	}
	return asked
}

// replay sends the last n messages of a channel; in connect, instead, what the client
// missed of it, if it says how far it had come.
func (e *eventStream) replay(past *turn, n int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, settled := past.all.newest()
	var messages []remembered
	if e.resume != nil && e.resume.since.Seq != 0 {
		var complete bool
		messages, complete = past.since(e.resume.since)
		e.resume.lossy = e.resume.lossy || !complete
	} else {
		messages = past.last(maxHistory)
		older := max(0, len(messages)-n)
		for _, m := range messages[:older] {
			if m.seq > settled {
				e.Skip(m.seq)
			}
		}
		messages = messages[older:]
	}
	frames := make([]*eventstream.Frame, len(messages))
	for i, m := range messages {
		frames[i] = eventstream.NewFrame(m.payload, m.binary, eventstream.Stamp{Seq: m.seq, Settled: settled})
	}
	e.c.site.metrics.queued.Add(float64(len(frames)))
	return e.Replay(frames)
}
