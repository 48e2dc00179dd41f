package e2e

import (
	"fmt"
	"syscall"
	"testing"
)

// reservedAddr returns an address of 127.0.0.1 whose port is nobody else's until
// the test ends, while a server listens there and while none does: whoever connects
// then is refused. Otherwise the kernel would give the port to the next client or
// server that wants any, of which other tests start thousands.
func reservedAddr(t testing.TB) string {
	t.Helper()
	// A port that is bound is given to nobody who asks for any. Who asks for this
	// one gets it with SO_REUSEADDR, which package net sets for listeners, as long
	// as nobody listens.
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) }) // it was only bound
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
}
