package registry

import (
	"slices"
	"unicode/utf8"
)

// maxChannelName is the longest name of a channel in bytes.
const maxChannelName = 256

// A channel is a name and those who joined it. The member in members[i] has a
// seat with index i, so that one can leave without a search of the others.
type channel[S any] struct {
	name    string
	members []*member[S]
}

// A seat is a member's place in one channel.
type seat[S any] struct {
	channel *channel[S]
	index   int // in channel.members
}

// seatIn returns the position in m.joined of the seat in c, or -1. The search
// is bounded by Options.MaxChannels.
func (m *member[S]) seatIn(c *channel[S]) int {
	return slices.IndexFunc(m.joined, func(s seat[S]) bool { return s.channel == c })
}

// IsChannelName reports whether a channel can have the name: 1 to 256 bytes of valid
// UTF-8.
func IsChannelName(name string) bool {
	return len(name) > 0 && len(name) <= maxChannelName && utf8.ValidString(name)
}

// Subscribe joins a channel, which begins to exist with its first member. It
// reports whether the connection is in it now: false for a connection that is
// not there, for a name that fails IsChannelName and at Options.MaxChannels. Joining
// twice is true and changes nothing.
func (r *Registry[S]) Subscribe(id ID, channelName string) bool {
	if !IsChannelName(channelName) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.members[id]
	if !ok {
		return false
	}
	c, exists := r.channels[channelName]
	if exists && m.seatIn(c) >= 0 {
		return true
	}
	if len(m.joined) >= r.opts.MaxChannels {
		return false
	}
	if !exists {
		c = &channel[S]{name: channelName}
		r.channels[channelName] = c
	}
	m.joined = append(m.joined, seat[S]{channel: c, index: len(c.members)})
	c.members = append(c.members, m)
	r.seats++
	return true
}

// Unsubscribe leaves a channel, which ceases to exist with its last member. It
// reports whether the connection was in it.
func (r *Registry[S]) Unsubscribe(id ID, channelName string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, i := r.seatLocked(id, channelName)
	if i < 0 {
		return false
	}
	r.leaveLocked(m, i)
	return true
}

// seatLocked returns a connection and the index of its seat in a channel, -1 when it
// has none.
func (r *Registry[S]) seatLocked(id ID, channelName string) (*member[S], int) {
	m, there := r.members[id]
	c, exists := r.channels[channelName]
	if !there || !exists {
		return nil, -1
	}
	return m, m.seatIn(c)
}

// leaveLocked gives up m.joined[i]: the channel's last member takes the seat.
func (r *Registry[S]) leaveLocked(m *member[S], i int) {
	r.seats--
	left := m.joined[i]
	m.joined = slices.Delete(m.joined, i, i+1)

	c, last := left.channel, len(left.channel.members)-1
	if moved := c.members[last]; moved != m {
		c.members[left.index] = moved
		moved.joined[moved.seatIn(c)].index = left.index
	}
	c.members[last] = nil
	c.members = c.members[:last]

	if last == 0 {
		delete(r.channels, c.name)
	} else if last < cap(c.members)/4 {
		c.members = slices.Clone(c.members) // a crowd has left
	}
}

// In reports whether a connection is in a channel.
func (r *Registry[S]) In(id ID, channelName string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, i := r.seatLocked(id, channelName)
	return i >= 0
}

// Sinks returns the sinks of everybody who is in a channel now, in no order.
func (r *Registry[S]) Sinks(channelName string) []S {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c, ok := r.channels[channelName]
	if !ok {
		return nil
	}
	sinks := make([]S, len(c.members))
	for i, m := range c.members {
		sinks[i] = m.sink
	}
	return sinks
}

// Members returns the IDs of at most limit members of a channel, in no order.
func (r *Registry[S]) Members(channelName string, limit int) []ID {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c, ok := r.channels[channelName]
	if !ok || limit <= 0 {
		return nil
	}
	ids := make([]ID, min(limit, len(c.members)))
	for i := range ids {
		ids[i] = c.members[i].id
	}
	return ids
}

// Count returns the number of members of a channel.
func (r *Registry[S]) Count(channelName string) int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if c, ok := r.channels[channelName]; ok {
		return len(c.members)
	}
	return 0
}

// Channels returns the number of channels that have a member.
func (r *Registry[S]) Channels() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.channels)
}

// Subscriptions returns the number of members of all channels; one that is in two
// counts twice.
func (r *Registry[S]) Subscriptions() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.seats
}

// Broadcast calls send, which must not wait, for the sink of everybody who is in
// a channel now, but for except; the zero ID excepts nobody. It returns for how
// many send was true, and missed with the sinks of the others appended. Who joins
// meanwhile is not reached; who leaves meanwhile may be.
func (r *Registry[S]) Broadcast(channelName string, except ID, send func(S) bool, missed []S) (queued int, _ []S) {
	snapshot := r.snapshots.Get().(*[]*member[S])
	r.mu.RLock()
	if c, ok := r.channels[channelName]; ok {
		*snapshot = append(*snapshot, c.members...)
	}
	r.mu.RUnlock()

	for _, m := range *snapshot {
		if m.id == except {
			continue
		}
		if send(m.sink) {
			queued++
		} else {
			missed = append(missed, m.sink)
		}
	}
	clear(*snapshot) // keep no connection alive
	*snapshot = (*snapshot)[:0]
	r.snapshots.Put(snapshot)
	return queued, missed
}
