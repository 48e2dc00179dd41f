package server

import (
	"slices"

	"ephpm/eventstream"
)

// A resume is what a client that lost its event stream is to be sent: what was
// broadcast since, to the channels that connect has it join again. It belongs to the
// connect event.
type resume struct {
	asked bool   // the client said how far it had come
	since uint64 // the sequence number of the last message that it has; 0: unknown
	lossy bool   // something of what came since is not remembered
}

// newResume reads a Last-Event-ID. What is none of this process is no place to go on
// from.
func newResume(last string, era uint32) resume {
	m, ok := eventstream.ParseMark(last)
	if !ok || m.Era != era {
		return resume{asked: last != ""}
	}
	return resume{asked: true, since: m.Seq}
}

// complete reports whether nothing is missing.
func (r *resume) complete() bool { return r.asked && r.since != 0 && !r.lossy }

// since returns the messages after a sequence number, oldest first, and whether those
// are all.
func (t turn) since(seq uint64) (messages []remembered, complete bool) {
	a, p := t.all, t.history
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.place != nil {
		a.used.MoveToFront(p.place)
	}
	i := slices.IndexFunc(p.messages, func(m remembered) bool { return m.seq > seq })
	if i >= 0 {
		messages = slices.Clone(p.messages[i:])
	}
	return messages, seq >= p.from && p.place != nil
}

// position returns the sequence number of the last broadcast. Call it with
// ordered held.
func (a *histories) position() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seq
}
