//go:build !race

// What follows reads memory while it is written, as readers in other processes
// do, which the race detector must not like.

package kv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// A reader finds strings in shared memory as layout.go says.
type reader struct{ mem []byte }

type found int

const (
	foundNone  found = iota
	foundValue       // and it is a whole one
	foundOdd         // the Store has to be asked
)

// get reads a string that does not expire.
func (r reader) get(key []byte) ([]byte, found) {
	le := binary.LittleEndian
	hash := uint32(sipHash(le.Uint64(r.mem[offK0:]), le.Uint64(r.mem[offK1:]), key))
	word := mem(r.mem).word(stripesAt + 4*int(hash%stripeCount))
	for range 1000 {
		before := atomic.LoadUint32(word)
		if before%2 != 0 {
			continue
		}
		value, result := r.look(key, hash)
		if atomic.LoadUint32(word) == before {
			return value, result
		}
	}
	return nil, foundOdd
}

// look is the part that knows nothing for sure.
func (r reader) look(key []byte, hash uint32) ([]byte, found) {
	le, size := binary.LittleEndian, uint64(len(r.mem))
	buckets := le.Uint32(r.mem[offBuckets:])
	mask := uint32(1)
	for mask < buckets-1 {
		mask = mask<<1 | 1
	}
	i := hash & mask
	if i >= buckets {
		i &= mask >> 1
	}
	at := uint64(bucketsAt) + 4*uint64(i)
	if at+4 > size {
		return nil, foundOdd
	}
	entry := uint64(le.Uint32(r.mem[at:])) * 8
	for n := 0; entry != 0; n++ {
		if n == maxChain || entry+entryHeader > size {
			return nil, foundOdd
		}
		e := r.mem[entry:]
		keyLen, valueLen := uint64(le.Uint16(e[entKey:])), uint64(le.Uint32(e[entValue:]))
		if le.Uint32(e[entHash:]) == hash && entry+entryHeader+keyLen+valueLen <= size &&
			bytes.Equal(e[entryHeader:entryHeader+keyLen], key) {
			if e[entKind] != byte(kindString) || e[entCoding] != 0 {
				return nil, foundOdd
			}
			return bytes.Clone(e[entryHeader+keyLen : entryHeader+keyLen+valueLen]), foundValue
		}
		entry = uint64(le.Uint32(e[entNext:])) * 8
	}
	return nil, foundNone
}

// Readers never see a value of another key or half of one, whatever the Store
// does meanwhile: overwrite, move, drop, grow, flush.
func TestReadersOfTheMemorySeeWholeValues(t *testing.T) {
	const keys = 500
	memory, err := mapMemory(MappingSize(2 << 20))
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(t, Options{MemoryLimit: 2 << 20, Memory: memory, Policy: AllKeysLRU})
	key := func(i int) []byte { return fmt.Appendf(nil, "key:%d", i) }
	// A value is the number of its key, again and again.
	value := func(i, size int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%06d", i), size) }

	var stop atomic.Bool
	var wg sync.WaitGroup
	var whole atomic.Int64
	for n := range 2 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			r := reader{memory}
			for !stop.Load() {
				i := random.IntN(keys)
				got, result := r.get(key(i))
				if result != foundValue {
					continue
				}
				whole.Add(1)
				if len(got)%6 != 0 || !bytes.Equal(got, value(i, len(got)/6)) {
					t.Errorf("key %d has the value %.40q", i, got)
					return
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(2, 2))
	for step := 0; step < 20_000 || whole.Load() < 1000; step++ {
		i := random.IntN(keys)
		switch n := random.IntN(1000); {
		case n == 0:
			s.Flush()
		case n < 100:
			s.Del(key(i))
		case n < 110:
			s.tidy()
		case n < 120: // where it lies, or in more room
			if _, err := s.Append(key(i), value(i, random.IntN(100))); err != nil {
				t.Fatal(err)
			}
		case n < 125:
			if _, err := s.SetRange(key(i), 0, value(i, random.IntN(100))); err != nil {
				t.Fatal(err)
			}
		case n < 130:
			if err := s.Set(key(i), value(i, random.IntN(5000)), 0); err != nil {
				t.Fatal(err)
			}
		case n < 400: // makes the table grow and others move
			if err := s.Set(fmt.Append(nil, "other", random.IntN(20_000)), value(1, random.IntN(50)), 0); err != nil {
				t.Fatal(err)
			}
		default:
			if err := s.Set(key(i), value(i, random.IntN(60)), 0); err != nil {
				t.Fatal(err)
			}
		}
		if step > 5_000_000 {
			t.Fatal("the readers find nothing")
		}
	}
	stop.Store(true)
	wg.Wait()
	wantSound(t, s)
}

// Garbage in the memory leads a reader nowhere else.
func TestReadersSurviveGarbage(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	garbage := make([]byte, bucketsAt+64<<10)
	for range 200 {
		for i := range len(garbage) / 8 {
			binary.LittleEndian.PutUint64(garbage[8*i:], random.Uint64()>>random.IntN(64))
		}
		for i := range 50 {
			reader{garbage}.get(fmt.Append(nil, i))
		}
	}
}

func BenchmarkReadShared(b *testing.B) {
	memory, err := mapMemory(MappingSize(64 << 20))
	if err != nil {
		b.Fatal(err)
	}
	s, err := New(Options{MemoryLimit: 64 << 20, Memory: memory})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	keys := make([][]byte, 10_000)
	for i := range keys {
		keys[i] = fmt.Append(nil, "some:key:", i)
		if err := s.Set(keys[i], make([]byte, 64), 0); err != nil {
			b.Fatal(err)
		}
	}
	r := reader{memory}
	for i := 0; b.Loop(); i++ {
		if _, result := r.get(keys[i%len(keys)]); result != foundValue {
			b.Fatal("no value")
		}
	}
}
