package descriptor

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Set is an epoll set of descriptors by tag, with a bell: epoll(7). Go's own poller
// waits for the set, so that nobody who waits holds a thread. Add, Remove and Ring
// may be called from any goroutine; Take and Serve from one; Close when Serve has
// returned.
type Set struct {
	fd   int
	file *os.File // the same, as Go's own poller waits for it
	bell int      // an eventfd in the set
}

// An Event is one of a descriptor: Events, and its tag in Fd.
type Event = unix.EpollEvent

// What can be asked for, and happens. Edge has an event once for each thing that
// happens (EPOLLET); without it there is one as long as something can be done.
const (
	In   = unix.EPOLLIN
	Out  = unix.EPOLLOUT
	Hup  = unix.EPOLLRDHUP
	Edge = unix.EPOLLET

	// HangUps say that the client ended its side, or broke the connection.
	HangUps  = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	Readable = unix.EPOLLIN | HangUps
	Writable = unix.EPOLLOUT | unix.EPOLLHUP | unix.EPOLLERR
)

// Bell is the tag of the events that Ring makes.
const Bell = -1

// NewSet returns an empty set.
func NewSet() (*Set, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	err = errors.Join(
		unix.SetNonblock(fd, true), // or Go's poller would not wait for it
		unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, bell, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: Bell}),
	)
	if err != nil {
		_, _ = unix.Close(fd), unix.Close(bell)
		return nil, err
	}
	return &Set{fd: fd, file: os.NewFile(uintptr(fd), "epoll"), bell: bell}, nil
}

// Serve calls f whenever there may be events, until it returns true. f has taken all
// there are when it returns false.
func (s *Set) Serve(f func() (done bool)) {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return // never: the file is open
	}
	_ = raw.Read(func(uintptr) bool { return f() }) // ends by f alone
}

// Add puts a descriptor into the set. The tag is 0 or more. Closing the descriptor
// takes it out, if there is no other of the same connection.
func (s *Set) Add(fd int, events uint32, tag int32) error {
	return unix.EpollCtl(s.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: tag})
}

// Remove takes a descriptor that is there out of the set.
func (s *Set) Remove(fd int) { _ = unix.EpollCtl(s.fd, unix.EPOLL_CTL_DEL, fd, nil) }

// Take returns how many of events it has set. It does not wait.
func (s *Set) Take(events []Event) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(s.fd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0 // a signal came
	}
	return int(n)
}

// Ring makes an event with the tag Bell. Each is one by itself, so nobody has to
// read.
func (s *Set) Ring() {
	one := [8]byte{1}
	_, _ = unix.Write(s.bell, one[:]) // fails only after 2^64 rings
}

// Close frees the set. The descriptors in it stay open.
func (s *Set) Close() { _, _ = s.file.Close(), unix.Close(s.bell) }
