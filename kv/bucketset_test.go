package kv

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestBucketSetFindsWhatIsInIt(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var set bucketSet
	want := map[uint32]bool{}
	size, bytes := uint32(0), 0
	for size < 70_000 {
		more := 1 + random.Uint32N(3000)
		size += more
		bytes += set.grow(size)
		for range 40 {
			i := random.Uint32N(size)
			if random.IntN(3) > 0 {
				set.add(i)
				want[i] = true
			} else {
				set.remove(i)
				delete(want, i)
			}
		}
		for i := range maps.Clone(want) {
			if random.IntN(3) == 0 {
				set.remove(i)
				delete(want, i)
			}
		}
		var got []uint32
		for i, ok := set.next(0); ok; i, ok = set.next(i + 1) {
			got = append(got, i)
		}
		if all := slices.Sorted(maps.Keys(want)); !slices.Equal(got, all) {
			t.Fatalf("of %d: %v, want %v", size, got, all)
		}
	}
	have := 0
	for _, words := range set.levels {
		have += 8 * len(words)
	}
	if have != bytes || bytes > int(size)/7 {
		t.Errorf("%d bytes, counted as %d, for %d buckets", have, bytes, size)
	}
}

func TestBucketSetGoesRound(t *testing.T) {
	var set bucketSet
	set.grow(5000)
	if i, ok := set.after(17); ok {
		t.Errorf("an empty set has %d", i)
	}
	set.add(4999)
	for _, from := range []uint32{0, 4998, 4999, 1 << 31} {
		if i, ok := set.after(from); !ok || i != 4999 {
			t.Errorf("after %d: %d, %v, want 4999", from, i, ok)
		}
	}
	set.add(0)
	if i, _ := set.after(4999); i != 0 {
		t.Errorf("after the last: %d, want 0", i)
	}
}
