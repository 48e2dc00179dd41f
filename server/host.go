package server

import (
	"bytes"
	"context"
	"fmt"
	"unicode/utf8"

	"ephpm/phpbridge"
	"ephpm/registry"
	"ephpm/websocket"
)

// Why the functions throw \Exception; the texts are those of the public project.
const (
	textDisabled  = "ephpm_ws: native websockets are not enabled on this server (set [server.websocket] enabled = true)"
	textNoSite    = "ephpm_ws: no websocket context for this request: its host matched no site"
	textNoCurrent = "ephpm_ws: no current websocket connection. The implicit form is only valid inside a websocket event; " +
		"from an ordinary HTTP request use the ephpm_ws_connection_*() form with an explicit connection id"
)

const (
	maxCloseReason = 123  // RFC 6455 §5.5: a control frame of 125 bytes
	maxMembers     = 1000 // of one ephpm_ws_members
)

// thrower is the Host of requests for which every call throws, for the reason
// that it holds.
type thrower string

// HostCall throws.
func (t thrower) HostCall(_ context.Context, c *phpbridge.Call) {
	c.Throw(phpbridge.ThrowException, string(t))
}

// A pageHost is the Host of pages where nobody has sockets.
type pageHost struct {
	sockets thrower
	kv      *kvHost
}

// HostCall answers one call.
func (h *pageHost) HostCall(ctx context.Context, c *phpbridge.Call) {
	if c.Func().IsStore() {
		h.kv.call(ctx, c)
		return
	}
	h.sockets.HostCall(ctx, c)
}

// A host answers what one event, or any page, asks of the sockets of its site.
// It can reach no other site's, because it holds only its own.
type host struct {
	s       *sockets
	current registry.ID // zero on a page
	budget  budget
}

// host returns the Host for an event of current; the zero ID means pages, which
// may share one.
func (s *sockets) host(current registry.ID) phpbridge.Host {
	return &host{s: s, current: current, budget: budget{s.sendWait}}
}

// HostCall answers one call.
func (h *host) HostCall(ctx context.Context, c *phpbridge.Call) {
	if c.Func().IsStore() {
		h.s.kv.call(ctx, c)
		return
	}
	if h.current == (registry.ID{}) {
		h = &host{s: h.s, budget: budget{h.s.sendWait}} // pages run at once
	}
	var err error
	first := 0 // the first argument that is not about whom
	switch c.Func() {
	case phpbridge.WSBroadcast:
		first = 1
		err = h.callBroadcast(ctx, c)
	case phpbridge.WSCount:
		err = h.callCount(c)
	case phpbridge.WSMembers:
		if channel, limit := c.String(0), c.Int(1); c.Bool(2) {
			c.ReturnString(h.s.presences.users(channel, memberLimit(limit)))
		} else {
			c.ReturnStrings(h.members(channel, limit))
		}
	default:
		first, err = h.callConnection(ctx, c)
	}
	if m, ok := err.(*misuse); ok {
		c.Throw(m.class, m.says(c.Func(), first))
	}
}

// callConnection answers the functions that are about one connection: the
// current one, or in the ephpm_ws_connection_ form the one that is named.
func (h *host) callConnection(ctx context.Context, c *phpbridge.Call) (first int, err error) {
	id := h.current
	switch c.Func() {
	case phpbridge.WSConnectionSend, phpbridge.WSConnectionSubscribe,
		phpbridge.WSConnectionUnsubscribe, phpbridge.WSConnectionClose:
		id, _ = registry.ParseID(c.String(0)) // a bad one is nobody's
		first = 1
	default:
		if id == (registry.ID{}) {
			return 0, &misuse{class: phpbridge.ThrowException, text: textNoCurrent}
		}
	}
	var ok bool
	switch c.Func() {
	case phpbridge.WSSend, phpbridge.WSConnectionSend:
		ok, err = h.send(ctx, id, c.Bytes(first), c.Bool(first+1))
	case phpbridge.WSSubscribe, phpbridge.WSConnectionSubscribe:
		ok, err = h.subscribe(id, c.String(first), c.Rest())
	case phpbridge.WSUnsubscribe, phpbridge.WSConnectionUnsubscribe:
		ok = h.unsubscribe(id, c.String(first))
	case phpbridge.WSClose, phpbridge.WSConnectionClose:
		ok, err = h.close(id, c.Int(first), c.String(first+1))
	default:
		return 0, nil // not ours: the function returns null
	}
	if err == nil {
		c.ReturnBool(ok)
	}
	return first, err
}

func (h *host) callBroadcast(ctx context.Context, c *phpbridge.Call) error {
	var except registry.ID
	if !c.IsNull(3) {
		except, _ = registry.ParseID(c.String(3)) // a bad one excepts nobody
	}
	n, err := h.broadcast(ctx, c.String(0), c.Bytes(1), c.Bool(2), except)
	if err == nil {
		c.ReturnInt(int64(n))
	}
	return err
}

func (h *host) callCount(c *phpbridge.Call) error {
	switch users := c.Bool(1); {
	case users && c.IsNull(0):
		return &misuse{phpbridge.ThrowValueError, 1, "users", "must be false without a channel"}
	case users:
		c.ReturnInt(int64(h.s.presences.count(c.String(0))))
	case c.IsNull(0):
		c.ReturnInt(int64(h.s.members.Len()))
	default:
		c.ReturnInt(int64(h.s.members.Count(c.String(0))))
	}
	return nil
}

// A misuse is a call that could never have worked.
type misuse struct {
	class    phpbridge.ThrowClass
	argument int    // behind those about whom
	name     string // of the argument; empty when it is about none
	text     string
}

func (m *misuse) Error() string { return m.text }

// says is the text of the exception, in PHP's own form.
func (m *misuse) says(f phpbridge.Func, first int) string {
	if m.name == "" {
		return m.text
	}
	return fmt.Sprintf("%s(): Argument #%d ($%s) %s", functions[f], first+m.argument+1, m.name, m.text)
}

// functions are the PHP names of those that refuse arguments.
var functions = map[phpbridge.Func]string{
	phpbridge.WSSend:           "ephpm_ws_send",
	phpbridge.WSConnectionSend: "ephpm_ws_connection_send",
	phpbridge.WSBroadcast:      "ephpm_ws_broadcast",
	phpbridge.WSClose:          "ephpm_ws_close",
	phpbridge.WSSubscribe:      "ephpm_ws_subscribe",

	phpbridge.WSConnectionSubscribe: "ephpm_ws_connection_subscribe",

	phpbridge.WSConnectionClose: "ephpm_ws_connection_close",

	phpbridge.WSCount: "ephpm_ws_count",
}

// prepare checks and encodes a payload. Too large is no message and no error.
func (h *host) prepare(payload []byte, binary bool) (*push, error) {
	if limit := h.s.maxMessage; limit > 0 && int64(len(payload)) > limit {
		h.s.metrics.rejected.WithLabelValues("too_large").Inc()
		h.s.log.Warn("outbound payload over the limit", "site", h.s.site, "bytes", len(payload), "max", limit)
		return nil, nil
	}
	if !binary && !utf8.Valid(payload) {
		h.s.metrics.rejected.WithLabelValues("invalid_utf8").Inc()
		return nil, &misuse{phpbridge.ThrowValueError, 0, "payload", "must be valid UTF-8 unless $binary is true"}
	}
	return newPush(payload, binary), nil
}

func (h *host) send(ctx context.Context, id registry.ID, payload []byte, binary bool) (bool, error) {
	m, err := h.prepare(payload, binary)
	if m == nil {
		return false, err
	}
	conn, ok := h.s.members.Lookup(id)
	if !ok {
		return false, nil
	}
	if m.try(conn) || h.insist(ctx, conn, m) {
		h.s.metrics.queued.Inc()
		return true, nil
	}
	return false, nil
}

func (h *host) broadcast(ctx context.Context, channel string, payload []byte, binary bool, except registry.ID) (int, error) {
	m, err := h.prepare(payload, binary)
	if m == nil {
		return 0, err
	}
	batch := h.s.batch(m)
	past := h.s.histories.broadcasting(channel)
	if past.remembers() {
		m.stamp = past.add(remembered{payload: bytes.Clone(payload), binary: binary})
	}
	there := h.s.presences.begin(channel)
	queued, missed := h.s.members.Broadcast(channel, except, batch.add, nil)
	there.end()
	past.end()
	batch.send() // what is queued keeps its order
	for _, conn := range missed {
		if h.insist(ctx, conn, m) {
			queued++
		}
	}
	h.s.metrics.queued.Add(float64(queued))
	return queued, nil
}

// insist sends to a connection whose queue was full a moment ago. One that
// makes no room in time is too slow and is closed, so that it cannot hold up
// the next event as well.
func (h *host) insist(ctx context.Context, conn sink, m *push) bool {
	if conn.Closing() {
		return false
	}
	sent := h.budget.wait(ctx, func(ctx context.Context) bool { return m.wait(ctx, conn) })
	if sent {
		return true
	}
	if ctx.Err() == nil {
		h.s.tooSlow(conn)
	}
	return false
}

// deliver queues a text for some members. One for which there is no room is too slow:
// what it would miss cannot be made up for.
func (s *sockets) deliver(to []sink, text []byte) {
	batch := s.batch(newPush(text, false))
	queued := 0
	for _, conn := range to {
		if batch.add(conn) {
			queued++
		} else {
			s.tooSlow(conn)
		}
	}
	batch.send()
	s.metrics.queued.Add(float64(queued))
}

// tooSlow closes a connection for whose frames there is no room.
func (s *sockets) tooSlow(conn sink) {
	if conn.Kill(websocket.CodeTryAgain, "", websocket.CauseSlow) {
		s.metrics.overflow.Inc()
		s.log.Warn("outbound queue full, closing", "site", s.site, "frames", s.conn.QueueFrames)
	}
}

// subscribe joins a channel, as a user if options say so, and sends what they ask of
// its past and of who is there.
func (h *host) subscribe(id registry.ID, channel string, options [][]byte) (bool, error) {
	o, err := parseSubscription(options)
	if err != nil {
		return false, err
	}
	ok := h.enter(id, channel, &o)
	if !o.isPlain() {
		h.s.presences.settle(channel)
	}
	return ok, nil
}

// enter joins a channel and sends what is asked of its past.
func (h *host) enter(id registry.ID, channel string, o *subscription) bool {
	conn, ok := h.s.members.Lookup(id)
	if !ok || !registry.IsChannelName(channel) {
		return false
	}
	depth := h.s.depth(conn, o.history)
	if depth == 0 {
		return h.join(id, channel, o)
	}
	past := h.s.histories.joining(channel, depth) // a broadcast comes either with the past or behind it
	joined := h.join(id, channel, o)
	var send func()
	fits := true
	if joined {
		send, fits = h.queuePast(conn, &past, o.history)
	}
	past.end()
	if send != nil {
		send()
	}
	if !fits {
		h.s.tooSlow(conn)
	}
	return joined && fits
}

// join joins a channel, and is there as a user if options say so.
func (h *host) join(id registry.ID, channel string, o *subscription) bool {
	if o.isPlain() {
		return h.s.members.Subscribe(id, channel)
	}
	return h.s.presences.enter(id, channel, o)
}

// queuePast queues the last messages of a channel for a newcomer, or what it missed of
// it, and returns what sends them, which may be nil. It reports whether there was room.
func (h *host) queuePast(conn sink, past *turn, n int) (send func(), ok bool) {
	if e, ok := conn.(*eventStream); ok {
		return nil, e.replay(past, n)
	}
	for _, m := range past.last(min(n, h.s.conn.QueueFrames)) {
		one := h.s.batch(newPush(m.payload, m.binary))
		ok := one.add(conn)
		if !ok && send != nil {
			send() // what is queued so far, to make room
			ok = one.add(conn)
		}
		if !ok {
			return send, false
		}
		if send == nil { // the others are sent behind the first
			send = one.send
		}
		h.s.metrics.queued.Inc()
	}
	return send, true
}

// unsubscribe leaves a channel.
func (h *host) unsubscribe(id registry.ID, channel string) bool {
	was := h.s.presences.exit(id, channel)
	if was {
		h.s.presences.settle(channel)
	}
	return was
}

func (h *host) close(id registry.ID, code int64, reason string) (bool, error) {
	if code < 0 || code > 4999 || !websocket.SendableCode(int(code)) {
		return false, &misuse{phpbridge.ThrowValueError, 0, "code",
			fmt.Sprintf("must be 1000 to 1003, 1007 to 1014 or 3000 to 4999, %d given", code)}
	}
	if len(reason) > maxCloseReason || !utf8.ValidString(reason) {
		return false, &misuse{phpbridge.ThrowValueError, 1, "reason",
			fmt.Sprintf("must be at most %d bytes of valid UTF-8", maxCloseReason)}
	}
	conn, ok := h.s.members.Lookup(id)
	if ok {
		conn.Close(int(code), reason, websocket.CauseServer)
	}
	return ok, nil
}

// memberLimit is how many members a script gets that asks for so many.
func memberLimit(n int64) int { return int(max(0, min(n, maxMembers))) }

func (h *host) members(channel string, limit int64) []string {
	ids := h.s.members.Members(channel, memberLimit(limit))
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id.String()
	}
	return names
}
