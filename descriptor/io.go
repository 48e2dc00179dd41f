package descriptor

import (
	"io"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrWouldBlock means that there is nothing to read now. crypto/tls goes on after an
// error that is temporary.
var ErrWouldBlock error = wouldBlock{}

type wouldBlock struct{}

func (wouldBlock) Error() string   { return "nothing to read now" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

// Read reads without waiting: ErrWouldBlock says that there is nothing, io.EOF that
// nothing follows. b must not be empty. The calls here are raw: they never wait, and
// the scheduler need not know of them.
func Read(fd int, b []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch {
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			return 0, ErrWouldBlock
		case errno != 0:
			return 0, errno
		case n == 0:
			return 0, io.EOF
		default:
			return int(n), nil
		}
	}
}

// Write writes without waiting, and returns 0 when the kernel takes nothing. b must
// not be empty.
func Write(fd int, b []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, nil
		default:
			return 0, errno
		}
	}
}

// Close frees a descriptor. Only who serves it may call it.
func Close(fd int) { _ = unix.Close(fd) } // what was written is on its way in any case

// Reset has Close break the connection: the kernel drops what the client did not
// take.
func Reset(fd int) {
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // or it keeps it for a while
}
