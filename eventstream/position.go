package eventstream

import "slices"

// A Position is how far a client has come in all that is broadcast on a site: it has
// everything up to Seq that is for it, and of what came later that in Beyond, because
// broadcasts to several channels overtake one another. Seq 0 is no position.
type Position struct {
	Seq    uint64
	Beyond []uint64 // ascending, more than Seq, at most MaxBeyond; never changed
}

// MaxBeyond bounds Position.Beyond.
const MaxBeyond = 32

// Has reports whether a client that has come so far has the message with a sequence
// number, or it was not for it.
func (p Position) Has(seq uint64) bool {
	if seq <= p.Seq {
		return true
	}
	_, found := slices.BinarySearch(p.Beyond, seq)
	return found
}

// A Stamp is the place of a message among all that is broadcast on a site.
type Stamp struct {
	Seq uint64 // counted from 1; 0: none
	// Settled says that every message up to it has been tried on everyone it is for,
	// once this one has. It is Seq unless others overtake one another.
	Settled uint64
}

// An order knows which position a client may be told behind a message: what it
// misses, because there was no room, or because it is still under way, it is not
// said to have. So a client that comes back gets nothing twice and misses nothing.
type order struct {
	at     Position
	missed []uint64 // found no room and have not come later
	lost   bool     // too many to remember: there are no positions any more
	// blind, when it is not 0, says that too many have overtaken others: there is no
	// position until everything up to it is settled. What is told after that is
	// right again; who comes back from before gets some twice.
	blind uint64
}

// missedMax bounds order.missed. A connection that has missed so much is about to be
// closed.
const missedMax = 256

func (o *order) miss(seq uint64) {
	switch {
	case seq == 0 || o.lost:
	case len(o.missed) == missedMax:
		o.lost, o.missed = true, nil
	default:
		o.missed = append(o.missed, seq)
	}
}

// push takes note of a message that is queued now.
func (o *order) push(s Stamp) {
	if i := slices.Index(o.missed, s.Seq); i >= 0 {
		o.missed = slices.Delete(o.missed, i, i+1)
	}
	o.settle(s.Settled)
	o.overtake(s.Seq)
}

// overtake takes note of a message before which others may come.
func (o *order) overtake(seq uint64) {
	i, found := slices.BinarySearch(o.at.Beyond, seq)
	switch {
	case found || seq <= o.at.Seq:
	case o.blind != 0:
		o.blind = max(o.blind, seq)
	case len(o.at.Beyond) == MaxBeyond:
		o.blind, o.at.Beyond = max(seq, o.at.Beyond[MaxBeyond-1]), nil
	default: // entries of the queue have the old one
		o.at.Beyond = slices.Insert(slices.Clone(o.at.Beyond), i, seq)
		o.joinUp()
	}
}

// settle takes note that no message up to seq comes any more but those missed.
func (o *order) settle(seq uint64) {
	for _, m := range o.missed {
		seq = min(seq, m-1)
	}
	o.at.Seq = max(o.at.Seq, seq)
	if o.blind <= o.at.Seq {
		o.blind = 0
	}
	o.joinUp()
}

// joinUp takes those into Seq that follow it without a gap.
func (o *order) joinUp() {
	for len(o.at.Beyond) > 0 && o.at.Beyond[0] <= o.at.Seq+1 {
		o.at.Seq = max(o.at.Seq, o.at.Beyond[0])
		o.at.Beyond = o.at.Beyond[1:]
	}
	if len(o.at.Beyond) == 0 {
		o.at.Beyond = nil
	}
}

// position returns that of a client that has all that is queued; none: nothing is
// known.
func (o *order) position() Position {
	if o.lost || o.blind != 0 {
		return Position{}
	}
	return o.at
}
