package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what the tests produce for the documentation (docs/chat.png)")

// binary is the path of the ephpm that TestMain built.
var binary string

// patience limits every wait for something that should happen at once. It is
// generous because the machine may be busy; a passing test never uses it up.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ephpm-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(dir)

	binary = filepath.Join(dir, "ephpm")
	args := []string{"build", "-o", binary}
	if raceEnabled {
		args = append(args, "-race")
		os.Setenv("GORACE", "atexit_sleep_ms=0") // else every server takes a second to end
	}
	build := exec.Command("go", append(args, "../cmd/ephpm")...)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: build ephpm:", err)
		return 1
	}
	return m.Run()
}
