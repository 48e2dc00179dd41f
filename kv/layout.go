package kv

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// The layout of the memory of a Store, for those who read it from another
// process. All numbers are little endian; offsets are in bytes from the start.
//
//	header     headerSize bytes
//	  0  u64  magic: layoutMagic; written last, 0 before
//	  8  u64  k0, the first half of the hash's key
//	 16  u64  k1, the second half
//	 24  u32  buckets in use, at least stripeCount
//	 28  u32  1 if the eviction policy wants to know of reads, see Store.Touch
//	 32  u64  size of the whole memory
//	 40  u64  offset of the buckets
//	 48  u64  offset of the first entry that there may be
//	 56  u32  1 while reads are watched: readers ask the Store instead
//	stripes    stripeCount times u32, at stripesAt
//	buckets    u32 each: the ref of an entry, 0 for none
//	entries    anywhere behind, each at a multiple of 8
//
// A ref is an offset divided by 8. An entry is entryHeader bytes, the key and
// the value:
//
//	 0  u32  ref of the next entry in its bucket, 0 for none
//	 4  u32  the lower half of the key's hash
//	 8  u32  size of the entry with all its room, a multiple of 8
//	12  u32  length of the value as it is stored
//	16  u16  length of the key
//	18  u8   kind: 0 a string, 1 a hash (fields.go), 255 none any more
//	19  u8   coding of a string: 0 as it is, else compressed: ask the Store
//	20  u32  use, for the eviction policy
//	24  u64  version
//	32  u64  Unix time in milliseconds at which the key expires, 0 for never
//	40  key, value
//
// The hash of a key is its SipHash-1-3 under k0 and k1. Its bucket, with m the
// smallest power of two that is not less than the number of buckets: the hash
// modulo m if that is a bucket, else modulo m/2. Its stripe is the hash modulo
// stripeCount.
//
// The Store is the only writer. It makes the number of a stripe odd before it
// changes a bucket or an entry whose hash has that stripe, and even again behind
// it; what frees an entry's memory, too, is such a change. A reader
//
//  1. reads the stripe (acquire), and tries again if that is odd;
//  2. reads the buckets in use, the bucket, and the chain of entries, until the
//     key is found or the chain ends. Until step 4 it knows nothing for sure:
//     it checks every offset, with all that it reads behind it, against the size
//     of the memory before it follows it, and gives up a chain after maxChain
//     entries;
//  3. copies what it wants;
//  4. fences (acquire) and reads the stripe again: if that is another number,
//     all that it read means nothing, and it starts again.
//
// After some tries it asks the Store instead, which always answers. A key that
// has expired is not there, though its entry may be.
const (
	layoutMagic = 0x6570686d6b760001

	headerSize  = 4096
	stripesAt   = headerSize
	stripeCount = 1024
	bucketsAt   = stripesAt + 4*stripeCount

	offMagic   = 0
	offK0      = 8
	offK1      = 16
	offBuckets = 24
	offTouch   = 28
	offSize    = 32
	offTable   = 40
	offEntries = 48

	offMonitored = 56

	entryHeader = 40
	entNext     = 0
	entHash     = 4
	entSize     = 8
	entValue    = 12
	entKey      = 16
	entKind     = 18
	entCoding   = 19
	entUse      = 20
	entVersion  = 24
	entExpiry   = 32

	maxChain = 4096
)

// A kind is what an entry holds.
type kind uint8

const (
	kindString  kind = 0
	kindHash    kind = 1
	kindPending kind = 254 // a string that is not yet in its bucket
	kindDead    kind = 255
)

// A ref is the offset of an entry divided by 8; 0 is none.
type ref uint32

// mem is the memory of a Store.
type mem []byte

func (m mem) u16(at int) int          { return int(binary.LittleEndian.Uint16(m[at:])) }
func (m mem) u32(at int) uint32       { return binary.LittleEndian.Uint32(m[at:]) }
func (m mem) u64(at int) uint64       { return binary.LittleEndian.Uint64(m[at:]) }
func (m mem) setU16(at int, v uint16) { binary.LittleEndian.PutUint16(m[at:], v) }
func (m mem) setU32(at int, v uint32) { binary.LittleEndian.PutUint32(m[at:], v) }
func (m mem) setU64(at int, v uint64) { binary.LittleEndian.PutUint64(m[at:], v) }

// word gives atomic access to a number that readers synchronize by.
func (m mem) word(at int) *uint32 { return (*uint32)(unsafe.Pointer(&m[at])) }

func (r ref) at() int { return int(r) << 3 }

// open announces a change to what has this hash, and shut its end.
func (m mem) open(hash uint32) { atomic.AddUint32(m.word(stripesAt+4*int(hash%stripeCount)), 1) }
func (m mem) shut(hash uint32) { atomic.AddUint32(m.word(stripesAt+4*int(hash%stripeCount)), 1) }

func (m mem) next(r ref) ref            { return ref(m.u32(r.at() + entNext)) }
func (m mem) hash(r ref) uint32         { return m.u32(r.at() + entHash) }
func (m mem) size(r ref) int            { return int(m.u32(r.at() + entSize)) }
func (m mem) kind(r ref) kind           { return kind(m[r.at()+entKind]) }
func (m mem) coding(r ref) coding       { return coding(m[r.at()+entCoding]) }
func (m mem) use(r ref) uint32          { return m.u32(r.at() + entUse) }
func (m mem) version(r ref) uint64      { return m.u64(r.at() + entVersion) }
func (m mem) expiry(r ref) int64        { return int64(m.u64(r.at() + entExpiry)) }
func (m mem) setNext(r, next ref)       { m.setU32(r.at()+entNext, uint32(next)) }
func (m mem) setUse(r ref, u uint32)    { m.setU32(r.at()+entUse, u) }
func (m mem) setKind(r ref, k kind)     { m[r.at()+entKind] = byte(k) }
func (m mem) setValueLen(r ref, n int)  { m.setU32(r.at()+entValue, uint32(n)) }
func (m mem) bucket(i uint32) ref       { return ref(m.u32(bucketsAt + 4*int(i))) }
func (m mem) setBucket(i uint32, r ref) { m.setU32(bucketsAt+4*int(i), uint32(r)) }

// key returns an entry's key where it lies.
func (m mem) key(r ref) []byte {
	at := r.at() + entryHeader
	return m[at : at+m.u16(r.at()+entKey)]
}

// value returns an entry's value where it lies, as it is stored.
func (m mem) value(r ref) []byte {
	at := r.at() + entryHeader + m.u16(r.at()+entKey)
	end := at + int(m.u32(r.at()+entValue))
	return m[at:end:end]
}

// entrySize is the size of an entry.
func entrySize(key, value int) int { return (entryHeader + key + value + 7) &^ 7 }

// sipHash is SipHash-1-3, which nobody who chooses keys can make collide
// without knowing k0 and k1.
func sipHash(k0, k1 uint64, p []byte) uint64 {
	v0, v1 := k0^0x736f6d6570736575, k1^0x646f72616e646f6d
	v2, v3 := k0^0x6c7967656e657261, k1^0x7465646279746573
	last := uint64(len(p)) << 56
	for ; len(p) >= 8; p = p[8:] {
		w := binary.LittleEndian.Uint64(p)
		v3 ^= w
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= w
	}
	for i, b := range p {
		last |= uint64(b) << (8 * i)
	}
	v3 ^= last
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= last
	v2 ^= 0xff
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return v0 ^ v1 ^ v2 ^ v3
}

func sipRound(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}
