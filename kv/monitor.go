package kv

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// What a Monitor shows of one command: so many arguments, and so many bytes of each.
const (
	monitoredArguments = 32
	monitoredBytes     = 256
)

// maxMonitorQueue is how many bytes of lines wait for who reads a Monitor. More
// are lost, and counted.
const maxMonitorQueue = 1 << 20

// monitors are those who see the commands of one Store.
type monitors struct {
	count atomic.Int32 // of all, for those who have no time

	mu   sync.Mutex // guards the following
	last int
	all  map[int]watcher
}

// A watcher takes lines, and must not wait.
type watcher struct {
	database string // as its lines name the Store
	take     func(line []byte)
}

// Monitored reports whether anybody sees commands: if not, Report does nothing.
func (s *Store) Monitored() bool { return s.monitors.count.Load() > 0 }

// monitor gives w a line for each command until stop is called, which more than
// once does no harm.
func (s *Store) monitor(w watcher) (stop func()) {
	m := &s.monitors
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	id := m.last
	if m.all == nil {
		m.all = make(map[int]watcher)
	}
	m.all[id] = w
	s.countMonitors()
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.all, id)
		s.countMonitors()
	}
}

// countMonitors is called with monitors.mu held. Workers leave their reads to us
// while there is one.
func (s *Store) countMonitors() {
	n := len(s.monitors.all)
	s.monitors.count.Store(int32(n))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table.mem != nil { // the Store may be closed
		atomic.StoreUint32(s.table.mem.word(offMonitored), uint32(min(n, 1)))
	}
}

// Report shows a command to all monitors, as Redis has it: the time, the database
// and who sent it, the name and the arguments.
func (s *Store) Report(from, name string, args ...[]byte) {
	if !s.Monitored() {
		return
	}
	now := time.Now()
	line := appendRepr(fmt.Appendf(nil, " %s] ", from), []byte(name))
	for _, arg := range args[:min(len(args), monitoredArguments)] {
		line = appendRepr(append(line, ' '), arg[:min(len(arg), monitoredBytes)])
		if len(arg) > monitoredBytes {
			line = fmt.Appendf(line, "...(%d bytes)", len(arg))
		}
	}
	if len(args) > monitoredArguments {
		line = fmt.Appendf(line, " ...(%d arguments)", len(args))
	}
	m := &s.monitors
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.all {
		w.take(append(fmt.Appendf(nil, "%d.%06d [%s", now.Unix(), now.Nanosecond()/1000, w.database), line...))
	}
}

const hexDigits = "0123456789abcdef"

// appendRepr appends text in quotes, in printable characters.
func appendRepr(b, text []byte) []byte {
	b = append(b, '"')
	for _, c := range text {
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			if c >= ' ' && c <= '~' {
				b = append(b, c)
			} else {
				b = append(b, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
			}
		}
	}
	return append(b, '"')
}

// A Monitor keeps lines for who reads them. Its methods may be called from any
// goroutine.
type Monitor struct {
	stop func()
	more chan struct{} // holds one when there is something to read

	mu    sync.Mutex // guards the following
	lines [][]byte
	bytes int
	lost  int
}

// NewMonitor returns what shows the commands of the Store from now on, until its
// Close. Lines call the Store by a name.
func (s *Store) NewMonitor(name string) *Monitor {
	m := &Monitor{more: make(chan struct{}, 1)}
	m.stop = s.monitor(watcher{name, m.take})
	return m
}

// Close ends the monitor. More than once does no harm.
func (m *Monitor) Close() { m.stop() }

func (m *Monitor) take(line []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bytes+len(line) > maxMonitorQueue {
		m.lost++
	} else {
		m.lines = append(m.lines, line)
		m.bytes += len(line)
	}
	select {
	case m.more <- struct{}{}:
	default:
	}
}

// Next returns the lines that wait, at least one unless ctx ends before, and how
// many were lost behind them because too many waited.
func (m *Monitor) Next(ctx context.Context) (lines [][]byte, lost int) {
	select {
	case <-m.more:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	lines, lost = m.lines, m.lost
	m.lines, m.bytes, m.lost = nil, 0, 0
	return lines, lost
}
