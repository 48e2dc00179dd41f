package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ephpm/kv"
	"ephpm/phpbridge"
)

// A storeHost answers calls from a store alone.
type storeHost struct{ kv *kvHost }

func (h storeHost) HostCall(ctx context.Context, c *phpbridge.Call) { h.kv.call(ctx, c) }

// dialStore returns a client of a new store, behind a socket, until the test ends.
func dialStore(t *testing.T, limit int64) (*KVClient, *kv.Store) {
	t.Helper()
	o := kv.DefaultOptions()
	o.MemoryLimit = limit
	store, err := kv.New(o)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_ = phpbridge.ServeCalls(ctx, conn, func(string) (phpbridge.Host, error) { return storeHost{newKVHost("a.example", store)}, nil })
	})
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
		wg.Wait()
		store.Close()
	})
	c, err := DialKV(t.Context(), socket, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, store
}

func TestKVClientErrors(t *testing.T) {
	t.Parallel()
	c, store := dialStore(t, 4<<20)
	ctx := t.Context()
	if _, err := store.HSet([]byte("hash"), kv.Pair{Key: []byte("f"), Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{c.Set(ctx, "text", []byte("no number"), 0), c.Set(ctx, "most", fmt.Append(nil, math.MaxInt64), 0)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	big := make([]byte, 8<<20)
	for name, test := range map[string]struct {
		do   func() error
		want string
	}{
		"get, no key":       {func() error { _, err := c.Get(ctx, "none"); return err }, ErrNoKey.Error()},
		"get, a hash":       {func() error { _, err := c.Get(ctx, "hash"); return err }, "the key holds a hash"},
		"ttl, no key":       {func() error { _, err := c.TTL(ctx, "none"); return err }, ErrNoKey.Error()},
		"set, no room":      {func() error { return c.Set(ctx, "k", big, 0) }, errKVFull.Error()},
		"set, a long key":   {func() error { return c.Set(ctx, strings.Repeat("k", kv.MaxKey+1), nil, 0) }, "a key may have 65535 bytes and a value 536870912"},
		"set, a wrong TTL":  {func() error { return c.Set(ctx, "k", nil, math.MaxInt64) }, "the TTL is out of range"},
		"set nx, there":     {func() error { return c.SetNX(ctx, "text", nil, 0) }, ErrHasKey.Error()},
		"set nx, no room":   {func() error { return c.SetNX(ctx, "k", big, 0) }, errKVFull.Error()},
		"incr, no number":   {func() error { _, err := c.IncrBy(ctx, "text", 1); return err }, errKVNumber.Error()},
		"incr, an overflow": {func() error { _, err := c.IncrBy(ctx, "most", 1); return err }, errKVOverflow.Error()},
		"incr, a hash":      {func() error { _, err := c.IncrBy(ctx, "hash", 1); return err }, "the key holds a hash"},
	} {
		if err := test.do(); err == nil || err.Error() != test.want {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	if err := c.Ping(ctx); err != nil {
		t.Errorf("behind errors the store does not answer: %v", err)
	}
}

// Keys are listed and deleted over many calls.
func TestKVClientListsManyKeys(t *testing.T) {
	t.Parallel()
	c, store := dialStore(t, 16<<20)
	const n = 5000
	for i := range n {
		if err := store.Set(fmt.Appendf(nil, "page:%d", i), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Set([]byte("other*"), nil, 0); err != nil {
		t.Fatal(err)
	}
	list := func(pattern string) (keys []string) {
		if err := c.Keys(t.Context(), pattern, func(key []byte) error {
			keys = append(keys, string(key))
			return nil
		}); err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
		slices.Sort(keys)
		return slices.Compact(keys)
	}
	for pattern, want := range map[string]int{"": n + 1, "page:": n, "page:*": n, "page:?": 10, "*9": n / 10, "page:[12]": 2, `other\*`: 1, "page:1": 1111, "none": 0} {
		if got := list(pattern); len(got) != want {
			t.Errorf("%q: %d keys, want %d", pattern, len(got), want)
		}
	}
	stop := errors.New("enough")
	calls := 0
	if err := c.Keys(t.Context(), "", func([]byte) error { calls++; return stop }); err != stop || calls != 1 {
		t.Errorf("an error of each: %v after %d calls", err, calls)
	}
	if got, err := c.Del(t.Context(), append(list("page:"), "none")...); err != nil || got != n {
		t.Errorf("deleted %d, %v; want %d", got, err, n)
	}
}
