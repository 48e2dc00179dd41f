package server

import (
	"bytes"
	"context"
	"math"
	"os"
	"runtime"
	"strconv"
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
	procsUp    = 0.9                    // of the present ones in use
	procsFull  = 8 * procsEvery         // for so long: double them
	procsDown  = 0.75                   // of one fewer in use
	procsCalm  = 2 * time.Second        // for so long: one fewer
	procsFade  = 0.3                    // weight of a new look at the others
)

// A procs keeps GOMAXPROCS near what the front uses and what others leave it. A
// processor that the front does not need is not just idle: Go's scheduler wakes
// a thread to look for work whenever a goroutine becomes ready, and on a machine
// that runs PHP on the same cores that thread takes the core from the worker
// that the goroutine waits for.
type procs struct {
	most   int
	now    int
	full   time.Duration // above procsUp
	calm   time.Duration // below procsDown, or more than others leave
	others float64       // processors that other processes use
	limit  func(int)     // sets GOMAXPROCS
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
	last := useNow()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		u := useNow()
		d := u.at.Sub(last.at)
		inUse := float64(u.ours-last.ours) / float64(d)
		p.look(inUse, float64(u.all-last.all)/float64(d)-inUse, d)
		last = u
		if inUse < 0.05 {
			timer.Reset(procsIdle)
		} else {
			timer.Reset(procsEvery)
		}
	}
}

// look takes note of how many processors were in use during d, by this process
// and by others.
func (p *procs) look(inUse, others float64, d time.Duration) {
	p.others += procsFade * (max(0, others) - p.others)
	left := min(p.most, max(1, int(math.Round(float64(p.most)-p.others))))
	full := inUse > procsUp*float64(p.now) && p.now < left
	calm := p.now > 1 && (inUse < procsDown*float64(p.now-1) || p.now > left)
	p.full = longer(p.full, d, full)
	p.calm = longer(p.calm, d, calm)
	switch {
	case p.full >= procsFull:
		p.full = 0
		p.set(min(left, 2*p.now))
	case p.calm >= procsCalm:
		p.calm = 0
		p.set(p.now - 1)
	}
}

// longer adds d to how long something has been so, or starts anew.
func longer(so, d time.Duration, still bool) time.Duration {
	if !still {
		return 0
	}
	return so + d
}

func (p *procs) set(n int) {
	if n != p.now {
		p.now = n
		p.limit(n)
	}
}

// A use is the CPU time that was used until a moment.
type use struct {
	at        time.Time
	ours, all time.Duration // all is of the whole machine
}

func useNow() use {
	u := use{at: time.Now()}
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err == nil { // cannot fail
		u.ours = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	u.all = u.ours
	if stat, err := os.ReadFile("/proc/stat"); err == nil {
		u.all = busyTime(stat)
	}
	return u
}

// busyTime returns the sum of user, nice, system, irq, softirq and steal time in
// the first line of /proc/stat (proc_stat(5)), which counts in hundredths of a
// second.
func busyTime(stat []byte) time.Duration {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	var ticks int64
	for i, field := range bytes.Fields(line) {
		if i < 1 || i == 4 || i == 5 || i > 8 { // the name, idle, iowait, and guests, who count as users
			continue
		}
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
