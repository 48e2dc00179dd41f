package phpbridge

// A slotSet is a set of slots, in the form of the bitmaps in shared memory.
type slotSet [slotWords]uint64

// newSlotSet returns the set of the slots from..to-1.
func newSlotSet(from, to int) slotSet {
	var s slotSet
	for i := from; i < to; i++ {
		s[i/64] |= 1 << (i % 64)
	}
	return s
}

func (s slotSet) union(t slotSet) slotSet {
	for i := range s {
		s[i] |= t[i]
	}
	return s
}

func (s *slotSet) add(slot int) { s[slot/64] |= 1 << (slot % 64) }

func (s *slotSet) has(slot int) bool { return s[slot/64]&(1<<(slot%64)) != 0 }
