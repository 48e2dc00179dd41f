//go:build !race

// The race detector's own memory is the process's, too.

package kv

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// resident returns the bytes of memory that the process has, shared memory
// included.
func resident(t testing.TB) int64 {
	t.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n * int64(os.Getpagesize())
}

// What counts against the limit is what the process grows by.
func TestBytesAreWhatTheProcessGrowsBy(t *testing.T) {
	s := newStore(t, Options{MemoryLimit: 128 << 20})
	before := resident(t)
	for i := range 200_000 {
		mustSet(t, s, fmt.Sprintf("key:%012d", i), strings.Repeat("v", 20+i%300))
	}
	for i := range 1000 {
		mustSet(t, s, fmt.Sprint("large", i), strings.Repeat("v", 20_000+7*i))
	}
	for i := range 2000 {
		if _, err := s.HSet([]byte(fmt.Sprint("hash", i%20)), Pair{fmt.Append(nil, i), []byte("value")}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string) {
		t.Helper()
		grown, counted := resident(t)-before, s.Stats().Bytes
		if counted < grown*85/100 || counted > grown*115/100 {
			t.Errorf("%s: the process grew by %d bytes, counted are %d", when, grown, counted)
		}
	}
	check("full")
	for i := range 200_000 {
		if i%2 != 0 {
			s.Del(fmt.Appendf(nil, "key:%012d", i))
		}
	}
	for i := range 1000 {
		s.Del(fmt.Append(nil, "large", i))
	}
	for range 100 {
		s.tidy()
	}
	if used := s.Stats().Bytes; used > 45<<20 {
		t.Errorf("%d bytes in use of which most are dead", used)
	}
	check("after deletes")
}

func BenchmarkGet(b *testing.B) {
	s, keys := benchStore(b)
	value := make([]byte, 0, 1000)
	for i := 0; b.Loop(); i++ {
		if _, ok, _ := s.AppendValue(value, keys[i%len(keys)]); !ok {
			b.Fatal("no value")
		}
	}
}

func BenchmarkSet(b *testing.B) {
	s, keys := benchStore(b)
	value := make([]byte, 64)
	for i := 0; b.Loop(); i++ {
		if err := s.Set(keys[i%len(keys)], value[:32+i%32], 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIncr(b *testing.B) {
	s, keys := benchStore(b)
	if err := s.Set(keys[0], []byte("0"), 0); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.IncrBy(keys[0], 1); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFull stores new keys in a full store that evicts.
func BenchmarkFull(b *testing.B) {
	for _, policy := range []Policy{AllKeysLRU, AllKeysLFU, AllKeysRandom} {
		b.Run(string(policy), func(b *testing.B) {
			s, err := New(Options{MemoryLimit: 32 << 20, Policy: policy})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			value := make([]byte, 100)
			i := 0
			for ; s.Stats().Evictions == 0; i++ {
				_ = s.Set(fmt.Append(nil, "key", i), value, 0)
			}
			for b.Loop() {
				i++
				if err := s.Set(fmt.Append(nil, "key", i), value[:i%100], 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMillion reports what a key of 100 bytes costs beside its own bytes.
func BenchmarkMillion(b *testing.B) {
	for b.Loop() {
		s, err := New(Options{MemoryLimit: 512 << 20})
		if err != nil {
			b.Fatal(err)
		}
		before := resident(b)
		for i := range 1_000_000 {
			if err := s.Set(fmt.Appendf(nil, "%0100d", i), []byte("xxx"), 0); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(resident(b)-before)/1e6, "bytes/key")
		s.Close()
	}
}

func benchStore(b *testing.B) (*Store, [][]byte) {
	s, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	keys := make([][]byte, 10_000)
	for i := range keys {
		keys[i] = fmt.Append(nil, "some:key:", i)
		if err := s.Set(keys[i], make([]byte, 64), 0); err != nil {
			b.Fatal(err)
		}
	}
	return s, keys
}
