package kv

import (
	"math/rand/v2"
	"sync/atomic"
)

// A table finds entries by key. It grows by one bucket at a time, in place, and
// never moves what is there (linear hashing), so that no write waits for a
// rebuild and a scan from the first bucket to the last misses nothing.
type table struct {
	arena
	k0, k1   uint64
	buckets  uint32
	mask     uint32    // the smallest power of two that is not below buckets, less one
	count    int       // entries
	volatile int       // of those, with a time at which they expire
	expiring bucketSet // the buckets that have any of those
	pending  []ref     // entries that will be linked; cleaning may move them
}

func newTable(m mem, limit int64, touch bool) (table, error) {
	a, err := newArena(m, limit)
	if err != nil {
		return table{}, err
	}
	t := table{arena: a, k0: rand.Uint64(), k1: rand.Uint64()}
	t.mem.setU64(offK0, t.k0)
	t.mem.setU64(offK1, t.k1)
	if touch {
		t.mem.setU32(offTouch, 1)
	}
	t.mem.setU64(offSize, uint64(len(t.mem)))
	t.mem.setU64(offTable, bucketsAt)
	t.mem.setU64(offEntries, uint64(t.segAt))
	t.setBuckets(stripeCount)
	atomic.StoreUint32(t.mem.word(offMagic+4), layoutMagic>>32)
	atomic.StoreUint32(t.mem.word(offMagic), layoutMagic&(1<<32-1))
	return t, nil
}

func (t *table) setBuckets(n uint32) {
	for t.mask = stripeCount - 1; t.mask < n-1; {
		t.mask = t.mask<<1 | 1
	}
	t.buckets = n
	t.committed += int64(t.expiring.grow(n))
	atomic.StoreUint32(t.mem.word(offBuckets), n)
}

func (t *table) hashOf(key []byte) uint32 { return uint32(sipHash(t.k0, t.k1, key)) }

func (t *table) bucketOf(hash uint32) uint32 {
	i := hash & t.mask
	if i >= t.buckets {
		i &= t.mask >> 1
	}
	return i
}

// lookup returns the entry of a key, expired or not; 0 if there is none.
func (t *table) lookup(key []byte, hash uint32) ref {
	m := t.mem
	for r := m.bucket(t.bucketOf(hash)); r != 0; r = m.next(r) {
		if m.hash(r) == hash && string(m.key(r)) == string(key) {
			return r
		}
	}
	return 0
}

// link enters an entry that is complete, in place of old if that is not 0.
func (t *table) link(r, old ref) {
	m, hash := t.mem, t.mem.hash(r)
	i := t.bucketOf(hash)
	m.open(hash)
	if old != 0 {
		t.cut(i, old)
	}
	m.setNext(r, m.bucket(i))
	m.setBucket(i, r)
	m.shut(hash)
	t.count++
	if m.expiry(r) != 0 {
		t.volatile++
		t.expiring.add(i)
	}
	if old != 0 {
		t.forget(old, i)
	}
	if t.count > int(t.buckets) {
		t.split()
	}
}

// unlink removes an entry.
func (t *table) unlink(r ref) {
	hash := t.mem.hash(r)
	i := t.bucketOf(hash)
	t.mem.open(hash)
	t.cut(i, r)
	t.mem.shut(hash)
	t.forget(r, i)
}

// forget frees an entry to which its bucket does not lead any more.
func (t *table) forget(r ref, bucket uint32) {
	t.count--
	if t.mem.expiry(r) != 0 {
		t.volatile--
		t.noteExpiring(bucket)
	}
	t.release(r)
}

// noteExpiring notes whether a bucket has entries that expire.
func (t *table) noteExpiring(bucket uint32) {
	for r := t.mem.bucket(bucket); r != 0; r = t.mem.next(r) {
		if t.mem.expiry(r) != 0 {
			t.expiring.add(bucket)
			return
		}
	}
	t.expiring.remove(bucket)
}

// cut takes an entry out of the chain of its bucket.
func (t *table) cut(bucket uint32, r ref) { t.repoint(bucket, r, t.mem.next(r)) }

// repoint changes what leads to an entry. Without an entry there it does nothing.
func (t *table) repoint(bucket uint32, from, to ref) bool {
	m := t.mem
	at := m.bucket(bucket)
	if at == from {
		m.setBucket(bucket, to)
		return true
	}
	for ; at != 0; at = m.next(at) {
		if m.next(at) == from {
			m.setNext(at, to)
			return true
		}
	}
	return false
}

// split adds a bucket and moves into it what belongs there from the only bucket
// that can have it. Both have the same stripe.
func (t *table) split() {
	m, added := t.mem, t.buckets
	if bucketsAt+4*int(added)+4 > t.segAt {
		return // as many as there can be
	}
	mask := t.mask
	if added > mask {
		mask = mask<<1 | 1
	}
	from := added & (mask >> 1)
	m.open(from)
	var stays, goes ref
	for r := m.bucket(from); r != 0; {
		next := m.next(r)
		if m.hash(r)&mask == added {
			m.setNext(r, goes)
			goes = r
		} else {
			m.setNext(r, stays)
			stays = r
		}
		r = next
	}
	m.setBucket(from, stays)
	m.setBucket(added, goes)
	t.setBuckets(added + 1)
	m.shut(from)
	t.committed += 4
	t.noteExpiring(from)
	t.noteExpiring(added)
}

// removeAll removes every entry.
func (t *table) removeAll() {
	for i := range uint32(stripeCount) {
		t.mem.open(i)
	}
	if !t.giveBack(bucketsAt, t.segAt-bucketsAt) {
		clear(t.mem[bucketsAt : bucketsAt+4*int(t.buckets)])
	}
	t.giveBack(t.segAt, len(t.mem)-t.segAt)
	t.arena.reset()
	t.expiring = bucketSet{}
	t.setBuckets(stripeCount)
	t.count, t.volatile = 0, 0
	for i := range uint32(stripeCount) {
		t.mem.shut(i)
	}
}

// clean moves the live entries of a segment elsewhere and frees it.
func (t *table) clean(segment int) {
	m := t.mem
	at := t.segAt + segment*t.segSize
	for end := at + t.segs[segment].fill; at < end; {
		r := ref(at >> 3)
		size := m.size(r)
		if m.kind(r) != kindDead {
			t.move(r, size)
		}
		at += size
	}
	t.freeSegment(segment)
}

func (t *table) move(r ref, size int) {
	if !t.fits(size) {
		t.nextSegment() // the one that room leaves
	}
	to := t.bump(size)
	m := t.mem
	copy(m[to.at():to.at()+size], m[r.at():r.at()+size])
	if m.kind(r) == kindPending {
		for i := range t.pending {
			if t.pending[i] == r {
				t.pending[i] = to
			}
		}
		return
	}
	hash := m.hash(r)
	m.open(hash)
	t.repoint(t.bucketOf(hash), r, to)
	m.shut(hash)
}

// fill writes an entry that is not linked, but for its value, for which it has room.
func (t *table) fill(r ref, key []byte, hash uint32, k kind, c coding, value int, version uint64, expireAt int64) {
	m, at := t.mem, r.at()
	m.setU32(at+entNext, 0)
	m.setU32(at+entHash, hash)
	m.setValueLen(r, value)
	m.setU16(at+entKey, uint16(len(key)))
	m[at+entKind], m[at+entCoding] = byte(k), byte(c)
	m.setU64(at+entVersion, version)
	m.setU64(at+entExpiry, uint64(expireAt))
	copy(m[at+entryHeader:], key)
}

// overwrite gives an entry that has the room another value.
func (t *table) overwrite(r ref, k kind, v packed, version uint64, expireAt int64) {
	m, at := t.mem, r.at()
	m.open(m.hash(r))
	m.setValueLen(r, len(v.data))
	m[at+entKind], m[at+entCoding] = byte(k), byte(v.coding)
	m.setU64(at+entVersion, version)
	t.writeExpiry(r, expireAt)
	copy(m[at+entryHeader+m.u16(at+entKey):], v.data)
	m.shut(m.hash(r))
}

func (t *table) setExpiry(r ref, at int64) {
	t.mem.open(t.mem.hash(r))
	t.writeExpiry(r, at)
	t.mem.shut(t.mem.hash(r))
}

func (t *table) writeExpiry(r ref, at int64) {
	had := t.mem.expiry(r)
	t.mem.setU64(r.at()+entExpiry, uint64(at))
	switch bucket := t.bucketOf(t.mem.hash(r)); {
	case had == 0 && at != 0:
		t.volatile++
		t.expiring.add(bucket)
	case had != 0 && at == 0:
		t.volatile--
		t.noteExpiring(bucket)
	}
}
