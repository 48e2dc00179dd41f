package server

import (
	"context"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// A taken says what a client has taken of what it was sent. The zero value is one
// that has taken all.
type taken struct {
	since time.Time // something was waiting in the kernel all the time from here
	acked uint64    // bytes that the client's kernel had acknowledged then
	goal  uint64    // and would have acknowledged with all that waited
}

// tooSlow takes note of a connection's state: bytes that wait to be acknowledged,
// and that were in all. It reports whether the client took less than rate bytes a
// second for as long as window, although there was more to take.
func (t *taken) tooSlow(now time.Time, waiting int, acked uint64, window time.Duration, rate int64) bool {
	if waiting == 0 {
		*t = taken{}
		return false
	}
	slow := false
	if !t.since.IsZero() && acked < t.goal {
		d := now.Sub(t.since)
		if d < window {
			return false
		}
		slow = float64(acked-t.acked) < float64(rate)*d.Seconds()
	}
	*t = taken{now, acked, acked + uint64(waiting)}
	return slow
}

// slowWindow is how long a client may be slow: as long as it may be silent.
func slowWindow(c ServerConfig) time.Duration {
	if c.Timeouts.Idle == 0 {
		return time.Minute
	}
	return time.Duration(c.Timeouts.Idle)
}

// watchSlow cuts clients that do not take their answers, until ctx ends. It asks
// the kernel how much of them waits, which costs those who write nothing, and it
// sees what sendfile and TLS send as well. Sockets are not among them.
func (a *connections) watchSlow(ctx context.Context, window time.Duration, rate int64) {
	tick := time.NewTicker(max(window/4, 10*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			a.cutSlow(now, window, rate)
		case <-ctx.Done():
			return
		}
	}
}

func (a *connections) cutSlow(now time.Time, window time.Duration, rate int64) {
	a.mu.Lock()
	open := make([]*conn, 0, len(a.open))
	for c := range a.open {
		open = append(open, c)
	}
	a.mu.Unlock()
	for _, c := range open {
		waiting, acked := sendState(c.TCPConn)
		if c.taken.tooSlow(now, waiting, acked, window, rate) {
			a.metrics.connectionCut(cutSlowClient)
			_ = c.SetLinger(0) // the kernel drops what waits
			_ = c.Close()      // what writes to it ends
		}
	}
}

// sendState returns how many bytes wait to be acknowledged, and how many were. It
// returns zeros for a connection that is closed.
func sendState(c *net.TCPConn) (waiting int, acked uint64) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0
	}
	_ = raw.Control(func(fd uintptr) { // fails when it is closed
		if waiting, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err != nil || waiting == 0 {
			waiting = 0
			return
		}
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			acked = info.Bytes_acked
		}
	})
	return waiting, acked
}
