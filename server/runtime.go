package server

import (
	"context"
	"os"
	"runtime"
	"syscall"
	"time"
)

// TuneRuntime fits Go's runtime to a front that shares its machine with PHP, until
// ctx ends. It is for the process that runs one Server and nothing else. The
// environment variables GOGC, GOMEMLIMIT and GOMAXPROCS come first.
func TuneRuntime(ctx context.Context) {
	var floor []byte
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		floor = make([]byte, heapFloor)
	}
	newProcs().follow(ctx)
	runtime.KeepAlive(floor)
}

// heapFloor counts as live for the garbage collector but is never touched, so it
// is no memory of the machine: with a few MiB of live data the collector would
// otherwise run twenty times a second under load. In bytes.
const heapFloor = 16 << 20

// How GOMAXPROCS follows the load.
const (
	procsEvery = 50 * time.Millisecond  // looked at, with something to do
	procsIdle  = 250 * time.Millisecond // and with nothing
	procsUp    = 0.8                    // of the present ones in use: double them
	procsDown  = 0.4                    // of one fewer in use
	procsCalm  = 2 * time.Second        // for so long: one fewer
)

// A procs keeps GOMAXPROCS near what the front uses. A processor that the front
// does not need is not just idle: Go's scheduler wakes a thread to look for
// work whenever a goroutine becomes ready, and on a machine that runs PHP on
// the same cores that thread takes the core from the worker that the goroutine
// waits for.
type procs struct {
	most  int
	now   int
	calm  time.Duration
	limit func(int) // sets it
}

func newProcs() *procs {
	return &procs{most: runtime.GOMAXPROCS(0), now: runtime.GOMAXPROCS(0), limit: func(n int) { runtime.GOMAXPROCS(n) }}
}

// follow runs until ctx ends, and puts things back.
func (p *procs) follow(ctx context.Context) {
	if p.most == 1 || os.Getenv("GOMAXPROCS") != "" {
		<-ctx.Done() // nothing to choose, or chosen
		return
	}
	defer p.set(p.most)
	p.set(1)
	timer := time.NewTimer(procsEvery)
	defer timer.Stop()
	used, at := cpuTime(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		u, t := cpuTime(), time.Now()
		inUse := float64(u-used) / float64(t.Sub(at))
		p.look(inUse, t.Sub(at))
		used, at = u, t
		if inUse < 0.05 {
			timer.Reset(procsIdle)
		} else {
			timer.Reset(procsEvery)
		}
	}
}

// look takes note of how many processors were in use during d.
func (p *procs) look(inUse float64, d time.Duration) {
	switch {
	case inUse > procsUp*float64(p.now):
		p.calm = 0
		p.set(min(p.most, 2*p.now))
	case p.now > 1 && inUse < procsDown*float64(p.now-1):
		if p.calm += d; p.calm >= procsCalm {
			p.calm = 0
			p.set(p.now - 1)
		}
	default:
		p.calm = 0
	}
}

func (p *procs) set(n int) {
	if n != p.now {
		p.now = n
		p.limit(n)
	}
}

// cpuTime returns the CPU time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // cannot be
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
