package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A gate holds a script at one place until the test opens it. It is a named
// pipe: the script waits while it reads from it, without using the processor.
//
//	file_get_contents($_GET['gate']);
type gate struct {
	t    testing.TB
	path string
	file *os.File
}

// newGate returns a gate for one script. It is opened when the test ends; made
// behind the server, it is opened before the server is stopped.
func newGate(t testing.TB) *gate {
	t.Helper()
	g := &gate{t: t, path: filepath.Join(t.TempDir(), "gate")}
	if err := syscall.Mkfifo(g.path, 0o666); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if g.file != nil {
			_ = g.file.Close() // it was only opened
		}
	})
	return g
}

// wait returns when the script is at the gate.
func (g *gate) wait() {
	g.t.Helper()
	if err := g.tryWait(); err != nil {
		g.t.Fatal(err)
	}
}

// tryWait is wait for any goroutine.
func (g *gate) tryWait() error {
	err := eventually(func() (err error) {
		// Without a reader it fails.
		g.file, err = os.OpenFile(g.path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return fmt.Errorf("no script came to the gate: %w", err)
	}
	return nil
}

// reached returns true when the script is at the gate, and false when it is over
// before.
func (g *gate) reached(over func() bool) bool {
	g.t.Helper()
	at := false
	err := eventually(func() (err error) {
		if over() {
			return nil
		}
		g.file, err = os.OpenFile(g.path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		at = err == nil
		return err
	})
	if err != nil {
		g.t.Fatalf("no script came to the gate: %v", err)
	}
	return at
}

// open lets the script go on. It must have been waited for.
func (g *gate) open() {
	g.t.Helper()
	if err := g.file.Close(); err != nil {
		g.t.Error(err)
	}
	g.file = nil
}
