package kv

import (
	"errors"
	"fmt"
	"math/bits"
	"syscall"
	"unsafe"
)

// An arena gives out the memory of entries. Small ones are laid one behind the
// other into segments; the room of those that died comes back when the rest of
// their segment is moved elsewhere (table.clean). Large ones get pages of their own.
// What is free again is given back to the system.
//
// It counts what it takes from the system, never what callers asked for: the
// number of segments and pages that are in use is what the limit is about.
type arena struct {
	mem     mem
	limit   int64 // of committed
	largeAt int   // offset of the pages for large entries
	segAt   int   // offset of the segments
	segSize int

	committed int64 // bytes that are in use, dead ones included
	dead      int64 // bytes of dead entries in segments, and of their ends
	segs      []segment
	free      []int // segments that were used and are empty
	active    int   // the segment that is being filled; -1: none
	runs      runs  // free pages
}

// A segment is part of the memory.
type segment struct {
	fill  int // bytes given out, from the start
	live  int // bytes of those that are not dead
	inUse bool
}

const pageSize = 4096

// MinMemoryLimit and MaxMemoryLimit bound Options.MemoryLimit. With more a ref
// would not reach the end.
const (
	MaxMemoryLimit = 12 << 30
	MinMemoryLimit = 1 << 20
)

// geometry returns the size of a segment, and the offsets of the segments, the
// pages for large entries and the end. There is more room for large entries
// than the limit lets them take, so that the holes between them do not matter.
func geometry(limit int64) (segSize, segAt, largeAt, size int) {
	segSize = 1 << (bits.Len64(uint64(limit/64)) - 1)
	segSize = min(max(segSize, 16<<10), 1<<20)
	align := func(n int) int { return (n + segSize - 1) &^ (segSize - 1) }
	// No entry is smaller than entryHeader, so there are never more buckets.
	segAt = align(bucketsAt + 4*int(limit/entryHeader+stripeCount))
	largeAt = segAt + align(int(limit)) + 2*segSize
	return segSize, segAt, largeAt, largeAt + align(int(limit)*3/2)
}

// MappingSize is how many bytes of address space Options.Memory needs for a
// memory limit.
func MappingSize(limit int64) int64 {
	_, _, _, size := geometry(limit)
	return int64(size)
}

func newArena(m mem, limit int64) (arena, error) {
	segSize, segAt, largeAt, size := geometry(limit)
	if len(m) < size {
		return arena{}, fmt.Errorf("kv: memory of %d bytes for a limit of %d, want %d", len(m), limit, size)
	}
	a := arena{mem: m[:size], limit: limit, segSize: segSize, segAt: segAt, largeAt: largeAt}
	if uintptr(unsafe.Pointer(&m[0]))%pageSize != 0 {
		return arena{}, errors.New("kv: memory does not start at a page")
	}
	a.reset()
	return a, nil
}

// reset forgets everything.
func (a *arena) reset() {
	a.committed, a.dead = bucketsAt, 0
	a.segs, a.free, a.active = nil, nil, -1
	a.runs = runs{{0, (len(a.mem) - a.largeAt) / pageSize}}
}

// used is what counts against the limit.
func (a *arena) used() int64 {
	if a.active < 0 {
		return a.committed
	}
	return a.committed - int64(a.segSize-a.segs[a.active].fill)
}

// isLarge reports whether an entry gets pages of its own.
func (a *arena) isLarge(size int) bool { return size > a.segSize/16 }

func pages(size int) int { return (size + pageSize - 1) / pageSize }

// room reports whether so many more bytes can be in use. One segment is always
// left for cleaning.
func (a *arena) room(n int) bool { return a.committed+int64(n+a.segSize) <= a.limit }

// holds reports whether there could be room for entries of so many bytes together,
// with nothing else there.
func (a *arena) holds(size int) bool {
	return int64(size)+bucketsAt+2*int64(a.segSize) <= a.limit
}

// alloc returns memory for an entry of size bytes, of which only the size is
// written. credit is what its caller will free at once. 0 if there is no room.
func (a *arena) alloc(size, credit int) ref {
	if a.isLarge(size) {
		return a.allocLarge(size, credit)
	}
	if !a.fits(size) && (!a.room(a.segSize) || !a.nextSegment()) {
		return 0
	}
	return a.bump(size)
}

// fits reports whether the active segment has room.
func (a *arena) fits(size int) bool {
	return a.active >= 0 && a.segs[a.active].fill+size <= a.segSize
}

// bump takes size bytes from the active segment, which has them.
func (a *arena) bump(size int) ref {
	seg := &a.segs[a.active]
	at := a.segAt + a.active*a.segSize + seg.fill
	seg.fill += size
	seg.live += size
	a.mem.setU32(at+entSize, uint32(size))
	return ref(at >> 3)
}

// nextSegment makes an empty segment the active one. False if the address space
// has none left.
func (a *arena) nextSegment() bool {
	next := len(a.segs)
	if n := len(a.free); n > 0 {
		next = a.free[n-1]
		a.free = a.free[:n-1]
	} else if a.segAt+(next+1)*a.segSize > a.largeAt {
		return false
	} else {
		a.segs = append(a.segs, segment{})
	}
	if old := a.active; old >= 0 {
		a.active = -1
		a.dead += int64(a.segSize - a.segs[old].fill)
		a.freeIfEmpty(old)
	}
	a.segs[next].inUse = true
	a.committed += int64(a.segSize)
	a.active = next
	return true
}

func (a *arena) allocLarge(size, credit int) ref {
	n := pages(size)
	if !a.room(n*pageSize - credit) {
		return 0
	}
	page, ok := a.runs.take(n)
	if !ok {
		return 0
	}
	a.committed += int64(n * pageSize)
	at := a.largeAt + page*pageSize
	a.mem.setU32(at+entSize, uint32(n*pageSize))
	return ref(at >> 3)
}

// release takes the memory of an entry back. Nobody can reach it any more.
func (a *arena) release(r ref) {
	size := a.mem.size(r)
	a.mem.setKind(r, kindDead)
	if at := r.at(); at >= a.largeAt {
		a.committed -= int64(size)
		a.giveBack(at, size)
		a.runs.put((at-a.largeAt)/pageSize, size/pageSize)
		return
	}
	i := (r.at() - a.segAt) / a.segSize
	a.segs[i].live -= size
	a.dead += int64(size)
	a.freeIfEmpty(i)
}

// freeIfEmpty frees a segment without live entries, or starts the active one
// anew.
func (a *arena) freeIfEmpty(i int) {
	seg := &a.segs[i]
	if seg.live > 0 {
		return
	}
	if i == a.active {
		a.dead -= int64(seg.fill)
		seg.fill = 0
		return
	}
	a.freeSegment(i)
}

// freeSegment gives a segment back, whatever is in it.
func (a *arena) freeSegment(i int) {
	seg := &a.segs[i]
	a.dead -= int64(a.segSize - seg.live)
	a.committed -= int64(a.segSize)
	*seg = segment{}
	a.free = append(a.free, i)
	a.giveBack(a.segAt+i*a.segSize, a.segSize)
}

// sparsest returns the segment with the fewest live bytes, but for the active
// one, and how many bytes it would bring; -1 if there is none.
func (a *arena) sparsest() (index, gain int) {
	index = -1
	for i := range a.segs {
		seg := &a.segs[i]
		if seg.inUse && i != a.active && a.segSize-seg.live > gain {
			index, gain = i, a.segSize-seg.live
		}
	}
	return index, gain
}

// madvRemove is MADV_REMOVE of madvise(2): frees the pages and what is behind
// them; they read as zeros.
const madvRemove = 9

// giveBack returns memory to the system, and reports whether it reads as zeros
// now. Where it cannot, the memory stays in use until it is given out again.
func (a *arena) giveBack(at, size int) bool {
	return syscall.Madvise(a.mem[at:at+size], madvRemove) == nil
}

// mapMemory maps shared memory of which only what is written needs memory.
func mapMemory(size int64) (mem, error) {
	b, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED|syscall.MAP_ANONYMOUS|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("kv: map %d bytes: %w", size, err)
	}
	return b, nil
}
