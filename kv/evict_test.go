package kv

import (
	"fmt"
	"testing"
	"time"
)

// The only key that may go is found among very many.
func TestVolatileFindsTheOnlyKeyWithATTL(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{MemoryLimit: 4 << 20, Policy: VolatileLRU})
	for i := range 20_000 {
		mustSet(t, s, fmt.Sprint(i), "stays")
	}
	for round := range 10 {
		key := fmt.Sprint("goes", round)
		if err := s.Set([]byte(key), []byte("v"), time.Hour); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		first, second := s.evictLocked(), s.evictLocked()
		s.mu.Unlock()
		if !first || second {
			t.Fatalf("evicted %v, then %v, want one", first, second)
		}
		wantNone(t, s, key)
	}
	if got := s.Keys(); got != 20_000 {
		t.Errorf("%d keys, want 20000", got)
	}
	wantSound(t, s)
}

func BenchmarkEvictTheOnlyVolatileKey(b *testing.B) {
	s, err := New(Options{Policy: VolatileLRU})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for i := range 1_000_000 {
		if err := s.Set(fmt.Append(nil, i), []byte("stays"), 0); err != nil {
			b.Fatal(err)
		}
	}
	for i := 0; b.Loop(); i++ {
		if err := s.Set(fmt.Append(nil, "goes", i), []byte("v"), time.Hour); err != nil {
			b.Fatal(err)
		}
		s.mu.Lock()
		s.evictLocked()
		s.mu.Unlock()
	}
}
