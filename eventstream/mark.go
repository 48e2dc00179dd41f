package eventstream

import (
	"strconv"
	"strings"
)

// A Mark is how far a client has come: the ID of an event.
type Mark struct {
	Era uint32 // Options.Era
	Seq uint64 // of the last frame that has one
	// Cursor is, for polls, how many frames of the connection the client has.
	Cursor uint64
	Polled bool // there is a Cursor
}

// Over is the ID of the event behind which a client must not come back. It would, by
// itself: answered with 204 it stops.
const Over = "over"

// String returns the mark as ParseMark reads it: era, sequence number and cursor,
// with hyphens between.
func (m Mark) String() string {
	b := strconv.AppendUint(nil, uint64(m.Era), 16)
	b = strconv.AppendUint(append(b, '-'), m.Seq, 10)
	if m.Polled {
		b = strconv.AppendUint(append(b, '-'), m.Cursor, 10)
	}
	return string(b)
}

// ParseMark reads what String wrote, and nothing else.
func ParseMark(s string) (m Mark, ok bool) {
	era, rest, ok := strings.Cut(s, "-")
	if !ok {
		return Mark{}, false
	}
	n, err := strconv.ParseUint(era, 16, 32)
	if err != nil {
		return Mark{}, false
	}
	m.Era = uint32(n)
	seq, cursor, polled := strings.Cut(rest, "-")
	if m.Seq, err = strconv.ParseUint(seq, 10, 64); err != nil {
		return Mark{}, false
	}
	if m.Polled = polled; polled {
		if m.Cursor, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return Mark{}, false
		}
	}
	return m, m.String() == s
}
