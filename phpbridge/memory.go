package phpbridge

// #include "wire.h"
import "C"

import (
	"fmt"
	"math/bits"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A memory is the pool's memory, shared with the zygote and its workers. They
// can write anything anywhere in it at any time: whatever is read here is
// copied out and checked before it is used.
type memory struct {
	file  *os.File
	data  []byte
	pool  *C.struct_ephpm_pool
	slots []C.struct_ephpm_slot
	jobs  []C.struct_ephpm_job
	areas []byte
	tails [classes]uint64 // of the queues, as the front has moved them; guarded by Pool.mu
}

func newMemory(jobs, maxRequests int) (*memory, error) {
	fd, err := unix.MemfdCreate("ephpm-pool", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), "ephpm-pool")
	slotsAt := int(unsafe.Sizeof(C.struct_ephpm_pool{}))
	jobsAt := slotsAt + C.EPHPM_SLOTS*int(unsafe.Sizeof(C.struct_ephpm_slot{}))
	areasAt := jobsAt + jobs*int(unsafe.Sizeof(C.struct_ephpm_job{}))
	size := areasAt + jobs*C.EPHPM_AREA_SIZE
	if err := file.Truncate(int64(size)); err != nil {
		_ = file.Close() // the first error counts
		return nil, fmt.Errorf("shared memory of %d bytes: %w", size, err)
	}
	// A script can open the zygote's descriptor through /proc. If it could make the
	// memory shorter, the front would die of SIGBUS.
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		_ = file.Close() // the first error counts
		return nil, fmt.Errorf("seal shared memory: %w", err)
	}
	data, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = file.Close() // the first error counts
		return nil, fmt.Errorf("map shared memory of %d bytes: %w", size, err)
	}
	m := &memory{
		file:  file,
		data:  data,
		pool:  (*C.struct_ephpm_pool)(unsafe.Pointer(&data[0])),
		slots: unsafe.Slice((*C.struct_ephpm_slot)(unsafe.Pointer(&data[slotsAt])), C.EPHPM_SLOTS),
		jobs:  unsafe.Slice((*C.struct_ephpm_job)(unsafe.Pointer(&data[jobsAt])), jobs),
		areas: data[areasAt:],
	}
	m.pool.jobs = C.uint32_t(jobs)
	m.pool.max_requests = C.uint32_t(maxRequests)
	m.pool.magic = C.EPHPM_MAGIC
	return m, nil
}

// bePatient lets workers look for work for a while before they sleep, when the
// next job often comes within it.
func (m *memory) bePatient() { m.pool.patience_ns = C.EPHPM_PATIENCE_NS }

// area returns the bytes of a job, capped so that no slice reaches into
// another's.
func (m *memory) area(job, offset, size int) []byte {
	at := job*C.EPHPM_AREA_SIZE + offset
	return m.areas[at : at+size : at+size]
}

func (m *memory) close() {
	_ = unix.Munmap(m.data) // cannot fail for a mapping that Mmap made
	_ = m.file.Close()      // nothing was written through it
}

// u32 and u64 give atomic access to a field of the shared structures.
func u32(p *C.uint32_t) *uint32 { return (*uint32)(unsafe.Pointer(p)) }
func u64(p *C.uint64_t) *uint64 { return (*uint64)(unsafe.Pointer(p)) }

// futexWakeOp is FUTEX_WAKE of linux/futex.h. The memory is shared between
// processes, so it is not the private kind.
const futexWakeOp = 1

// futexWake wakes the process that sleeps on word, if one does. The call does
// not block, so the scheduler need not know of it.
func futexWake(word *uint32) {
	_, _, _ = unix.RawSyscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWakeOp, 1) // only EFAULT is possible
}

// push appends an entry to the class's queue. The caller, who holds Pool.mu, is the
// only producer. False if it is full of withdrawn jobs.
func (m *memory) push(class Class, entry uint64) bool {
	q, tail := &m.pool.queue[class], m.tails[class]
	if tail-atomic.LoadUint64(u64(&q.head)) >= C.EPHPM_QUEUE {
		return false
	}
	atomic.StoreUint64(u64(&q.entry[tail%C.EPHPM_QUEUE]), entry)
	m.tails[class] = tail + 1
	atomic.StoreUint64(u64(&q.tail), tail+1)
	return true
}

// mend empties a queue whose ends are where nobody of ours puts them. False if they
// are where they may be.
func (m *memory) mend(class Class) bool {
	q, tail := &m.pool.queue[class], m.tails[class]
	if atomic.LoadUint64(u64(&q.tail)) == tail && tail-atomic.LoadUint64(u64(&q.head)) <= C.EPHPM_QUEUE {
		return false
	}
	atomic.StoreUint64(u64(&q.tail), tail)
	atomic.StoreUint64(u64(&q.head), tail)
	return true
}

func (m *memory) queueEmpty(class Class) bool {
	q := &m.pool.queue[class]
	return atomic.LoadUint64(u64(&q.head)) == atomic.LoadUint64(u64(&q.tail))
}

// wake wakes the sleeping worker of the lowest slot in mask, so that those of
// high slots get old and can end. False if none sleeps.
func (m *memory) wake(mask *slotSet) bool {
	for i := range mask {
		word := u64(&m.pool.sleepers[i])
		for {
			asleep := atomic.LoadUint64(word) & mask[i]
			if asleep == 0 {
				break
			}
			bit := asleep & -asleep
			if atomic.AndUint64(word, ^bit)&bit != 0 {
				m.ring(i*64 + bits.TrailingZeros64(bit))
				return true
			}
		}
	}
	return false
}

// watched reports whether a worker of the mask looks for work, and will find the
// only entry of the class's queue.
func (m *memory) watched(class Class, mask *slotSet) bool {
	q := &m.pool.queue[class]
	if atomic.LoadUint64(u64(&q.tail))-atomic.LoadUint64(u64(&q.head)) > 1 {
		return false
	}
	for i := range mask {
		if atomic.LoadUint64(u64(&m.pool.lookers[i]))&mask[i] != 0 {
			return true
		}
	}
	return false
}

// ring wakes the worker of a slot, asleep or not.
func (m *memory) ring(slot int) {
	word := u32(&m.slots[slot].wake)
	atomic.AddUint32(word, 1)
	futexWake(word)
}
