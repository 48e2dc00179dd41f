package eventstream

import (
	"strconv"
	"strings"
)

// A Mark is how far a client has come: the ID of an event.
type Mark struct {
	Era uint32 // Options.Era
	Position
	// Cursor is, for polls, how many frames of the connection the client has.
	Cursor uint64
	Polled bool // there is a Cursor
}

// Over is the ID of the event behind which a client must not come back. It would, by
// itself: answered with 204 it stops.
const Over = "over"

// String returns the mark as ParseMark reads it: era, position and cursor, with
// hyphens between. The numbers of a position have full stops between.
func (m Mark) String() string { return string(m.append(nil)) }

func (m Mark) append(b []byte) []byte {
	b = strconv.AppendUint(b, uint64(m.Era), 16)
	b = strconv.AppendUint(append(b, '-'), m.Seq, 10)
	for _, seq := range m.Beyond {
		b = strconv.AppendUint(append(b, '.'), seq, 10)
	}
	if m.Polled {
		b = strconv.AppendUint(append(b, '-'), m.Cursor, 10)
	}
	return b
}

// maxMark is what a Mark has at most, in bytes.
const maxMark = 8 + 1 + 20*(1+MaxBeyond) + MaxBeyond + 1 + 20

// ParseMark reads what String wrote, and nothing else.
func ParseMark(s string) (m Mark, ok bool) {
	if len(s) > maxMark {
		return Mark{}, false
	}
	era, rest, _ := strings.Cut(s, "-")
	n, err := strconv.ParseUint(era, 16, 32)
	if err != nil {
		return Mark{}, false
	}
	m.Era = uint32(n)
	position, cursor, polled := strings.Cut(rest, "-")
	if m.Position, ok = parsePosition(position); !ok {
		return Mark{}, false
	}
	if m.Polled = polled; polled {
		if m.Cursor, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return Mark{}, false
		}
	}
	return m, m.String() == s
}

func parsePosition(s string) (p Position, ok bool) {
	first, rest, more := strings.Cut(s, ".")
	var err error
	if p.Seq, err = strconv.ParseUint(first, 10, 64); err != nil {
		return Position{}, false
	}
	for last := p.Seq; more; last = p.Beyond[len(p.Beyond)-1] {
		first, rest, more = strings.Cut(rest, ".")
		seq, err := strconv.ParseUint(first, 10, 64)
		if err != nil || seq <= last || len(p.Beyond) == MaxBeyond {
			return Position{}, false
		}
		p.Beyond = append(p.Beyond, seq)
	}
	return p, true
}
