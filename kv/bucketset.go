package kv

import "math/bits"

// A bucketSet is a set of numbers of buckets. It finds the next one that is in it
// in a few steps, however few there are among however many.
type bucketSet struct {
	// Bit i of levels[0] says that bucket i is in the set, bit i of each level
	// above that the word i of the one below is not zero. The last has one word.
	levels [][]uint64
}

// grow makes room for buckets below n, and reports how many bytes that took.
func (b *bucketSet) grow(n uint32) (bytes int) {
	words := int(n+63) / 64
	for level := 0; ; level++ {
		if level == len(b.levels) {
			b.levels = append(b.levels, nil)
			if level > 0 && b.levels[level-1][0] != 0 { // what was the top so far
				b.levels[level] = append(b.levels[level], 1)
				bytes += 8
			}
		}
		for len(b.levels[level]) < words {
			b.levels[level] = append(b.levels[level], 0)
			bytes += 8
		}
		if words == 1 {
			return bytes
		}
		words = (words + 63) / 64
	}
}

func (b *bucketSet) add(i uint32) {
	for _, words := range b.levels {
		words[i/64] |= 1 << (i % 64)
		i /= 64
	}
}

func (b *bucketSet) remove(i uint32) {
	for _, words := range b.levels {
		if words[i/64] &^= 1 << (i % 64); words[i/64] != 0 {
			return
		}
		i /= 64
	}
}

// next returns the first that is not below i, and whether there is one.
func (b *bucketSet) next(i uint32) (uint32, bool) {
	for level := 0; level < len(b.levels); level++ {
		words := b.levels[level]
		if int(i/64) >= len(words) {
			return 0, false
		}
		if rest := words[i/64] >> (i % 64); rest != 0 {
			i += uint32(bits.TrailingZeros64(rest))
			for level--; level >= 0; level-- { // down to the first below it
				i = 64*i + uint32(bits.TrailingZeros64(b.levels[level][i]))
			}
			return i, true
		}
		i = i/64 + 1
	}
	return 0, false
}

// after is next behind i and, at the end, from the start.
func (b *bucketSet) after(i uint32) (uint32, bool) {
	if next, ok := b.next(i + 1); ok {
		return next, true
	}
	return b.next(0)
}
