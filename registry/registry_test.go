package registry

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// A fakeSink counts frames. It may be given a hook to run inside take.
type fakeSink struct {
	full   atomic.Bool
	frames atomic.Int64
	hook   func()
}

func (s *fakeSink) take() bool {
	if s.hook != nil {
		s.hook()
	}
	if s.full.Load() {
		return false
	}
	s.frames.Add(1)
	return true
}

func newID(t testing.TB) ID {
	t.Helper()
	id, err := NewID()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// join connects a new sink and subscribes it.
func join(t testing.TB, r *Registry[*fakeSink], channels ...string) (ID, *fakeSink) {
	t.Helper()
	id, sink := newID(t), &fakeSink{}
	if err := r.Add(id, sink); err != nil {
		t.Fatalf("Add: %v", err)
	}
	for _, name := range channels {
		if !r.Subscribe(id, name) {
			t.Fatalf("Subscribe(%q) = false, want true", name)
		}
	}
	return id, sink
}

func TestLookupFindsWhoIsConnected(t *testing.T) {
	r := New[*fakeSink](Options{})
	id, sink := join(t, r)
	if got, ok := r.Lookup(id); !ok || got != sink {
		t.Errorf("Lookup = %p, %v, want %p, true", got, ok, sink)
	}
	if got := r.Len(); got != 1 {
		t.Errorf("Len() = %d, want 1", got)
	}
	r.Remove(id)
	r.Remove(id) // harmless
	if got, ok := r.Lookup(id); ok || got != nil {
		t.Errorf("Lookup after Remove = %p, %v, want nil, false", got, ok)
	}
	if got := r.Len(); got != 0 {
		t.Errorf("Len() after Remove = %d, want 0", got)
	}
}

func TestAddRefusesPastTheLimit(t *testing.T) {
	r := New[*fakeSink](Options{MaxConnections: 2})
	first, _ := join(t, r)
	join(t, r)
	if err := r.Add(newID(t), &fakeSink{}); !errors.Is(err, ErrFull) {
		t.Errorf("third Add = %v, want ErrFull", err)
	}
	r.Remove(first)
	if err := r.Add(newID(t), &fakeSink{}); err != nil {
		t.Errorf("Add after Remove = %v, want a free place", err)
	}
}

func TestAddRefusesAnIDInUse(t *testing.T) {
	r := New[*fakeSink](Options{})
	id, sink := join(t, r)
	if err := r.Add(id, &fakeSink{}); !errors.Is(err, ErrInUse) {
		t.Errorf("second Add = %v, want ErrInUse", err)
	}
	if got, _ := r.Lookup(id); got != sink {
		t.Error("the second Add replaced the sink")
	}
}

// TestRegistryHoldsTogetherUnderConcurrentUse runs every operation at random
// from several goroutines, checks afterwards that the two directions of
// membership agree, then removes everybody and wants nothing left.
func TestRegistryHoldsTogetherUnderConcurrentUse(t *testing.T) {
	const connections, names, goroutines, steps = 40, 12, 8, 4000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := New[*fakeSink](Options{MaxChannels: 8})
	ids := make([]ID, connections)
	for i := range ids {
		ids[i] = newID(t)
	}

	var wg sync.WaitGroup
	for g := range uint64(goroutines) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, g))
			for range steps {
				id, name := ids[rnd.IntN(connections)], fmt.Sprint("channel ", rnd.IntN(names))
				switch rnd.IntN(12) {
				case 0, 1:
					_ = r.Add(id, &fakeSink{}) // it may be there already
				case 2:
					r.Remove(id)
				case 3, 4, 5, 6:
					r.Subscribe(id, name)
				case 7, 8:
					r.Unsubscribe(id, name)
				case 9:
					r.Broadcast(name, id, (*fakeSink).take, nil)
				case 10:
					r.Members(name, 5)
				default:
					r.Count(name)
					r.Lookup(id)
					r.Len()
					r.Channels()
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	checkSeats(t, r)

	for _, id := range ids {
		r.Remove(id)
	}
	if r.Len() != 0 || r.Channels() != 0 {
		t.Errorf("after Remove of all: %d connections, %d channels, want none", r.Len(), r.Channels())
	}
}

// checkSeats fails unless every seat points at its member and every member of a
// channel is connected.
func checkSeats(t *testing.T, r *Registry[*fakeSink]) {
	t.Helper()
	seats := 0
	for id, m := range r.members {
		if m.id != id {
			t.Errorf("member %v is kept under %v", m.id, id)
		}
		if len(m.joined) > r.opts.MaxChannels {
			t.Errorf("member %v joined %d channels, over the limit", id, len(m.joined))
		}
		seats += len(m.joined)
		for _, s := range m.joined {
			if s.index >= len(s.channel.members) || s.channel.members[s.index] != m {
				t.Errorf("seat %d in %q is not member %v's", s.index, s.channel.name, id)
			}
		}
	}
	members := 0
	for name, c := range r.channels {
		if c.name != name || len(c.members) == 0 {
			t.Errorf("channel %q, kept under %q, has %d members", c.name, name, len(c.members))
		}
		members += len(c.members)
		for _, m := range c.members {
			if r.members[m.id] != m {
				t.Errorf("channel %q holds %v, which has gone", name, m.id)
			}
		}
	}
	if seats != members {
		t.Errorf("%d seats for %d members", seats, members)
	}
}
