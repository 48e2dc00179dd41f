package kv

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

// allocated returns how many bytes of heap do takes. No other test may run.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Not parallel: it looks at the heap.
func TestWhatCannotFitIsNotBuiltFirst(t *testing.T) {
	const limit = 64 << 20
	big := bytes.Repeat([]byte("0123456789abcdef"), 40<<20/16)
	for _, compression := range Compressions {
		s := newStore(t, Options{MemoryLimit: limit, Compression: compression, CompressMin: 1 << 30})
		if err := s.Set([]byte("big"), big, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := s.HSet([]byte("hash"), Pair{[]byte("f"), big[:10<<20]}); err != nil {
			t.Fatal(err)
		}
		k := []byte("k")
		for name, call := range map[string]func() error{
			"SetRange":            func() error { _, err := s.SetRange(k, MaxValue-1, k); return err },
			"SetRange beside big": func() error { _, err := s.SetRange(k, 30<<20, k); return err },
			"Append to big":       func() error { _, err := s.Append([]byte("big"), big[:20<<20]); return err },
			"SetRange of big":     func() error { _, err := s.SetRange([]byte("big"), 60<<20, k); return err },
			"HSet":                func() error { _, err := s.HSet(k, Pair{k, big}); return err },
			"HSet to a hash":      func() error { _, err := s.HSet([]byte("hash"), Pair{k, big}); return err },
			"MSet":                func() error { return s.MSet([]Pair{{[]byte("big"), k}, {k, big}, {k, big}}, 0) },
		} {
			var err error
			if got := allocated(func() { err = call() }); !errors.Is(err, ErrFull) || got > 1<<20 {
				t.Errorf("%s, %s: %v, with %d bytes on the way, want ErrFull and hardly any", compression, name, err, got)
			}
		}
		for name, call := range map[string]func() error{
			"Incr":        func() error { _, err := s.IncrBy([]byte("big"), 1); return err },
			"IncrByFloat": func() error { _, err := s.IncrByFloat([]byte("big"), 1); return err },
			"CAS":         func() error { _, err := s.CAS([]byte("big"), k, k, 0); return err },
			"DelIf":       func() error { _, err := s.DelIf([]byte("big"), k); return err },
			"Range":       func() error { _, err := s.Range([]byte("big"), -2, -1); return err },
			"HStrLen":     func() error { _, _, err := s.HStrLen([]byte("hash"), []byte("f")); return err },
			"Append":      func() error { _, err := s.Append([]byte("big"), k); return err },
		} {
			if got := allocated(func() { _ = call() }); got > 1<<20 {
				t.Errorf("%s, %s: %d bytes on the way, want hardly any", compression, name, got)
			}
		}
		wantSound(t, s)
	}
}

// Compressed values that are no numbers are not decompressed to find out.
func TestLongCompressedValuesAreNoNumbers(t *testing.T) {
	s := newStore(t, Options{Compression: CompressZstd})
	if err := s.Set([]byte("k"), bytes.Repeat([]byte("1"), 32<<20), 0); err != nil {
		t.Fatal(err)
	}
	var errInt, errFloat error
	got := allocated(func() {
		_, errInt = s.IncrBy([]byte("k"), 1)
		_, errFloat = s.IncrByFloat([]byte("k"), 1)
	})
	if !errors.Is(errInt, ErrNotInteger) || !errors.Is(errFloat, ErrNotFloat) || got > 1<<20 {
		t.Errorf("%v and %v, with %d bytes on the way, want ErrNotInteger, ErrNotFloat and hardly any", errInt, errFloat, got)
	}
}

// Any sequence of edits leaves what it leaves in a slice.
func TestEditsAgainstASlice(t *testing.T) {
	for _, compression := range []Compression{CompressNone, CompressZstd} {
		t.Run(string(compression), func(t *testing.T) {
			t.Parallel()
			s := newStore(t, Options{MemoryLimit: 2 << 20, Compression: compression, CompressMin: 100})
			key := []byte("k")
			var want []byte
			steps := 3000
			if compression != CompressNone {
				steps = 600
			}
			for step := range steps {
				part := bytes.Repeat([]byte{byte(step)}, step%37)
				at := (step * 7919) % 3000
				switch step % 5 {
				case 0, 1:
					at = len(want)
					if n, err := s.Append(key, part); err != nil || n != at+len(part) {
						t.Fatalf("step %d: Append = %d, %v", step, n, err)
					}
				default:
					if n, err := s.SetRange(key, at, part); err != nil || n != max(len(want), at+len(part)) && len(part) > 0 {
						t.Fatalf("step %d: SetRange = %d, %v", step, n, err)
					}
				}
				if len(part) > 0 {
					want = append(want, make([]byte, max(0, at+len(part)-len(want)))...)
					copy(want[at:], part)
				}
				if step%100 == 99 {
					wantValue(t, s, "k", string(want))
					from, to := int64(step%50-25), int64(step%70-35)
					a, b := clip(from, to, int64(len(want)))
					if got, err := s.Range(key, from, to); err != nil || string(got) != string(want[min(a, b):b]) {
						t.Fatalf("Range(%d, %d) = %q, %v", from, to, got, err)
					}
					// Other memory than before, which somebody else has written.
					mustSet(t, s, fmt.Sprint("other", step), string(bytes.Repeat([]byte("x"), 5000)))
					s.Del(fmt.Append(nil, "other", step))
				}
				if step%400 == 399 {
					s.Del(key)
					want = nil
					if n, err := s.Append(key, []byte("a")); err != nil || n != 1 {
						t.Fatal(n, err)
					}
					want = append(want, 'a')
				}
			}
			wantSound(t, s)
		})
	}
}

// An edit of a compressed string lets go of the lock meanwhile, and loses nothing.
func TestEditsOfACompressedStringDoNotOverwriteEachOther(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{Compression: CompressGzip, CompressMin: 10})
	key := []byte("k")
	if err := s.Set(key, bytes.Repeat([]byte("."), 1000), time.Hour); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if _, err := s.Append(key, []byte("ab")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n, err := s.Len(key); n != 1000+8*50*2 || err != nil {
		t.Errorf("Len = %d, %v, want %d", n, err, 1000+8*50*2)
	}
	if ttl, _ := s.TTL(key); ttl <= 0 {
		t.Error("the TTL is gone")
	}
}

// With a policy that evicts, what cannot fit costs no other key.
func TestWhatCannotFitDropsNothing(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{MemoryLimit: 1 << 20, Policy: AllKeysLRU})
	for i := range 100 {
		mustSet(t, s, fmt.Sprint(i), "v")
	}
	half := bytes.Repeat([]byte("x"), 600_000)
	for name, call := range map[string]func() error{
		"MSet":     func() error { return s.MSet([]Pair{{[]byte("a"), half}, {[]byte("b"), half}}, 0) },
		"SetRange": func() error { _, err := s.SetRange([]byte("0"), 1<<20, half); return err },
	} {
		if err := call(); !errors.Is(err, ErrFull) || s.Keys() != 100 {
			t.Errorf("%s: %v, and %d keys are left, want ErrFull and 100", name, err, s.Keys())
		}
	}
}
