package e2e

import (
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// An outputLog collects what a process writes and wakes who waits for a line.
type outputLog struct {
	mu      sync.Mutex // guards the following
	text    []byte
	changed chan struct{} // closed and replaced by every Write
}

func newOutputLog() *outputLog {
	return &outputLog{changed: make(chan struct{})}
}

func (l *outputLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	close(l.changed)
	l.changed = make(chan struct{})
	return len(p), nil
}

func (l *outputLog) String() string {
	text, _ := l.snapshot()
	return text
}

func (l *outputLog) snapshot() (string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text), l.changed
}

// waitLine waits until a line of the server's log matches every pattern: the order
// of attributes is nobody's promise.
func (a *app) waitLine(patterns ...string) {
	a.t.Helper()
	err := eventually(func() error {
		if n := a.countLines(patterns...); n == 0 {
			return errors.New("no such line")
		}
		return nil
	})
	if err != nil {
		a.t.Errorf("the server's log has no line with all of %q: %v", patterns, err)
	}
}

// countLines counts the lines of the server's log that match every pattern.
func (a *app) countLines(patterns ...string) int {
	n := 0
	for line := range strings.Lines(a.Log()) {
		all := true
		for _, p := range patterns {
			all = all && regexp.MustCompile(p).MatchString(line)
		}
		if all {
			n++
		}
	}
	return n
}

// wait returns the first match of pattern and its groups. It gives up, with
// nil, when stop is closed or after patience.
func (l *outputLog) wait(t testing.TB, pattern string, stop <-chan struct{}) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	timeout := time.After(patience)
	for {
		text, changed := l.snapshot()
		if m := re.FindStringSubmatch(text); m != nil {
			return m
		}
		select {
		case <-changed:
		case <-timeout:
			return nil
		case <-stop:
			// What was written last counts too.
			return re.FindStringSubmatch(l.String())
		}
	}
}
