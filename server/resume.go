package server

import "ephpm/eventstream"

// A resume is what a client that lost its event stream is to be sent: what was
// broadcast since, to the channels that connect has it join again. It belongs to the
// connect event.
type resume struct {
	asked bool                 // the client said how far it had come
	since eventstream.Position // none: unknown
	lossy bool                 // something of what came since is not remembered
}

// newResume reads a Last-Event-ID. What is none of this process, or more than newest,
// the sequence number of the last broadcast, is no place to go on from.
func newResume(last string, era uint32, newest uint64) resume {
	m, ok := eventstream.ParseMark(last)
	if !ok || m.Era != era || m.Seq > newest || len(m.Beyond) > 0 && m.Beyond[len(m.Beyond)-1] > newest {
		return resume{asked: last != ""}
	}
	return resume{asked: true, since: m.Position}
}

// complete reports whether nothing is missing.
func (r *resume) complete() bool { return r.asked && r.since.Seq != 0 && !r.lossy }

// since returns the messages that a client does not have, oldest first, and whether
// those are all.
func (t *turn) since(at eventstream.Position) (messages []remembered, complete bool) {
	a, p := t.all, t.history
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.place != nil {
		a.used.MoveToFront(p.place)
	}
	for _, m := range p.messages {
		if !at.Has(m.seq) {
			messages = append(messages, m)
		}
	}
	return messages, at.Seq >= p.from && p.place != nil
}

// newest returns the sequence number of the last broadcast, and settled that up to
// which no broadcast is under way any more.
func (a *histories) newest() (newest, settled uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.way) > 0 {
		return a.seq, a.way[0] - 1
	}
	return a.seq, a.seq
}
