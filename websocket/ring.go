package websocket

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What <linux/io_uring.h> says and package unix does not.
const (
	ringOffSQ        = 0
	ringOffSQEs      = 0x10000000
	ringEnterGetting = 1 // IORING_ENTER_GETEVENTS
	ringSingleMmap   = 1 // IORING_FEAT_SINGLE_MMAP, Linux 5.4
	ringOpSend       = 26

	errnoAgain = int(unix.EAGAIN)
)

// ringParams is struct io_uring_params.
type ringParams struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFD uint32
	_                                                                      [3]uint32
	sq                                                                     struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
}

// ringSQE is struct io_uring_sqe as far as a send has to do with it.
type ringSQE struct {
	opcode, flags uint8
	ioprio        uint16
	fd            int32
	off           uint64
	addr          uint64
	len           uint32
	msgFlags      uint32
	userData      uint64
	_             [3]uint64
}

// ringCQE is struct io_uring_cqe.
type ringCQE struct {
	userData uint64
	result   int32
	flags    uint32
}

// A ring is an io_uring that sends in batches: many messages for one entry into
// the kernel, which is where the time of a broadcast goes. It is used by one
// goroutine at a time.
type ring struct {
	fd     int
	shared []byte // both queues
	sqes   []byte
	used   [][]byte // keeps what is being sent; no pointer in sqes does

	sqHead, sqTail, cqHead, cqTail *uint32
	mask                           uint32 // of the submission queue
	cqMask                         uint32
	cqes                           unsafe.Pointer
	pending                        uint32 // pushed, not submitted
}

// newRing returns a ring for so many sends at a time, a power of two, that has
// proved to work. Kernels and containers refuse them for many reasons.
func newRing(entries uint32) (*ring, error) {
	var p ringParams
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(entries), uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		return nil, fmt.Errorf("io_uring_setup: %w", errno)
	}
	unix.CloseOnExec(int(fd))
	r := &ring{fd: int(fd)}
	err := r.mmap(&p)
	if err == nil {
		err = r.try()
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *ring) mmap(p *ringParams) (err error) {
	if p.features&ringSingleMmap == 0 {
		return errors.New("io_uring: the kernel is older than 5.4")
	}
	size := max(p.sq.array+p.sqEntries*4, p.cq.cqes+p.cqEntries*uint32(unsafe.Sizeof(ringCQE{})))
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	if r.shared, err = unix.Mmap(r.fd, ringOffSQ, int(size), prot, flags); err != nil {
		return fmt.Errorf("io_uring: mmap: %w", err)
	}
	if r.sqes, err = unix.Mmap(r.fd, ringOffSQEs, int(p.sqEntries)*int(unsafe.Sizeof(ringSQE{})), prot, flags); err != nil {
		return fmt.Errorf("io_uring: mmap: %w", err)
	}
	at := func(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.shared[off])) }
	r.sqHead, r.sqTail, r.mask = at(p.sq.head), at(p.sq.tail), *at(p.sq.mask)
	r.cqHead, r.cqTail, r.cqMask = at(p.cq.head), at(p.cq.tail), *at(p.cq.mask)
	r.cqes = unsafe.Pointer(&r.shared[p.cq.cqes])
	for i := range p.sqEntries { // entry i of the queue is always in place i
		*at(p.sq.array + 4*i) = i
	}
	return nil
}

// try sends a byte through a pair of sockets.
func (r *ring) try() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _, _ = unix.Close(pair[0]), unix.Close(pair[1]) }()
	result := 0
	r.push(pair[0], []byte{1}, 0)
	if err := r.submit(func(_, n int) { result = n }); err != nil {
		return err
	}
	if result != 1 {
		return fmt.Errorf("io_uring: send: %w", unix.Errno(-result))
	}
	return nil
}

// push adds a send of b, which stays as it is until submit returns.
func (r *ring) push(fd int, b []byte, tag int) {
	tail := *r.sqTail
	size := unsafe.Sizeof(ringSQE{})
	sqe := (*ringSQE)(unsafe.Pointer(&r.sqes[uintptr(tail&r.mask)*size]))
	*sqe = ringSQE{
		opcode: ringOpSend, fd: int32(fd), addr: uint64(uintptr(unsafe.Pointer(&b[0]))), len: uint32(min(len(b), 1<<30)),
		msgFlags: unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL, userData: uint64(tag),
	}
	r.used = append(r.used, b)
	atomic.StoreUint32(r.sqTail, tail+1)
	r.pending++
}

// submit has everything sent that was pushed and calls done with the tag and the
// result of each. Nothing waits for a client. After an error, which a ring that
// has worked does not give, those without a result were not sent.
func (r *ring) submit(done func(tag, result int)) error {
	var failed error
	for left := r.pending; left > 0; {
		submitted, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(r.pending), uintptr(left), ringEnterGetting, 0, 0)
		if errno == 0 {
			r.pending -= uint32(submitted)
		} else if errno != unix.EINTR && errno != unix.EAGAIN && errno != unix.EBUSY {
			failed = fmt.Errorf("io_uring_enter: %w", errno)
			break
		}
		head := *r.cqHead
		for tail := atomic.LoadUint32(r.cqTail); head != tail; head++ {
			cqe := (*ringCQE)(unsafe.Add(r.cqes, uintptr(head&r.cqMask)*unsafe.Sizeof(ringCQE{})))
			tag, result := int(cqe.userData), int(cqe.result)
			atomic.StoreUint32(r.cqHead, head+1)
			done(tag, result)
			left--
		}
	}
	runtime.KeepAlive(r.used)
	clear(r.used)
	r.used = r.used[:0]
	return failed
}

func (r *ring) close() {
	if r.shared != nil {
		_ = unix.Munmap(r.shared)
	}
	if r.sqes != nil {
		_ = unix.Munmap(r.sqes)
	}
	_ = unix.Close(r.fd)
}
