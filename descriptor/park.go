package descriptor

import (
	"crypto/tls"
	"math"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unsentLimit is how much the kernel takes that it cannot send yet. It keeps the
// memory of a slow client small, and what waits where its owner can drop it.
const unsentLimit = 128 << 10

// A Parked is a connection that was parked.
type Parked struct {
	FD  int  // who serves it closes it
	TLS *TLS // what reads and writes it; nil: Read and Write do
}

// Park takes the descriptor from package net, which would keep 800 bytes and an entry
// in Go's poller for it: it is duplicated, and conn closed. It fails, and conn stays
// as it is, for what is no TCP connection, for TLS on one that is not from a Parkable
// listener, and when the process has no descriptor left. Nobody reads or writes
// conn meanwhile.
func Park(conn net.Conn) (Parked, bool) {
	secure, isTLS := conn.(*tls.Conn)
	below := conn
	var low *lower
	if isTLS {
		if low, isTLS = secure.NetConn().(*lower); !isTLS {
			return Parked{}, false
		}
		below = low.conn
	}
	fd, ok := Duplicate(below)
	if !ok {
		return Parked{}, false
	}
	limitUnsent(fd)
	if low != nil {
		low.park(int32(fd))
		return Parked{fd, &TLS{secure, low}}, true
	}
	_ = conn.Close() // fd is another descriptor of the same connection
	return Parked{FD: fd}, true
}

// Duplicate returns one more descriptor of a connection that has one, or wraps one
// that has.
func Duplicate(conn net.Conn) (fd int, ok bool) {
	for {
		u, wraps := conn.(interface{ NetConn() net.Conn })
		if !wraps {
			break
		}
		conn = u.NetConn()
	}
	s, has := conn.(syscall.Conn)
	if !has {
		return 0, false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return 0, false
	}
	failed := raw.Control(func(old uintptr) {
		fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0)
	})
	return fd, err == nil && failed == nil
}

// limitUnsent is an optimization, so errors do not matter.
func limitUnsent(fd int) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentLimit)
}

// LimitUnacknowledged has a connection break when what it was sent is not acknowledged
// for so long (RFC 5482, TCP_USER_TIMEOUT), or cannot be sent because the client takes
// nothing. Zero leaves it at what TCP does, which is to try for a quarter of an hour.
func LimitUnacknowledged(fd int, d time.Duration) {
	if d > 0 {
		ms := min(max(1, d.Milliseconds()), math.MaxInt32)
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(ms)) // all kernels of ours have it
	}
}
