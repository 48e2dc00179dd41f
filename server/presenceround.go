package server

import (
	"slices"
	"time"
)

// Rounds make presence known to the members of a channel. A round tells all what has
// changed since the last one, and newcomers who is there: so thousands who come or go
// together are a few frames for each member. In a small channel every change has a
// round at once. In a crowd rounds keep a distance, so that they take a bounded part
// of a processor however many come and go. A broadcast is preceded by a round, so that
// nobody reads what a user said before that the user is there.
const (
	smallCrowd      = 100 // members up to which there is no distance
	distanceAMember = 50 * time.Microsecond
	longestDistance = 250 * time.Millisecond
)

// roundDistance is the time between two rounds for so many members.
func roundDistance(members int) time.Duration {
	if members <= smallCrowd {
		return 0
	}
	return min(time.Duration(members)*distanceAMember, longestDistance)
}

// settle has made known what changed in a channel when it returns, unless the
// channel is crowded: then the pump does it soon.
func (a *presences[S]) settle(channel string) {
	a.mu.Lock()
	p := a.of[channel]
	if p == nil {
		a.mu.Unlock()
		return
	}
	if a.members.Count(channel) > smallCrowd {
		a.lateLocked(p)
		a.mu.Unlock()
		return
	}
	a.mu.Unlock()
	p.turn.Lock()
	defer p.turn.Unlock()
	a.round(p)
}

// begin and end enclose a broadcast to a channel. What happened in it before is told
// before.
func (a *presences[S]) begin(channel string) *presence[S] {
	a.mu.Lock()
	p := a.of[channel]
	a.mu.Unlock()
	if p != nil {
		p.turn.Lock()
		a.round(p)
	}
	return p
}

func (p *presence[S]) end() {
	if p != nil {
		p.turn.Unlock()
	}
}

// news is what a round has to tell.
type news[S comparable] struct {
	channel               string
	left, joined, updated []string
	count, here           int // users that were there before, and are there then
	members               []S // but for the fresh newcomers
	rolls                 []roll[S]
}

// A roll is who is there, for some newcomers.
type roll[S comparable] struct {
	users []string
	to    []S
}

// round tells what there is to tell. p.turn is held.
func (a *presences[S]) round(p *presence[S]) {
	n := a.news(p)
	for _, part := range []struct {
		event string
		step  int
		users []string
	}{{presenceLeave, -1, n.left}, {presenceJoin, 1, n.joined}, {presenceUpdate, 0, n.updated}} {
		if len(part.users) == 0 || len(n.members) == 0 {
			continue
		}
		for _, text := range presenceFrames(part.event, n.channel, n.count, part.step, part.users) {
			a.deliver(n.members, text)
		}
		n.count += part.step * len(part.users)
	}
	for _, r := range n.rolls {
		for _, text := range presenceFrames(presenceList, n.channel, n.here, 0, r.users) {
			a.deliver(r.to, text)
		}
	}
	a.close(p)
}

// close forgets a presence in which nobody is. p.turn is held: the next one of the
// channel must not tell anything before everything is told.
func (a *presences[S]) close(p *presence[S]) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(p.attendees) == 0 && len(p.newcomers) == 0 && a.of[p.channel] == p {
		delete(a.of, p.channel)
		a.bytes -= int64(presenceOverhead + len(p.channel))
	}
	if a.bytes < a.most-a.most/10-largestEntry {
		a.full = false // there is room for anyone, so that the next refusal is news
	}
}

// news takes what there is to tell, if there is any.
func (a *presences[S]) news(p *presence[S]) (n news[S]) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(p.changed) == 0 && len(p.newcomers) == 0 {
		return n
	}
	n = news[S]{channel: p.channel, count: len(p.known) - p.holes, here: p.here, members: a.members.Sinks(p.channel)}
	p.next = time.Now().Add(roundDistance(len(n.members)))
	for _, u := range p.changed {
		a.tellLocked(p, u, &n)
	}
	p.changed = nil
	p.welcomeLocked(&n)
	return n
}

// tellLocked adds to the news what has changed about a user. Whoever came and went
// since the last round, or went and came, is no news.
func (a *presences[S]) tellLocked(p *presence[S], u *attendee, n *news[S]) {
	u.changed = false
	before := u.size()
	switch there := u.connections > 0; {
	case there && u.told == "":
		n.joined = append(n.joined, u.body)
		u.told, u.place = u.body, len(p.known)
		p.known = append(p.known, u)
	case there && u.told != u.body:
		n.updated = append(n.updated, u.body)
		u.told = u.body
	case !there && u.told != "":
		n.left = append(n.left, u.told)
		p.forgetLocked(u)
		fallthrough
	case !there:
		delete(p.attendees, u.user)
		a.bytes -= int64(attendeeOverhead+len(u.user)) + before
		return
	}
	a.bytes += u.size() - before
}

// forgetLocked takes a user out of known, where it leaves a hole; when there are
// too many, those behind them move up.
func (p *presence[S]) forgetLocked(u *attendee) {
	p.known[u.place] = nil
	if p.holes++; p.holes <= len(p.known)/2 {
		return
	}
	p.known = slices.Clone(slices.DeleteFunc(p.known, func(u *attendee) bool { return u == nil }))
	p.holes = 0
	for i, u := range p.known {
		u.place = i
	}
}

// welcomeLocked adds the newcomers to the news.
func (p *presence[S]) welcomeLocked(n *news[S]) {
	if len(p.newcomers) == 0 {
		return
	}
	n.members = slices.DeleteFunc(n.members, func(s S) bool { return p.newcomers[s].fresh })
	wanting := map[int][]S{}
	for s, who := range p.newcomers {
		most := min(who.most, len(p.known)-p.holes)
		wanting[most] = append(wanting[most], s)
	}
	clear(p.newcomers)
	for most, to := range wanting {
		users := make([]string, 0, most)
		for _, u := range p.known {
			if len(users) == most {
				break
			}
			if u != nil {
				users = append(users, u.told)
			}
		}
		n.rolls = append(n.rolls, roll[S]{users, to})
	}
}

// lateLocked has the pump see to p.
func (a *presences[S]) lateLocked(p *presence[S]) {
	if p.late || a.stopped {
		return
	}
	p.late = true
	a.late = append(a.late, p)
	if !a.pumping {
		a.pumping = true
		a.pumps.Go(a.pump)
		return
	}
	select {
	case a.wake <- struct{}{}:
	default: // it is awake
	}
}

// pump has the rounds that nobody else has, and ends when none is left.
func (a *presences[S]) pump() {
	for {
		due, pause, more := a.due()
		if !more {
			return
		}
		for _, p := range due {
			p.turn.Lock()
			a.round(p)
			p.turn.Unlock()
		}
		if len(due) > 0 {
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-a.wake:
		}
		timer.Stop()
	}
}

// due returns those whose time has come, or how long it is until then for the
// first. There is no more when nothing is late.
func (a *presences[S]) due() (due []*presence[S], pause time.Duration, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped || len(a.late) == 0 {
		a.late, a.pumping = nil, false
		return nil, 0, false
	}
	now, rest := time.Now(), a.late[:0]
	pause = longestDistance
	for _, p := range a.late {
		if wait := p.next.Sub(now); wait > 0 {
			pause = min(pause, wait)
			rest = append(rest, p)
			continue
		}
		p.late = false
		due = append(due, p)
	}
	clear(a.late[len(rest):])
	a.late = rest
	return due, pause, true
}

// stop ends the pump and waits for it. Nobody is told anything from here on.
func (a *presences[S]) stop() {
	a.mu.Lock()
	a.stopped = true
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
	a.pumps.Wait()
}
