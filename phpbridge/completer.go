package phpbridge

import (
	"fmt"
	"math/bits"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A completer wakes the goroutines whose jobs have news. Workers set a bit a
// job and ring its doorbell only if it sleeps, so under load one system call
// serves many jobs.
type completer struct {
	file *os.File // an eventfd, in the netpoller
	done chan struct{}
}

func newCompleter() (*completer, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("doorbell: %w", err)
	}
	return &completer{os.NewFile(uintptr(fd), "doorbell"), make(chan struct{})}, nil
}

// run delivers news until close. The doorbell is never read: the netpoller is
// edge-triggered, and every ring is an edge.
func (c *completer) run(p *Pool) {
	defer close(c.done)
	conn, err := c.file.SyscallConn()
	if err != nil {
		return // only after close
	}
	asleep := u32(&p.memory.pool.completer_asleep)
	_ = conn.Read(func(uintptr) bool { // ends by close
		for {
			p.deliver()
			atomic.StoreUint32(asleep, 1)
			if !p.deliver() {
				return false
			}
			atomic.StoreUint32(asleep, 0)
		}
	})
}

// ring makes the completer look, for a worker that died before it could.
func (c *completer) ring() {
	_, _ = c.file.Write([]byte{1, 0, 0, 0, 0, 0, 0, 0}) // fails only after close
}

func (c *completer) close() {
	_ = c.file.Close() // ends run
	<-c.done
}

// deliver notifies all jobs that have news and reports whether there were any.
func (p *Pool) deliver() bool {
	found := false
	for i := range (len(p.jobs) + 63) / 64 {
		word := u64(&p.memory.pool.done[i])
		if atomic.LoadUint64(word) == 0 {
			continue
		}
		for news := atomic.SwapUint64(word, 0); news != 0; news &= news - 1 {
			if n := i*64 + bits.TrailingZeros64(news); n < len(p.jobs) {
				p.jobs[n].notify()
				found = true
			}
		}
	}
	return found
}
