package kv

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

// A Store is the keys of one site. All methods may be called from any goroutine.
type Store struct {
	opts Options

	lockMu sync.Mutex // guards the following
	locks  locker

	mu      sync.Mutex // guards the following
	items   map[string]ref
	entries map[ref]*item
	last    ref
	version uint64
	watches map[string]*watch
	waiters int
	stats   Stats
	used    int64
	seed    maphash.Seed
}

// Stats are what a Store has counted since it was made.
type Stats struct {
	Keys      int    // now, with those that expired and were not yet swept
	Bytes     int64  // now, of Options.MemoryLimit
	Limit     int64  // Options.MemoryLimit
	Hits      uint64 // reads that found their key
	Misses    uint64 // reads that did not
	Evictions uint64 // keys dropped for room
	Expired   uint64 // keys dropped at the end of their TTL
	Refused   uint64 // writes that did not fit
	Locks     int    // now held or waited for
	Waiters   int    // calls of Wait that wait now
}

type ref uint32

type kind uint8

const (
	kindString kind = iota
	kindHash
)

type item struct {
	key      string
	kind     kind
	value    []byte
	expireAt int64
	version  uint64
}

type packed struct{ data []byte }

func plain(b []byte) packed { return packed{b} }

// New returns an empty Store.
func New(o Options) (*Store, error) {
	return &Store{
		opts:    o.orDefaults(),
		locks:   newLocker(),
		items:   make(map[string]ref),
		entries: make(map[ref]*item),
		watches: make(map[string]*watch),
		seed:    maphash.MakeSeed(),
		version: uint64(time.Now().UnixMicro()),
	}, nil
}

// MappingSize is how many bytes of address space Options.Memory needs for a
// memory limit.
func MappingSize(limit int64) int64 { return 2 * limit }

// Run sweeps keys that have expired until ctx is done. One goroutine runs it.
func (s *Store) Run(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.sweep()
		}
	}
}

func (s *Store) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, it := range s.entries {
		if it.expireAt != 0 && it.expireAt <= now {
			s.stats.Expired++
			s.deleteLocked([]byte(it.key))
		}
	}
}

// Stats returns the counts.
func (s *Store) Stats() Stats {
	s.lockMu.Lock()
	locks := s.locks.count
	s.lockMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Keys, st.Bytes, st.Limit = len(s.entries), s.used, s.opts.MemoryLimit
	st.Locks, st.Waiters = locks, s.waiters
	return st
}

// AddReads counts reads that other processes made in the shared memory.
func (s *Store) AddReads(hits, misses uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Hits += hits
	s.stats.Misses += misses
}

// Touch tells the eviction policy that other processes read keys in the shared
// memory. They are named by the hash of layout.go, so a wrong one does no harm.
func (s *Store) Touch(hashes []uint64) {}

// Memory returns the shared memory, for those who map it elsewhere.
func (s *Store) Memory() []byte { return s.opts.Memory }

// Close frees what the Store mapped itself. Nobody may use it any more.
func (s *Store) Close() {}

func (s *Store) findLocked(key []byte) (ref, bool) {
	e, ok := s.items[string(key)]
	if !ok {
		return 0, false
	}
	if at := s.entries[e].expireAt; at != 0 && at <= s.now() {
		s.stats.Expired++
		s.deleteLocked(key)
		return 0, false
	}
	return e, true
}

func (s *Store) readLocked(key []byte) (ref, bool) {
	e, ok := s.findLocked(key)
	if ok {
		s.stats.Hits++
	} else {
		s.stats.Misses++
	}
	return e, ok
}

func (s *Store) kindOf(e ref) kind         { return s.entries[e].kind }
func (s *Store) expiryOf(e ref) int64      { return s.entries[e].expireAt }
func (s *Store) versionOf(e ref) uint64    { return s.entries[e].version }
func (s *Store) fieldsLocked(e ref) fields { return fields(s.entries[e].value) }
func (s *Store) fieldHash(field []byte) uint32 {
	return uint32(maphash.Bytes(s.seed, field))
}
func (s *Store) pack(value []byte) packed { return packed{value} }

func (s *Store) appendStringLocked(dst []byte, e ref) ([]byte, error) {
	return append(dst, s.entries[e].value...), nil
}

func (s *Store) stringLenLocked(e ref) (int, error) {
	if s.kindOf(e) != kindString {
		return 0, ErrWrongType
	}
	return len(s.entries[e].value), nil
}

const overhead = 64

func (s *Store) putLocked(key []byte, value packed, expireAt int64) error {
	return s.storeLocked(key, kindString, value.data, expireAt)
}

func (s *Store) putHashLocked(key []byte, f fields, expireAt int64) error {
	return s.storeLocked(key, kindHash, f, expireAt)
}

func (s *Store) storeLocked(key []byte, k kind, value []byte, expireAt int64) error {
	if len(key) > MaxKey || len(value) > MaxValue {
		return ErrTooLong
	}
	need := int64(len(key) + len(value) + overhead)
	if e, ok := s.items[string(key)]; ok {
		need -= int64(len(key) + len(s.entries[e].value) + overhead)
	}
	if s.used+need > s.opts.MemoryLimit {
		s.stats.Refused++
		return ErrFull
	}
	s.deleteLocked(key)
	s.last++
	s.version++
	s.items[string(key)] = s.last
	s.entries[s.last] = &item{string(key), k, append([]byte{}, value...), expireAt, s.version}
	s.used += int64(len(key) + len(value) + overhead)
	s.wakeLocked(key)
	return nil
}

func (s *Store) putAllLocked(pairs []Pair, values []packed, expireAt int64) error {
	for i, p := range pairs {
		if err := s.putLocked(p.Key, values[i], expireAt); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) renameLocked(from []byte, e ref, to []byte) error {
	it := *s.entries[e]
	if err := s.storeLocked(to, it.kind, it.value, it.expireAt); err != nil {
		return err
	}
	s.deleteLocked(from)
	return nil
}

func (s *Store) editLocked(key []byte, e ref, edit func()) {
	edit()
	s.version++
	s.entries[e].version = s.version
	s.wakeLocked(key)
}

func (s *Store) setExpiryLocked(key []byte, e ref, at int64) { s.entries[e].expireAt = at }

func (s *Store) deleteLocked(key []byte) bool {
	e, ok := s.items[string(key)]
	if !ok {
		return false
	}
	s.used -= int64(len(key) + len(s.entries[e].value) + overhead)
	delete(s.items, string(key))
	delete(s.entries, e)
	s.wakeLocked(key)
	return true
}

func (s *Store) flushLocked() {
	s.items = make(map[string]ref)
	s.entries = make(map[ref]*item)
	s.used = 0
	s.wakeAllLocked()
}

func (s *Store) keysLocked() int { return len(s.entries) }

func (s *Store) scan(cursor uint64, limit int, keep func(key []byte, t Type) bool) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	n := 0
	for e := ref(cursor) + 1; e <= s.last; e++ {
		it := s.entries[e]
		if it == nil || it.expireAt != 0 && it.expireAt <= now {
			continue
		}
		t := TypeString
		if it.kind == kindHash {
			t = TypeHash
		}
		if keep([]byte(it.key), t) {
			if n++; n >= max(limit, 1) {
				return uint64(e)
			}
		}
	}
	return 0
}
