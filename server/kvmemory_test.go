package server

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// The processes that get it can read it. Through /proc they can open it anew.
func TestSharedMemoryIsWrittenByTheFrontAlone(t *testing.T) {
	file, memory, err := shareMemory("test", 8192)
	if err != nil {
		t.Fatal(err)
	}
	defer unmap(memory)
	defer file.Close() //nolint:errcheck // nothing was written through it
	info, err := os.Stat(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o400 {
		t.Errorf("its mode is %v, want one by which no other user can open it", mode)
	}
	again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), os.O_RDWR, 0)
	if err == nil { // root may
		defer again.Close() //nolint:errcheck // nothing was written through it
		if err := again.Truncate(0); !errors.Is(err, unix.EPERM) {
			t.Errorf("a truncation: %v, want EPERM", err)
		}
	} else if !errors.Is(err, os.ErrPermission) || os.Getuid() == 0 {
		t.Error(err)
	}
	if _, err := unix.Mmap(int(file.Fd()), 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); !errors.Is(err, unix.EACCES) {
		t.Errorf("a mapping for writing: %v, want EACCES", err)
	}
	seen, err := unix.Mmap(int(file.Fd()), 0, 8192, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unmap(seen)
	if memory[0] = 'f'; seen[0] != 'f' {
		t.Error("what the front writes is not seen")
	}
}
