package server

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ephpm/kv"
)

// allocated is how much memory the system gave a store.
func allocated(t *testing.T, s *siteStore) int64 {
	t.Helper()
	info, err := s.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

func TestStoresTakeAndGiveBackMemory(t *testing.T) {
	s, err := openStore("a.example", defaultKV())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	if got := allocated(t, s); got > 100_000 {
		t.Errorf("an empty store has %d bytes", got)
	}
	for i := range 20_000 {
		if err := s.Set(fmt.Append(nil, i), bytes.Repeat([]byte("x"), 1000+i%100), 0); err != nil {
			t.Fatal(err)
		}
	}
	if got, counted := allocated(t, s), s.Stats().Bytes; counted < got*85/100 || counted > got*115/100 {
		t.Errorf("a store has %d bytes and counts %d", got, counted)
	}
	s.Flush()
	if got := allocated(t, s); got > 200_000 {
		t.Errorf("after Flush a store has %d bytes", got)
	}
}

// A directory that is replaced is a site again before the old one has ended.
func TestAStoreOutlivesASiteThatComesAgain(t *testing.T) {
	c := defaultKV()
	c.Snapshot = t.TempDir()
	s := &stores{config: c, log: quiet}
	t.Cleanup(s.close)
	open := func() *siteStore {
		t.Helper()
		store, err := s.open("a.example")
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	first := open()
	if second := open(); second != first {
		t.Fatal("the site that came again has another store while the first is in use")
	}
	cuts := 0 // how often the clients of the store were cut
	cut := func(*kv.Store) { cuts++ }
	if s.remove(t.Context(), "a.example", cut); len(s.now()) != 1 || cuts != 0 {
		t.Errorf("with the old site %d stores are left and clients were cut %d times; want the store and its clients kept for the new one", len(s.now()), cuts)
	}
	if err := first.Set([]byte("k"), []byte("v"), 0); err != nil {
		t.Fatal(err)
	}
	if s.remove(t.Context(), "a.example", cut); len(s.now()) != 0 || cuts != 1 {
		t.Errorf("after the last site of its name %d stores are left and clients were cut %d times; want none, once", len(s.now()), cuts)
	}
	if v, ok, err := open().Get([]byte("k")); err != nil || !ok || string(v) != "v" {
		t.Errorf("after it was saved and loaded the key is %q, %v, %v, want v", v, ok, err)
	}
}

// What workers get can be mapped for reading, and for nothing else.
func TestStoresAreSharedForReadingOnly(t *testing.T) {
	s, err := openStore("a.example", defaultKV())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	fd, size := int(s.file.Fd()), len(s.Memory())
	if b, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
		_ = unix.Munmap(b)
		t.Error("it can be mapped for writing")
	}
	if err := unix.Ftruncate(fd, 0); err == nil {
		t.Error("it can be cut off")
	}
	b, err := unix.Mmap(fd, 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	if err := s.Set([]byte("key that is seen"), []byte("v"), 0); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b[:1<<26], []byte("key that is seen")) {
		t.Error("what is stored is not in the mapping")
	}
}
