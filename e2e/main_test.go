package e2e

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what the tests produce for the documentation (docs/chat.png)")

// under has the server's PHP run under a command, see build/test-valgrind.sh.
var under = flag.String("under", "", "command that runs the zygotes, and with them the workers")

// binary is the path of the ephpm that TestMain built.
var binary string

// patience limits every wait for something that should happen at once. It is
// generous because the machine may be busy; a passing test never uses it up.
const patience = time.Minute

// maxTime is patience for curl.
const maxTime = "60"

func TestMain(m *testing.M) {
	flag.Parse()
	waitTogether()
	os.Exit(buildAndRun(m))
}

// waitTogether lets twice as many tests run at a time as processors do, unless it is
// told how many: most of them wait.
func waitTogether() {
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if !set {
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))) // it is a number
	}
}

// lookAtSources opens every directory that the binary or a test may depend on. go
// test remembers results, and knows only by this that they are of another binary.
func lookAtSources() error {
	return filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "bin" || path != ".." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		return err
	})
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ephpm-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(dir)

	if err := lookAtSources(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	binary = filepath.Join(dir, "ephpm")
	args := []string{"build", "-o", binary}
	if raceEnabled {
		args = append(args, "-race")
		os.Setenv("GORACE", "atexit_sleep_ms=0") // else every server takes a second to end
	}
	if *under != "" {
		args = append(args, "-tags", "under")
		os.Setenv("ZYGOTE_UNDER", *under)
	}
	build := exec.Command("go", append(args, "../cmd/ephpm")...)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: build ephpm:", err)
		return 1
	}
	return m.Run()
}
