package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestHashesKeepTheirFields(t *testing.T) {
	s := newStore(t, Options{})
	key := []byte("h")
	want := map[string]string{}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 5000 {
		field := fmt.Sprint("f", random.IntN(300))
		switch random.IntN(4) {
		case 0:
			n, err := s.HDel(key, []byte(field))
			if _, had := want[field]; err != nil || (n == 1) != had {
				t.Fatalf("step %d: HDel(%s) = %d, %v", i, field, n, err)
			}
			delete(want, field)
		default:
			value := fmt.Sprintf("%0*d", random.IntN(40), i)
			n, err := s.HSet(key, Pair{[]byte(field), []byte(value)})
			if _, had := want[field]; err != nil || (n == 0) != had {
				t.Fatalf("step %d: HSet(%s) = %d, %v", i, field, n, err)
			}
			want[field] = value
		}
		if n, err := s.HLen(key); n != len(want) || err != nil {
			t.Fatalf("step %d: HLen = %d, %v, want %d", i, n, err, len(want))
		}
	}
	pairs, err := s.HGetAll(key)
	if err != nil || len(pairs) != len(want) {
		t.Fatalf("HGetAll: %d fields, %v, want %d", len(pairs), err, len(want))
	}
	for _, p := range pairs {
		if want[string(p.Key)] != string(p.Value) {
			t.Errorf("%s = %q, want %q", p.Key, p.Value, want[string(p.Key)])
		}
		if got, ok, err := s.HGet(key, p.Key); !ok || err != nil || string(got) != string(p.Value) {
			t.Errorf("HGet(%s) = %q, %v, %v", p.Key, got, ok, err)
		}
	}
}

func TestAHashWithoutFieldsIsNoKey(t *testing.T) {
	s := newStore(t, Options{})
	key := []byte("h")
	if _, err := s.HSet(key, Pair{[]byte("f"), nil}); err != nil {
		t.Fatal(err)
	}
	if n, err := s.HDel(key, []byte("f"), []byte("f"), []byte("g")); n != 1 || err != nil {
		t.Errorf("HDel = %d, %v, want 1", n, err)
	}
	if s.Exists(key) {
		t.Error("the empty hash exists")
	}
}

// The index of the hash gets another size while it is scanned.
func TestHScanSurvivesGrowthAndShrinking(t *testing.T) {
	name := func(i int) []byte { return fmt.Appendf(nil, "f%d", i) }
	for what, change := range map[string]func(t *testing.T, s *Store, key []byte){
		"growth": func(t *testing.T, s *Store, key []byte) {
			for i := range 10_000 {
				if _, err := s.HSet(key, Pair{name(10_000 + i), nil}); err != nil {
					t.Fatal(err)
				}
			}
		},
		"shrinking": func(t *testing.T, s *Store, key []byte) {
			for i := range 10_000 {
				if i%20 != 0 {
					if _, err := s.HDel(key, name(i)); err != nil {
						t.Fatal(err)
					}
				}
			}
			// What has the index anew is a write without room.
			for i := range 10_000 {
				if _, err := s.HSet(key, Pair{name(20 * (i % 500)), fmt.Append(nil, i)}); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		s, key, seen := newStore(t, Options{}), []byte("h"), map[string]int{}
		for i := range 10_000 {
			if _, err := s.HSet(key, Pair{name(i), nil}); err != nil {
				t.Fatal(err)
			}
		}
		calls := 0
		for cursor := uint64(0); ; calls++ {
			pairs, next, err := s.HScan(key, cursor, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range pairs {
				seen[string(p.Key)]++
			}
			if calls == 10 {
				change(t, s, key)
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
		for i := 0; i < 10_000; i += 20 {
			if seen[string(name(i))] == 0 {
				t.Errorf("%s: %s was there all the time and not returned", what, name(i))
			}
		}
		if calls > 400 {
			t.Errorf("%s: a scan of at most 20,000 fields took %d calls", what, calls)
		}
	}
}

func TestHScanReturnsEveryFieldThatStays(t *testing.T) {
	s := newStore(t, Options{})
	key := []byte("h")
	for i := range 5000 {
		if _, err := s.HSet(key, Pair{fmt.Appendf(nil, "f%d", i), fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	var cursor uint64
	for round := 0; ; round++ {
		pairs, next, err := s.HScan(key, cursor, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pairs {
			seen[string(p.Key)] = true
		}
		if _, err := s.HDel(key, fmt.Appendf(nil, "f%d", 4000+round)); err != nil {
			t.Fatal(err)
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	for i := range 4000 {
		if !seen[fmt.Sprint("f", i)] {
			t.Fatalf("f%d was there all the time and not returned", i)
		}
	}
}
