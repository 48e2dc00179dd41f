package quic

import (
	"net"

	"golang.org/x/sys/unix"
)

// steer attaches to the group of sockets that c belongs to the program that
// picks one for each packet; see socketOf. It is classic BPF, which needs no
// privilege.
func steer(c *net.UDPConn, sockets int) error {
	program := steering(uint32(sockets))
	return control(c, func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &unix.SockFprog{
			Len:    uint16(len(program)),
			Filter: &program[0],
		})
	})
}

// steering is socketOf for the kernel. The data that it sees starts behind the
// UDP header, and what it returns is an index into the group, in the order of
// binding; one that is too large means "by the hash of the addresses". A load
// behind the end of a packet ends it with 0.
func steering(sockets uint32) []unix.SockFilter {
	const (
		load   = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS
		mod    = unix.BPF_ALU | unix.BPF_MOD | unix.BPF_K
		isSet  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		equals = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		jump   = unix.BPF_JMP | unix.BPF_JA
		result = unix.BPF_RET | unix.BPF_A
		number = unix.BPF_RET | unix.BPF_K
		byHash = 0xffffffff
	)
	return []unix.SockFilter{
		{Code: load, K: 0},
		{Code: isSet, K: longHeader, Jt: 2}, // to the long header
		{Code: load, K: shortID},
		{Code: jump, K: 4}, // to mod
		{Code: load, K: longIDLen},
		{Code: equals, K: 0, Jf: 1},
		{Code: number, K: byHash},
		{Code: load, K: longID},
		{Code: mod, K: sockets},
		{Code: result},
	}
}

// control runs f with the descriptor of a socket.
func control(c *net.UDPConn, f func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}
