package websocket

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// An epoll is an epoll set of descriptors by slot, with a bell: epoll(7). Go's own
// poller waits for the set, so that nobody who waits holds a thread.
type epoll struct {
	fd   int
	file *os.File // the same, as Go's own poller waits for it
	bell int      // an eventfd in the set
}

const (
	interest = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET
	hangUps  = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	readable = unix.EPOLLIN | hangUps
	writable = unix.EPOLLOUT | unix.EPOLLHUP | unix.EPOLLERR

	// bellSlot is the bell's in the set; no connection has it.
	bellSlot = 0
)

func newEpoll() (*epoll, error) {
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
		unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, bell, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: bellSlot}),
	)
	if err != nil {
		_, _ = unix.Close(fd), unix.Close(bell)
		return nil, err
	}
	return &epoll{fd: fd, file: os.NewFile(uintptr(fd), "epoll"), bell: bell}, nil
}

// serve calls f whenever there may be events, until it returns true. f has taken
// all there are when it returns.
func (e *epoll) serve(f func() (done bool)) {
	raw, err := e.file.SyscallConn()
	if err != nil {
		return // never: the file is open
	}
	_ = raw.Read(func(uintptr) bool { return f() }) // ends by f alone
}

// add puts a descriptor into the set. Closing it takes it out.
func (e *epoll) add(fd int, slot int32) error {
	return unix.EpollCtl(e.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: interest, Fd: slot})
}

// take returns how many of events it has set. It does not wait.
func (e *epoll) take(events []unix.EpollEvent) int {
	n, _ := unix.EpollWait(e.fd, events, 0) // nothing, when a signal came
	return max(0, n)
}

// ring makes the set readable. Each write is an event by itself, so nobody has
// to read.
func (e *epoll) ring() {
	one := [8]byte{1}
	_, _ = unix.Write(e.bell, one[:]) // fails only after 2^64 rings
}

// close is called when serve has returned.
func (e *epoll) close() { _, _ = e.file.Close(), unix.Close(e.bell) }
