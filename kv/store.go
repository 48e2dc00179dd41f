package kv

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A Store is the keys of one site. All methods may be called from any goroutine.
//
// One lock guards all keys: what is done under it takes well under a
// microsecond, and calls that touch many keys are atomic for it. Those who read
// the memory from another process need no lock.
type Store struct {
	opts  Options
	codec *codec // nil: nothing is compressed

	// Clients of a Server hold gate for reading while they run a command, and
	// alone for a transaction.
	gate     sync.RWMutex
	hub      hub
	monitors monitors

	lockMu sync.Mutex // guards the following
	locks  locker

	mu      sync.Mutex // guards the following
	table   table
	mapped  bool   // the memory is our own
	version uint64 // of the last change
	watches map[string]*watch
	waiters int
	stats   Stats

	reads     uint64 // the clock of the LRU policies
	hand      uint32 // the bucket where eviction looks next
	broom     uint32 // the bucket where the sweep goes on
	sweptAt   int64  // when a lack of room last made it sweep everything
	protects  bool   // room is being made for protected
	protected []byte // the key that is being stored, which is not evicted
}

// New returns an empty Store. It fails when there is no memory, and for Options
// that make no sense.
func New(o Options) (*Store, error) {
	o = o.orDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	codec, err := newCodec(o)
	if err != nil {
		return nil, err
	}
	s := &Store{
		opts:    o,
		codec:   codec,
		hub:     newHub(),
		locks:   newLocker(),
		watches: make(map[string]*watch),
		// No version of an earlier run comes again.
		version: uint64(time.Now().UnixMicro()),
	}
	memory := mem(o.Memory)
	if memory == nil {
		if memory, err = mapMemory(MappingSize(o.MemoryLimit)); err != nil {
			return nil, err
		}
		s.mapped = true
	}
	touch := o.Policy == AllKeysLRU || o.Policy == VolatileLRU || o.Policy == AllKeysLFU
	if s.table, err = newTable(memory, o.MemoryLimit, touch); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (o Options) check() error {
	switch {
	case o.MemoryLimit < MinMemoryLimit || o.MemoryLimit > MaxMemoryLimit:
		return fmt.Errorf("kv: memory limit of %d bytes is not from %d to %d", o.MemoryLimit, MinMemoryLimit, int64(MaxMemoryLimit))
	case !slices.Contains(Policies, o.Policy):
		return fmt.Errorf("kv: no eviction policy %q", o.Policy)
	case !slices.Contains(Compressions, o.Compression):
		return fmt.Errorf("kv: no compression %q", o.Compression)
	case o.CompressLevel < 1 || o.CompressLevel > 9:
		return fmt.Errorf("kv: compression level %d is not from 1 to 9", o.CompressLevel)
	}
	return nil
}

// Memory returns the shared memory, for those who map it elsewhere.
func (s *Store) Memory() []byte { return s.opts.Memory }

// Close gives back what New mapped. Nobody may use the Store any more.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mapped {
		s.mapped = false
		_ = syscall.Munmap(s.table.mem) // cannot fail for what Mmap returned
		s.table.mem = nil
	}
}

// Run sweeps keys that have expired and tidies the memory until ctx is done. One
// goroutine runs it.
func (s *Store) Run(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.Sweep()
		}
	}
}

// Sweep does what Run does at each tick, for an owner of many Stores.
func (s *Store) Sweep() {
	s.sweep()
	s.tidy()
}

// findLocked returns the entry of a key that has not expired.
func (s *Store) findLocked(key []byte) (ref, bool) {
	r := s.table.lookup(key, s.table.hashOf(key))
	if r == 0 {
		return 0, false
	}
	if at := s.table.mem.expiry(r); at != 0 && at <= s.now() {
		s.expireLocked(r)
		return 0, false
	}
	return r, true
}

// readLocked is findLocked for a read, which counts.
func (s *Store) readLocked(key []byte) (ref, bool) {
	r, ok := s.findLocked(key)
	if !ok {
		s.stats.Misses++
		return 0, false
	}
	s.stats.Hits++
	s.touch(r)
	return r, true
}

func (s *Store) kindOf(r ref) kind             { return s.table.mem.kind(r) }
func (s *Store) expiryOf(r ref) int64          { return s.table.mem.expiry(r) }
func (s *Store) versionOf(r ref) uint64        { return s.table.mem.version(r) }
func (s *Store) fieldsLocked(r ref) fields     { return fields(s.table.mem.value(r)) }
func (s *Store) fieldHash(field []byte) uint32 { return s.table.hashOf(field) }
func (s *Store) keysLocked() int               { return s.table.count }

// appendStringLocked appends a string to dst.
func (s *Store) appendStringLocked(dst []byte, r ref) ([]byte, error) {
	return s.codec.unpack(dst, s.storedLocked(r))
}

// storedLocked returns a string as it is stored, where it is stored.
func (s *Store) storedLocked(r ref) packed {
	return packed{data: s.table.mem.value(r), coding: s.table.mem.coding(r)}
}

func (s *Store) stringLenLocked(r ref) (int, error) {
	if s.kindOf(r) != kindString {
		return 0, ErrWrongType
	}
	return s.storedLocked(r).length(), nil
}

func (s *Store) putLocked(key []byte, value packed, expireAt int64) error {
	return s.storeLocked(key, kindString, value, expireAt)
}

func (s *Store) putHashLocked(key []byte, f fields, expireAt int64) error {
	return s.storeLocked(key, kindHash, plain(f), expireAt)
}

// storeLocked stores a value, which must not lie in the Store's memory, in place
// of whatever is under the key.
func (s *Store) storeLocked(key []byte, k kind, v packed, expireAt int64) error {
	hash := s.table.hashOf(key)
	old := s.table.lookup(key, hash)
	s.version++
	if old != 0 && s.fitsInto(old, len(key), len(v.data)) {
		s.table.overwrite(old, k, v, s.version, expireAt)
		s.touch(old)
		s.wakeLocked(key)
		return nil
	}
	r, err := s.makeLocked(key, hash, k, v, expireAt)
	if err != nil {
		return err
	}
	s.table.link(r, s.table.lookup(key, hash)) // making room may have moved it
	s.wakeLocked(key)
	return nil
}

// fitsInto reports whether a value has room in an entry and does not waste it.
func (s *Store) fitsInto(r ref, key, value int) bool {
	have, want := s.table.mem.size(r), entrySize(key, value)
	return want <= have && (want >= have/2 || have <= 128)
}

// makeLocked makes an entry that is not linked yet.
func (s *Store) makeLocked(key []byte, hash uint32, k kind, v packed, expireAt int64) (ref, error) {
	r, _, err := s.makeRoomLocked(key, hash, k, v.coding, []int{len(v.data)}, expireAt)
	if err == nil {
		copy(s.table.mem.value(r), v.data)
	}
	return r, err
}

// makeRoomLocked is makeLocked for a value that the caller writes where it will
// lie. Of the lengths that it may have, in bytes, it gets the first that fits.
func (s *Store) makeRoomLocked(key []byte, hash uint32, k kind, c coding, lengths []int, expireAt int64) (r ref, length int, err error) {
	if len(key) > MaxKey || slices.Min(lengths) > MaxValue {
		return 0, 0, ErrTooLong
	}
	for _, length = range lengths {
		if length > MaxValue {
			continue
		}
		if r = s.allocLocked(key, hash, entrySize(len(key), length)); r != 0 {
			s.table.fill(r, key, hash, k, c, length, s.version, expireAt)
			s.use(r)
			return r, length, nil
		}
	}
	s.stats.Refused++
	return 0, 0, ErrFull
}

// replaceLocked stores a value that write makes from the one that is there, nil
// if there is none. It has the first of some lengths that fits.
func (s *Store) replaceLocked(key []byte, k kind, lengths []int, expireAt int64, write func(value, old []byte)) error {
	hash := s.table.hashOf(key)
	s.version++
	r, _, err := s.makeRoomLocked(key, hash, k, codingPlain, lengths, expireAt)
	if err != nil {
		return err
	}
	var was []byte
	old := s.table.lookup(key, hash) // making room may have moved it
	if old != 0 {
		was = s.table.mem.value(old)
	}
	write(s.table.mem.value(r), was)
	s.table.link(r, old)
	s.wakeLocked(key)
	return nil
}

// putAllLocked stores all strings or none.
func (s *Store) putAllLocked(pairs []Pair, values []packed, expireAt int64) error {
	size := 0
	for i, p := range pairs {
		size += entrySize(len(p.Key), len(values[i].data))
	}
	if !s.table.holds(size) { // before anything is dropped for it
		s.stats.Refused++
		return ErrFull
	}
	defer func() { s.table.pending = s.table.pending[:0] }()
	s.version++
	for i, p := range pairs {
		r, err := s.makeLocked(p.Key, s.table.hashOf(p.Key), kindPending, values[i], expireAt)
		if err != nil {
			for _, r := range s.table.pending {
				s.table.release(r)
			}
			return err
		}
		s.table.pending = append(s.table.pending, r)
	}
	for i, p := range pairs {
		r := s.table.pending[i]
		s.table.mem.setKind(r, kindString)
		s.table.link(r, s.table.lookup(p.Key, s.table.mem.hash(r)))
		s.wakeLocked(p.Key)
	}
	return nil
}

func (s *Store) renameLocked(from []byte, r ref, to []byte) error {
	stored := s.storedLocked(r)
	stored.data = slices.Clone(stored.data) // the entry may move
	if err := s.storeLocked(to, s.kindOf(r), stored, s.expiryOf(r)); err != nil {
		return err
	}
	s.deleteLocked(from)
	return nil
}

// editLocked changes what lies in an entry by edit, which must not move it.
func (s *Store) editLocked(key []byte, r ref, edit func()) {
	m := s.table.mem
	s.version++
	m.open(m.hash(r))
	edit()
	m.setU64(r.at()+entVersion, s.version)
	m.shut(m.hash(r))
	s.touch(r)
	s.wakeLocked(key)
}

func (s *Store) setExpiryLocked(key []byte, r ref, at int64) {
	s.table.setExpiry(r, at)
	s.wakeLocked(key) // who waits looks when it expires
}

// deleteLocked deletes a key and reports whether it was there.
func (s *Store) deleteLocked(key []byte) bool {
	r, found := s.findLocked(key)
	if found {
		s.table.unlink(r)
		s.wakeLocked(key)
	}
	return found
}

func (s *Store) flushLocked() {
	s.table.removeAll()
	s.wakeAllLocked()
}

// scanBuckets bounds what one call of scan looks at under the lock.
const scanBuckets = 4096

// scan calls keep for keys from the cursor's bucket on, until keep has been true
// limit times at the end of a bucket, and returns the next cursor, 0 at the end.
// The key that keep gets is valid until it returns.
func (s *Store) scan(cursor uint64, limit int, keep func(key []byte, t Type) bool) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, now := s.table.mem, s.now()
	end := min(cursor+scanBuckets, uint64(s.table.buckets))
	for n := 0; cursor < end && n < max(limit, 1); cursor++ {
		for r := m.bucket(uint32(cursor)); r != 0; r = m.next(r) {
			if at := m.expiry(r); at != 0 && at <= now {
				continue
			}
			t := TypeString
			if m.kind(r) == kindHash {
				t = TypeHash
			}
			if keep(m.key(r), t) {
				n++
			}
		}
	}
	if cursor >= uint64(s.table.buckets) {
		return 0
	}
	return cursor
}
