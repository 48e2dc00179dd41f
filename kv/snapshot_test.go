package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func filled(t *testing.T, o Options) *Store {
	t.Helper()
	s := newStore(t, o)
	for i := range 3000 {
		mustSet(t, s, fmt.Sprint("key", i), fmt.Sprint("value", i))
	}
	mustSet(t, s, "large", string(bytes.Repeat([]byte("large "), 50_000)))
	if err := s.Set([]byte("ttl"), []byte("v"), time.Hour); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := s.HSet([]byte("hash"), Pair{fmt.Append(nil, "f", i), fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Expire([]byte("hash"), time.Hour); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSnapshotsComeBack(t *testing.T) {
	for _, c := range Compressions {
		path := filepath.Join(t.TempDir(), "kv")
		old := filled(t, Options{Compression: c})
		if n, err := old.Save(t.Context(), path); n != 3003 || err != nil {
			t.Fatalf("%s: Save = %d, %v", c, n, err)
		}
		s := newStore(t, Options{}) // whatever the compression was
		if n, err := s.Load(path); n != 3003 || err != nil {
			t.Fatalf("%s: Load = %d, %v", c, n, err)
		}
		wantValue(t, s, "key2999", "value2999")
		wantValue(t, s, "large", string(bytes.Repeat([]byte("large "), 50_000)))
		for _, key := range []string{"ttl", "hash"} {
			if ttl, ok := s.TTL([]byte(key)); !ok || ttl <= 59*time.Minute || ttl > time.Hour {
				t.Errorf("%s: TTL of %s = %v, %v", c, key, ttl, ok)
			}
		}
		if v, ok, err := s.HGet([]byte("hash"), []byte("f99")); string(v) != "99" || !ok || err != nil {
			t.Errorf("%s: HGet = %q, %v, %v", c, v, ok, err)
		}
		wantSound(t, s)
	}
}

// Every cut and every changed byte is seen.
func TestBrokenSnapshotsAreRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kv")
	s := newStore(t, Options{})
	mustSet(t, s, "k", "v")
	if _, err := s.HSet([]byte("h"), Pair{[]byte("f"), []byte("v")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	try := func(what string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		s := newStore(t, Options{MemoryLimit: 1 << 20})
		n, err := s.Load(path)
		var broken *SnapshotError
		if n != 0 || !errors.As(err, &broken) || s.Keys() != 0 {
			t.Errorf("%s: Load = %d, %v, and %d keys are there", what, n, err, s.Keys())
		}
	}
	for i := range whole {
		try(fmt.Sprintf("cut at %d", i), whole[:i])
		changed := bytes.Clone(whole)
		changed[i] ^= 0x10
		try(fmt.Sprintf("changed at %d", i), changed)
	}
	try("longer", append(bytes.Clone(whole), 0))
	if _, err := s.Load(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load of no file: %v", err)
	}
}

func TestAFailedSaveLeavesTheOldSnapshot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv")
	s := filled(t, Options{})
	if _, err := s.Save(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	s.Flush()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Save(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("Save after its end: %v", err)
	}
	if n, err := s.Load(path); n != 3003 || err != nil {
		t.Errorf("Load of the old one = %d, %v", n, err)
	}
	names, err := filepath.Glob(path + "*")
	if err != nil || len(names) != 1 {
		t.Errorf("files %q, %v, want one", names, err)
	}
}

func TestASnapshotTakesWhatChangesMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv")
	s := filled(t, Options{})
	done := make(chan struct{})
	go func() { // renames back and forth: the key is always there under some name
		defer close(done)
		for i := range 2000 {
			_, _, _ = s.Rename(fmt.Append(nil, "key", i), fmt.Append(nil, "moved", i), false)
		}
	}()
	if _, err := s.Save(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	<-done
	loaded := newStore(t, Options{})
	if _, err := loaded.Load(path); err != nil {
		t.Fatal(err)
	}
	wantSound(t, loaded)
	for i := 2000; i < 3000; i++ {
		wantValue(t, loaded, fmt.Sprint("key", i), fmt.Sprint("value", i))
	}
}

func FuzzLoad(f *testing.F) {
	s, err := New(Options{MemoryLimit: 1 << 20})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00kv"))
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x0a\x00\x00\x00h\x01\x00\x00\x00\x01\x00\x00\x00fv"))
	f.Add([]byte("\x01\x03\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x05\x00\x00\x00k\x01\x00\x00\x00v"))
	f.Fuzz(func(t *testing.T, record []byte) {
		_, _, _ = s.loadRecord(bytes.NewReader(record), 0) // whatever it is, it does not break
		wantSound(t, s)
	})
}
