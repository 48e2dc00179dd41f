package kv

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func newStore(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// mustSet stores a string that never expires.
func mustSet(t *testing.T, s *Store, key, value string) {
	t.Helper()
	if err := s.Set([]byte(key), []byte(value), 0); err != nil {
		t.Fatalf("Set(%q): %v", key, err)
	}
}

// wantValue fails unless the key holds the string.
func wantValue(t *testing.T, s *Store, key, want string) {
	t.Helper()
	got, ok, err := s.Get([]byte(key))
	if !ok || err != nil || string(got) != want {
		t.Errorf("Get(%q) = %q, %v, %v, want %q", key, got, ok, err, want)
	}
}

// wantNone fails if the key is there.
func wantNone(t *testing.T, s *Store, key string) {
	t.Helper()
	if got, ok, err := s.Get([]byte(key)); ok || err != nil {
		t.Errorf("Get(%q) = %q, %v, %v, want none", key, got, ok, err)
	}
}

func TestKeysAndValuesAreByteStrings(t *testing.T) {
	s := newStore(t, Options{})
	for _, text := range []string{"", "a", "\x00", "a\x00b", "\xff\xfe", "\r\n"} {
		mustSet(t, s, text, "value of "+text)
		mustSet(t, s, "key of "+text, text)
	}
	for _, text := range []string{"", "a", "\x00", "a\x00b", "\xff\xfe", "\r\n"} {
		wantValue(t, s, text, "value of "+text)
		wantValue(t, s, "key of "+text, text)
	}
}

func TestWrongTypeIsAnErrorOnEveryPath(t *testing.T) {
	s := newStore(t, Options{})
	mustSet(t, s, "s", "text")
	h, str := []byte("h"), []byte("s")
	if _, err := s.HSet(h, Pair{[]byte("f"), []byte("v")}); err != nil {
		t.Fatal(err)
	}
	x := []byte("x")
	for name, call := range map[string]func() error{
		"Get":       func() error { _, _, err := s.Get(h); return err },
		"Len":       func() error { _, err := s.Len(h); return err },
		"MGet":      func() error { _, err := s.MGet(MaxValue, [][]byte{str, h}); return err },
		"GetSet":    func() error { _, _, err := s.GetSet(h, x); return err },
		"GetDel":    func() error { _, _, err := s.GetDel(h); return err },
		"Append":    func() error { _, err := s.Append(h, x); return err },
		"SetRange":  func() error { _, err := s.SetRange(h, 0, x); return err },
		"CAS":       func() error { _, err := s.CAS(h, x, x, 0); return err },
		"IncrBy":    func() error { _, err := s.IncrBy(h, 1); return err },
		"Wait":      func() error { _, _, err := s.Wait(context.Background(), h, 0); return err },
		"HSet":      func() error { _, err := s.HSet(str, Pair{x, x}); return err },
		"HSetNX":    func() error { _, err := s.HSetNX(str, x, x); return err },
		"HGet":      func() error { _, _, err := s.HGet(str, x); return err },
		"HMGet":     func() error { _, err := s.HMGet(MaxValue, str, x); return err },
		"HDel":      func() error { _, err := s.HDel(str, x); return err },
		"HGetAll":   func() error { _, err := s.HGetAll(str); return err },
		"HLen":      func() error { _, err := s.HLen(str); return err },
		"HIncrBy":   func() error { _, err := s.HIncrBy(str, x, 1); return err },
		"HScan":     func() error { _, _, err := s.HScan(str, 0, 10); return err },
		"Set … GET": func() error { _, err := s.SetWith(h, x, SetOptions{WantOld: true}); return err },
	} {
		if err := call(); !errors.Is(err, ErrWrongType) {
			t.Errorf("%s: %v, want ErrWrongType", name, err)
		}
	}
	wantValue(t, s, "s", "text")
	if got := s.Type(h); got != TypeHash {
		t.Errorf("Type = %s, want hash", got)
	}
}

func TestCountersRefuseWhatIsNoIntegerAndOverflow(t *testing.T) {
	s := newStore(t, Options{})
	for _, text := range []string{"", " 1", "1 ", "+1", "01", "-0", "1.0", "abc", "9223372036854775808", "1e3"} {
		mustSet(t, s, "n", text)
		if _, err := s.IncrBy([]byte("n"), 1); !errors.Is(err, ErrNotInteger) {
			t.Errorf("Incr of %q: %v, want ErrNotInteger", text, err)
		}
	}
	for _, test := range []struct{ have, by int64 }{
		{math.MaxInt64, 1}, {math.MinInt64, -1}, {1, math.MaxInt64}, {-2, math.MinInt64},
	} {
		text := fmt.Sprint(test.have)
		mustSet(t, s, "n", text)
		if _, err := s.IncrBy([]byte("n"), test.by); !errors.Is(err, ErrOverflow) {
			t.Errorf("IncrBy(%d, %d): %v, want ErrOverflow", test.have, test.by, err)
		}
		wantValue(t, s, "n", text)
	}
	if got, err := s.IncrBy([]byte("new"), math.MinInt64); got != math.MinInt64 || err != nil {
		t.Errorf("IncrBy of a new key = %d, %v", got, err)
	}
	if got, err := s.IncrBy([]byte("new"), 0); got != math.MinInt64 || err != nil {
		t.Errorf("IncrBy of 0 = %d, %v", got, err)
	}
}

func TestExpiredKeysAreNotThereAndAreSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, Options{})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Run(ctx); close(done) }()
		for i := range 1000 {
			if err := s.Set(fmt.Appendf(nil, "k%d", i), []byte("v"), 500*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		mustSet(t, s, "stays", "v")
		if ttl, ok := s.TTL([]byte("k0")); !ok || ttl != 500*time.Millisecond {
			t.Errorf("TTL = %v, %v", ttl, ok)
		}
		time.Sleep(499 * time.Millisecond)
		wantValue(t, s, "k0", "v")
		time.Sleep(time.Millisecond)
		wantNone(t, s, "k0")
		time.Sleep(10 * time.Second)
		if st := s.Stats(); st.Keys != 1 || st.Expired != 1000 {
			t.Errorf("after the sweep: %d keys, %d expired, want 1 and 1000", st.Keys, st.Expired)
		}
		stop()
		<-done
	})
}

func TestInvalidTTLsAreErrors(t *testing.T) {
	s := newStore(t, Options{})
	mustSet(t, s, "k", "v")
	k, v := []byte("k"), []byte("new")
	for name, call := range map[string]func() error{
		"Set":      func() error { return s.Set(k, v, -1) },
		"SetNX":    func() error { _, err := s.SetNX(k, v, -time.Second); return err },
		"MSet":     func() error { return s.MSet([]Pair{{k, v}}, -1) },
		"CAS":      func() error { _, err := s.CAS(k, []byte("v"), v, -1); return err },
		"Expire":   func() error { _, err := s.Expire(k, -1); return err },
		"Expire 0": func() error { _, err := s.Expire(k, 0); return err },
		"Lock":     func() error { _, err := s.Lock(context.Background(), k, -1); return err },
	} {
		if err := call(); !errors.Is(err, ErrInvalidTTL) {
			t.Errorf("%s: %v, want ErrInvalidTTL", name, err)
		}
	}
	wantValue(t, s, "k", "v")
}

func TestWaitWakesOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, Options{})
		key := []byte("k")
		version, value, err := s.Current(key)
		if version != 0 || value != nil || err != nil {
			t.Fatalf("Current of no key = %d, %q, %v", version, value, err)
		}
		for _, change := range []struct {
			name  string
			do    func()
			value string
		}{
			{"Set", func() { mustSet(t, s, "k", "1") }, "1"},
			{"IncrBy", func() { _, _ = s.IncrBy(key, 1) }, "2"},
			{"Set of the same", func() { mustSet(t, s, "k", "2") }, "2"},
			{"Del", func() { s.Del(key) }, ""},
			{"Rename", func() { mustSet(t, s, "other", "3"); _, _, _ = s.Rename([]byte("other"), key, false) }, "3"},
			{"Flush", func() { s.Flush() }, ""},
		} {
			var got []byte
			woken := make(chan error)
			go func() {
				var err error
				version, got, err = s.Wait(t.Context(), key, version)
				woken <- err
			}()
			synctest.Wait()
			change.do()
			if err := <-woken; err != nil || string(got) != change.value {
				t.Errorf("%s: Wait = %q, %v, want %q", change.name, got, err, change.value)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := s.Wait(ctx, key, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait without a change: %v", err)
		}
		if st := s.Stats(); st.Waiters != 0 || len(s.watches) != 0 {
			t.Errorf("%d waiters, %d watches are left", st.Waiters, len(s.watches))
		}
	})
}

func TestLocksGoFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, Options{})
		name := []byte("l")
		first, err := s.Lock(t.Context(), name, 0)
		if err != nil {
			t.Fatal(err)
		}
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				token, err := s.Lock(t.Context(), name, 0)
				if err != nil {
					t.Error(err)
				}
				order <- i
				if !s.Unlock(token) {
					t.Error("Unlock by the holder is false")
				}
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Lock(ctx, name, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock past its time: %v", err)
		}
		if s.Unlock("nobody's") {
			t.Error("Unlock with a wrong token is true")
		}
		if !s.Unlock(first) || s.Unlock(first) {
			t.Error("a token unlocks once")
		}
		for want := range 3 {
			if got := <-order; got != want {
				t.Errorf("turn of %d, want %d", got, want)
			}
		}
		synctest.Wait()
		if st := s.Stats(); st.Locks != 0 {
			t.Errorf("%d locks are left", st.Locks)
		}
	})
}

func TestLocksEndWithTheirTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, Options{})
		name := []byte("l")
		old, err := s.Lock(t.Context(), name, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		token, err := s.Lock(t.Context(), name, 0)
		if err != nil || time.Since(start) != time.Second {
			t.Errorf("the next holder came after %v, %v, want 1s", time.Since(start), err)
		}
		if s.Unlock(old) {
			t.Error("a token that expired still unlocks")
		}
		if !s.Unlock(token) {
			t.Error("the new holder cannot unlock")
		}
	})
}
