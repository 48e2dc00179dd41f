package kv

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// The first answers of the reference implementation, for keys and texts of
// 0, 1, 2, …
func TestSipHash(t *testing.T) {
	const k0, k1 = 0x0706050403020100, 0x0f0e0d0c0b0a0908
	for n, want := range []uint64{0xabac0158050fc4dc, 0xc9f49bf37d57ca93, 0x82cb9b024dc7d44d} {
		text := []byte{0, 1, 2}[:n]
		if got := sipHash(k0, k1, text); got != want {
			t.Errorf("hash of %v = %#x, want %#x", text, got, want)
		}
	}
}

// wantSound fails unless what the store counts is what is in its memory.
func wantSound(t *testing.T, s *Store) {
	t.Helper()
	m, tab := s.table.mem, &s.table
	live := make([]int, len(tab.segs))
	count, volatile, large := 0, 0, 0
	for i := range tab.buckets {
		before := volatile
		for r := m.bucket(i); r != 0; r = m.next(r) {
			count++
			if got := tab.bucketOf(m.hash(r)); got != i {
				t.Fatalf("key %q is in bucket %d, want %d", m.key(r), i, got)
			}
			if got := tab.hashOf(m.key(r)); got != m.hash(r) {
				t.Fatalf("key %q has hash %#x, want %#x", m.key(r), m.hash(r), got)
			}
			if m.expiry(r) != 0 {
				volatile++
			}
			if r.at() >= tab.largeAt {
				large += m.size(r)
			} else {
				live[(r.at()-tab.segAt)/tab.segSize] += m.size(r)
			}
		}
		if next, ok := tab.expiring.next(i); (ok && next == i) != (volatile > before) {
			t.Fatalf("bucket %d has %d keys with a TTL, noted %v", i, volatile-before, ok && next == i)
		}
	}
	if count != tab.count || volatile != tab.volatile {
		t.Fatalf("%d keys, %d with a TTL, counted as %d and %d", count, volatile, tab.count, tab.volatile)
	}
	committed := int64(bucketsAt) + 4*int64(tab.buckets-stripeCount) + int64(large)
	for _, words := range tab.expiring.levels {
		committed += 8 * int64(len(words))
	}
	dead := int64(0)
	for i, seg := range tab.segs {
		if seg.live != live[i] {
			t.Fatalf("segment %d has %d live bytes, counted as %d", i, live[i], seg.live)
		}
		if !seg.inUse {
			continue
		}
		committed += int64(tab.segSize)
		if i == tab.active {
			dead += int64(seg.fill - seg.live)
		} else {
			dead += int64(tab.segSize - seg.live)
		}
	}
	if committed != tab.committed || dead != tab.dead {
		t.Fatalf("%d bytes in use, %d of them dead, counted as %d and %d", committed, dead, tab.committed, tab.dead)
	}
	if committed > tab.limit {
		t.Fatalf("%d bytes in use, the limit is %d", committed, tab.limit)
	}
	free := 0
	for i, r := range tab.runs {
		free += r.n
		if i > 0 && tab.runs[i-1].page+tab.runs[i-1].n >= r.page {
			t.Fatalf("free pages are not in order: %v", tab.runs)
		}
	}
	if want := (len(m)-tab.largeAt-large)/pageSize - free; want != 0 {
		t.Fatalf("%d pages are lost", want)
	}
	for i := range uint32(stripeCount) {
		if m.u32(stripesAt+4*int(i))%2 != 0 {
			t.Fatalf("stripe %d is left open", i)
		}
	}
}

// Any sequence of writes leaves what a map would have, but for what was evicted.
func TestStoreAgainstAMap(t *testing.T) {
	for _, policy := range Policies {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			s := newStore(t, Options{MemoryLimit: 1 << 20, Policy: policy})
			random := rand.New(rand.NewPCG(1, uint64(len(policy))))
			want := map[string][]byte{}
			evicted := uint64(0)
			refused := 0
			for step := range 30_000 {
				key := fmt.Appendf(nil, "key %d", random.IntN(4000))
				switch random.IntN(10) {
				case 0, 1:
					_, had := want[string(key)]
					if got := s.Del(key); (got == 1) != had && s.Stats().Evictions == 0 {
						t.Fatalf("step %d: Del = %d, had %v", step, got, had)
					}
					delete(want, string(key))
				case 2:
					var pairs []Pair
					for range random.IntN(8) {
						pairs = append(pairs, Pair{fmt.Appendf(nil, "key %d", random.IntN(4000)), fmt.Appendf(nil, "m%d", step)})
					}
					if err := s.MSet(pairs, 0); err == nil {
						for _, p := range pairs {
							want[string(p.Key)] = p.Value
						}
					} else if !errors.Is(err, ErrFull) {
						t.Fatal(err)
					}
				case 3:
					if n, err := s.Append(key, []byte("tail")); err == nil {
						value := append(bytes.Clone(want[string(key)]), "tail"...)
						if n == 4 {
							value = []byte("tail") // it had been evicted
						}
						want[string(key)] = value
					} else if !errors.Is(err, ErrFull) {
						t.Fatal(err)
					}
				default:
					size := random.IntN(300)
					if random.IntN(200) == 0 {
						size = random.IntN(60_000)
					}
					value := bytes.Repeat([]byte{byte(step)}, size)
					if err := s.Set(key, value, 0); err == nil {
						want[string(key)] = value
					} else if errors.Is(err, ErrFull) {
						refused++
					} else {
						t.Fatal(err)
					}
				}
				if step%500 == 0 {
					wantSound(t, s)
					s.tidy()
				}
			}
			wantSound(t, s)
			evicted = s.Stats().Evictions
			missing := 0
			for key, value := range want {
				got, ok, err := s.Get([]byte(key))
				if !ok {
					missing++
				} else if err != nil || !bytes.Equal(got, value) {
					t.Fatalf("Get(%q) = %d bytes, %v, want %d bytes", key, len(got), err, len(value))
				}
			}
			switch policy {
			case NoEviction, VolatileLRU: // nothing has a TTL
				if evicted != 0 || missing != 0 || refused == 0 {
					t.Errorf("%d evicted, %d missing, %d refused, want none, none and some", evicted, missing, refused)
				}
			default:
				if evicted == 0 || refused != 0 {
					t.Errorf("%d evicted, %d refused, want some and none", evicted, refused)
				}
			}
			if got, most := s.Stats().Bytes, int64(1<<20); got < most*8/10 || got > most {
				t.Errorf("%d bytes in use of a full store, want nearly %d", got, most)
			}
			t.Logf("%d keys, %d evicted, %d refused, %d dead", s.Keys(), evicted, refused, s.table.dead)
			s.Flush()
			wantSound(t, s)
			if s.Keys() != 0 {
				t.Errorf("%d keys after Flush", s.Keys())
			}
		})
	}
}

func TestASetThatDoesNotFitKeepsTheOldValue(t *testing.T) {
	s := newStore(t, Options{MemoryLimit: 1 << 20})
	mustSet(t, s, "k", "old")
	for _, size := range []int{1 << 20, 2 << 20, MaxValue, MaxValue + 1} {
		err := s.Set([]byte("k"), make([]byte, size), 0)
		if want := ErrFull; size > MaxValue {
			want = ErrTooLong
			if !errors.Is(err, want) {
				t.Errorf("Set of %d bytes: %v, want %v", size, err, want)
			}
		} else if !errors.Is(err, want) {
			t.Errorf("Set of %d bytes: %v, want %v", size, err, want)
		}
		wantValue(t, s, "k", "old")
	}
	if err := s.Set(make([]byte, MaxKey+1), nil, 0); !errors.Is(err, ErrTooLong) {
		t.Errorf("Set of a long key: %v, want ErrTooLong", err)
	}
	big := bytes.Repeat([]byte("x"), 600<<10)
	for range 3 {
		if err := s.Set([]byte("big"), big, 0); err != nil {
			t.Fatalf("Set of a big value in place of another: %v", err)
		}
	}
	pairs := []Pair{{[]byte("k"), []byte("new")}, {[]byte("other"), big}}
	if err := s.MSet(pairs, 0); !errors.Is(err, ErrFull) {
		t.Errorf("MSet: %v, want ErrFull", err)
	}
	wantValue(t, s, "k", "old")
	wantNone(t, s, "other")
	wantSound(t, s)
}

func TestScanReturnsEveryKeyThatStays(t *testing.T) {
	s := newStore(t, Options{MemoryLimit: 16 << 20})
	for i := range 5000 {
		mustSet(t, s, fmt.Sprint("stays:", i), "v")
	}
	seen := map[string]bool{}
	var cursor uint64
	for round := 0; ; round++ {
		keys, next := s.Scan([]byte("stays:"), cursor, 10)
		for _, key := range keys {
			seen[string(key)] = true
		}
		for i := range 20 { // the table grows meanwhile
			mustSet(t, s, fmt.Sprint("new:", round, i), "v")
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	if len(seen) != 5000 {
		t.Errorf("%d keys, want 5000", len(seen))
	}
}

func TestLRUKeepsWhatIsRead(t *testing.T) {
	for _, policy := range []Policy{AllKeysLRU, AllKeysLFU} {
		s := newStore(t, Options{MemoryLimit: 1 << 20, Policy: policy})
		value := make([]byte, 200)
		for i := range 100 {
			mustSet(t, s, fmt.Sprint("hot", i), string(value))
		}
		var hashes []uint64
		for i := range 50 { // read by another process
			hashes = append(hashes, sipHash(s.table.k0, s.table.k1, fmt.Append(nil, "hot", i)))
		}
		for i := range 20_000 {
			mustSet(t, s, fmt.Sprint("cold", i), string(value))
			if i%20 == 0 {
				s.Touch(hashes)
				for j := 50; j < 100; j++ {
					_, _, _ = s.Get(fmt.Append(nil, "hot", j))
				}
			}
		}
		left := 0
		for i := range 100 {
			if s.Exists(fmt.Append(nil, "hot", i)) {
				left++
			}
		}
		if left < 95 {
			t.Errorf("%s: %d of 100 keys that are in use are left", policy, left)
		}
	}
}

func TestVolatileLRUDropsOnlyKeysWithATTL(t *testing.T) {
	s := newStore(t, Options{MemoryLimit: 1 << 20, Policy: VolatileLRU})
	for i := range 500 {
		mustSet(t, s, fmt.Sprint("stays", i), "v")
	}
	for i := range 20_000 {
		if err := s.Set(fmt.Append(nil, "goes", i), make([]byte, 200), 1e15); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 500 {
		wantValue(t, s, fmt.Sprint("stays", i), "v")
	}
	if s.Stats().Evictions == 0 {
		t.Error("nothing was evicted")
	}
}

func TestCompressionIsTransparent(t *testing.T) {
	for _, c := range Compressions {
		for level := 1; level <= 9; level += 4 {
			s := newStore(t, Options{Compression: c, CompressLevel: level, MemoryLimit: 16 << 20})
			text := bytes.Repeat([]byte("the same again and "), 10_000)
			noise := make([]byte, 5000)
			for i := range noise {
				noise[i] = byte(rand.Uint32())
			}
			for i, value := range [][]byte{text, noise, []byte("short"), {}} {
				key := fmt.Append(nil, i)
				if err := s.Set(key, value, 0); err != nil {
					t.Fatal(err)
				}
				if got, ok, err := s.Get(key); !ok || err != nil || !bytes.Equal(got, value) {
					t.Errorf("%s %d: Get of %d bytes: %d bytes, %v, %v", c, level, len(value), len(got), ok, err)
				}
				if n, err := s.Len(key); n != len(value) || err != nil {
					t.Errorf("%s %d: Len = %d, %v, want %d", c, level, n, err, len(value))
				}
			}
			if n, err := s.Append([]byte("0"), []byte("end")); n != len(text)+3 || err != nil {
				t.Errorf("%s %d: Append = %d, %v", c, level, n, err)
			}
			if got, _, err := s.Get([]byte("0")); string(got) != string(text)+"end" {
				t.Errorf("%s %d: Get after Append: %d bytes, %v", c, level, len(got), err)
			}
			if used := s.Stats().Bytes; (c != CompressNone) != (used < 100_000) {
				t.Errorf("%s %d: %d bytes in use", c, level, used)
			}
		}
	}
}
