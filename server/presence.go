package server

import (
	"log/slog"
	"sync"
	"time"

	"ephpm/registry"
)

// What the parts of presences cost, about, besides their text, in bytes.
const (
	presenceOverhead = 500
	attendeeOverhead = 300
	stayOverhead     = 200
)

// largestEntry is about what one subscription takes at most, in bytes.
const largestEntry = presenceOverhead + attendeeOverhead + stayOverhead + 2*maxUser + maxInfo

// usualList is how many of those who are there a newcomer is told of by default.
const usualList = 1000

// presences know who is there in the channels of one site and tell it to their
// members: a newcomer gets a list, and all get what changes, in rounds (see
// presenceround.go). They enter and leave the registry together with it, so that
// both always agree. The methods may be called from any goroutine.
//
// S is what the registry holds of a connection.
type presences[S comparable] struct {
	most    int64 // bytes of all
	members *registry.Registry[S]
	metrics *socketMetrics
	log     *slog.Logger
	// deliver queues a text for each of some members, in their order with
	// everything else that is queued for them. It does not wait.
	deliver func(to []S, text []byte)

	pumps sync.WaitGroup
	wake  chan struct{} // a pump that waits has something to do

	mu      sync.Mutex // guards the following and all they hold
	bytes   int64
	full    bool // and that was said
	of      map[string]*presence[S]
	stays   map[registry.ID][]stay[S]
	late    []*presence[S] // the pump has to see to them
	pumping bool
	stopped bool
}

// A presence is who is there in one channel.
type presence[S comparable] struct {
	channel string

	// turn is held while a round or a broadcast is queued for the members.
	turn sync.Mutex

	// Guarded by presences.mu.
	attendees map[string]*attendee // by user
	here      int                  // attendees with a connection
	known     []*attendee          // those the members were told of, as they came; nil where one left
	holes     int                  // of known
	changed   []*attendee          // since the last round
	newcomers map[S]newcomer       // get a list with the next round
	next      time.Time            // when the pump may have the next round
	late      bool                 // is in presences.late
}

// An attendee is a user in one channel, with any number of connections.
type attendee struct {
	user        string
	connections int
	body        string // a JSON object
	told        string // the body that the members know; empty when they know nobody
	place       int    // in known, when they do
	changed     bool   // is in changed
}

// A stay is a connection in a channel as a user.
type stay[S comparable] struct {
	presence *presence[S]
	attendee *attendee
}

// A newcomer is about to get a list.
type newcomer struct {
	most  int  // users in it
	fresh bool // it was not in the channel before, so the list is all it gets of this round
}

func newPresences[S comparable](most int64, members *registry.Registry[S], m *socketMetrics, log *slog.Logger, deliver func([]S, []byte)) *presences[S] {
	return &presences[S]{
		most: most, members: members, metrics: m, log: log, deliver: deliver,
		wake:  make(chan struct{}, 1),
		of:    map[string]*presence[S]{},
		stays: map[registry.ID][]stay[S]{},
	}
}

// enter subscribes a connection as o says, and reports whether it is in the channel
// now. settle makes what has changed known.
func (a *presences[S]) enter(id registry.ID, channel string, o *subscription) bool {
	ok, full := a.tryEnter(id, channel, o)
	if full {
		a.log.Warn("no room for more users in channels; see [server.websocket] presence_memory", "max", a.most)
	}
	return ok
}

// tryEnter is enter; full is true when there is no room, for the first time.
func (a *presences[S]) tryEnter(id registry.ID, channel string, o *subscription) (ok, full bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.stayLocked(id, channel)
	if a.bytes+a.costLocked(channel, o, before) > a.most {
		full, a.full = !a.full, true
		a.metrics.presenceRefused.Inc()
		return false, full
	}
	sink, there := a.members.Lookup(id)
	fresh := !a.members.In(id, channel)
	if !there || !a.members.Subscribe(id, channel) {
		return false, false
	}
	p := a.openLocked(channel)
	if o.user != "" {
		a.appearLocked(id, p, before, o)
	}
	list := o.list
	if list == notAsked && before == nil {
		list = usualList
	}
	if list != notAsked {
		n := p.newcomers[sink]
		p.newcomers[sink] = newcomer{most: list, fresh: fresh || n.fresh}
	}
	return true, false
}

// stayLocked returns the stay of a connection in a channel, or nil.
func (a *presences[S]) stayLocked(id registry.ID, channel string) *stay[S] {
	stays := a.stays[id]
	for i := range stays {
		if stays[i].presence.channel == channel {
			return &stays[i]
		}
	}
	return nil
}

// costLocked is what entering takes at most.
func (a *presences[S]) costLocked(channel string, o *subscription, before *stay[S]) (n int64) {
	p := a.of[channel]
	if p == nil {
		n += int64(presenceOverhead + len(channel))
	}
	if o.user == "" {
		return n
	}
	if before == nil {
		n += stayOverhead
	}
	if p == nil || p.attendees[o.user] == nil {
		return n + int64(attendeeOverhead+len(o.user)+len(o.body))
	}
	if p.attendees[o.user].body != o.body {
		n += int64(len(o.body))
	}
	return n
}

func (a *presences[S]) openLocked(channel string) *presence[S] {
	p := a.of[channel]
	if p == nil {
		p = &presence[S]{channel: channel, attendees: map[string]*attendee{}, newcomers: map[S]newcomer{}}
		a.of[channel] = p
		a.bytes += int64(presenceOverhead + len(channel))
	}
	return p
}

// appearLocked makes a connection one of a user's, instead of another's if it was.
func (a *presences[S]) appearLocked(id registry.ID, p *presence[S], before *stay[S], o *subscription) {
	u := p.attendees[o.user]
	if u == nil {
		u = &attendee{user: o.user}
		p.attendees[o.user] = u
		a.bytes += int64(attendeeOverhead + len(u.user))
	}
	if o.body != u.body {
		a.bytes -= u.size()
		if u.body = o.body; u.body == u.told {
			u.body = u.told // one of them is enough
		}
		a.bytes += u.size()
		p.changeLocked(u)
	}
	if before != nil && before.attendee == u {
		return
	}
	if u.connections++; u.connections == 1 {
		p.here++
		a.metrics.presenceJoins.Inc()
		a.metrics.presenceUsers.Add(1)
		p.changeLocked(u)
	}
	if before != nil {
		a.disappearLocked(*before)
		before.attendee = u
		return
	}
	a.stays[id] = append(a.stays[id], stay[S]{p, u})
	a.bytes += stayOverhead
}

// disappearLocked takes a connection from a user.
func (a *presences[S]) disappearLocked(s stay[S]) {
	if s.attendee.connections--; s.attendee.connections > 0 {
		return
	}
	s.presence.here--
	a.metrics.presenceLeaves.Inc()
	a.metrics.presenceUsers.Add(-1)
	s.presence.changeLocked(s.attendee)
}

func (p *presence[S]) changeLocked(u *attendee) {
	if !u.changed {
		u.changed = true
		p.changed = append(p.changed, u)
	}
}

// size is the bytes of what is said of a user.
func (u *attendee) size() int64 {
	if u.told == u.body {
		return int64(len(u.body))
	}
	return int64(len(u.body) + len(u.told))
}

// exit takes a connection out of a channel, in which it may be nobody, and reports
// whether it was in it. settle makes it known.
func (a *presences[S]) exit(id registry.ID, channel string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.members.Unsubscribe(id, channel)
	if p := a.of[channel]; p != nil {
		sink, _ := a.members.Lookup(id)
		delete(p.newcomers, sink)
	}
	stays := a.stays[id]
	for i, s := range stays {
		if s.presence.channel != channel {
			continue
		}
		a.disappearLocked(s)
		a.bytes -= stayOverhead
		last := len(stays) - 1
		stays[i], stays[last] = stays[last], stay[S]{}
		if a.stays[id] = stays[:last]; last == 0 {
			delete(a.stays, id)
		}
		break
	}
	return was
}

// leave removes a connection from the registry, and from wherever it is somebody.
// The others are told soon.
func (a *presences[S]) leave(id registry.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.members.Remove(id)
	for _, s := range a.stays[id] {
		a.disappearLocked(s)
		a.bytes -= stayOverhead
		if len(s.presence.changed) > 0 {
			a.lateLocked(s.presence)
		}
	}
	delete(a.stays, id)
}

// count returns the number of users in a channel.
func (a *presences[S]) count(channel string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.of[channel]; p != nil {
		return p.here
	}
	return 0
}

// users returns at most limit users of a channel as a JSON array of objects, in the
// order in which they came, with the number of their connections.
func (a *presences[S]) users(channel string, limit int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := []byte{'['}
	add := func(u *attendee) {
		if u == nil || u.connections == 0 || limit <= 0 {
			return
		}
		if limit--; len(list) > 1 {
			list = append(list, ',')
		}
		list = u.appendCounted(list)
	}
	if p := a.of[channel]; p != nil {
		for _, u := range p.known {
			add(u)
		}
		for _, u := range p.changed {
			if u.told == "" {
				add(u)
			}
		}
	}
	return append(list, ']')
}
