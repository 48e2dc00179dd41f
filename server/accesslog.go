package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// accessKept is how much waits for the writer, in bytes; what comes while it
	// is full is dropped and counted. A request never waits for the disk.
	accessKept = 8 << 20
	// accessPiece is how much is written at once, in bytes, if it comes soon.
	accessPiece = 64 << 10
	// accessDelay is how long a line may wait for others.
	accessDelay = 200 * time.Millisecond
)

// An accessLog writes a line for each request. add may be called from any goroutine;
// run once, which ends it.
type accessLog struct {
	format  func(b []byte, e *entry) []byte
	key     string // of the configuration
	name    string // of the file, or AccessStdout
	log     *slog.Logger
	scratch sync.Pool // of *[]byte
	some    chan struct{}
	many    chan struct{} // accessPiece or more wait
	again   chan struct{} // open the file anew
	dropped atomic.Uint64 // lines

	// Owned by run.
	file   *os.File
	failed bool // the last writing did; it is told once

	mu    sync.Mutex // guards the following
	lines []byte
	spare []byte // lines' other buffer
}

// newAccessLog opens the log of a checked configuration, which has it at key; it is
// nil when there is none.
func newAccessLog(key string, c LoggingConfig, log *slog.Logger) (*accessLog, error) {
	if c.Access == "" {
		return nil, nil
	}
	a := &accessLog{
		format: accessFormats[c.AccessFormat], key: key, name: c.Access, log: log,
		some: make(chan struct{}, 1), many: make(chan struct{}, 1), again: make(chan struct{}, 1),
	}
	a.scratch.New = func() any { return new([]byte) }
	var err error
	a.file, err = a.open()
	return a, err
}

func (a *accessLog) open() (*os.File, error) {
	if a.name == AccessStdout {
		// A copy: Go ends the process when nobody reads the descriptor 1.
		fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil, fmt.Errorf("%s: standard output: %w", a.key, err)
		}
		return os.NewFile(uintptr(fd), AccessStdout), nil
	}
	f, err := os.OpenFile(a.name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.key, err)
	}
	return f, nil
}

// add has an entry written soon.
func (a *accessLog) add(e *entry) {
	scratch := a.scratch.Get().(*[]byte)
	line := a.format((*scratch)[:0], e)
	a.mu.Lock()
	before := len(a.lines)
	if before+len(line) <= accessKept {
		a.lines = append(a.lines, line...)
	} else {
		a.dropped.Add(1)
	}
	after := len(a.lines)
	a.mu.Unlock()
	*scratch = line
	a.scratch.Put(scratch)
	if before == 0 {
		poke(a.some)
	}
	if before < accessPiece && after >= accessPiece {
		poke(a.many)
	}
}

// poke wakes who waits; one poke is enough for several.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// reopen opens the file anew, when what was added before is written: it has been
// renamed.
func (a *accessLog) reopen() { poke(a.again) }

// run writes until ctx ends, and then the rest.
func (a *accessLog) run(ctx context.Context) {
	defer func() { _ = a.file.Close() }() // all was written or told
	defer a.flush()
	soon := time.NewTimer(accessDelay)
	defer soon.Stop()
	for {
		select {
		case <-a.some:
		case <-a.again:
			a.turn()
			continue
		case <-ctx.Done():
			return
		}
		soon.Reset(accessDelay)
		select {
		case <-soon.C:
		case <-a.many:
		case <-a.again:
			a.turn()
		case <-ctx.Done():
			return
		}
		a.flush()
	}
}

// turn goes on in a new file of the same name. When there can be none, the old one
// is better than nothing.
func (a *accessLog) turn() {
	a.flush()
	f, err := a.open()
	if err != nil {
		a.log.Error("the access log is not opened anew", "file", a.name, "err", err)
		return
	}
	_ = a.file.Close() // as in run
	a.file = f
	a.log.Info("access log opened anew", "file", a.name)
}

// flush writes what there is.
func (a *accessLog) flush() {
	a.mu.Lock()
	lines := a.lines
	a.lines, a.spare = a.spare[:0], nil
	a.mu.Unlock()
	if len(lines) == 0 {
		a.giveBack(lines)
		return
	}
	n, err := a.file.Write(lines)
	if err != nil {
		a.dropped.Add(uint64(bytes.Count(lines[n:], []byte("\n"))))
	}
	switch {
	case err != nil && !a.failed:
		a.log.Error("the access log cannot be written, lines are lost", "file", a.name, "err", err)
	case err == nil && a.failed:
		a.log.Info("the access log is written again", "file", a.name, "lost", a.dropped.Load())
	}
	a.failed = err != nil
	a.giveBack(lines)
}

// giveBack keeps a buffer of usual size for later.
func (a *accessLog) giveBack(b []byte) {
	if cap(b) > 4*accessPiece {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spare = b
}
