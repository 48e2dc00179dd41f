package phpbridge

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// What a script does to its process is gone with the request.
func TestAScriptThatChangesItsProcessIsTheLastOfItsWorker(t *testing.T) {
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers = 1, 1 })
	pid := func() string { return body(t, run(t, p, script(t, `echo getmypid();`))) }
	recycled := uint64(0)
	for function, call := range map[string]string{
		"posix_setrlimit": `if (!posix_setrlimit(POSIX_RLIMIT_NOFILE, 3, 3)) echo posix_strerror(posix_errno());`,
		"posix_setsid":    `posix_setsid();`,
		"proc_nice":       `if (!proc_nice(5)) echo "not nicer";`,
		"pcntl_fork":      `$c = pcntl_fork(); if ($c == 0) exit; pcntl_waitpid($c, $status);`,
	} {
		before := pid()
		got := body(t, run(t, p, script(t, `if (!function_exists("`+function+`")) die("none"); `+call)))
		if got == "none" {
			continue // this build of PHP, or valgrind, without extensions
		}
		if got != "" {
			t.Errorf("%s: %q", function, got)
		}
		if after := pid(); after == before {
			t.Errorf("%s: the next request runs in the same process", function)
		}
		recycled++
	}
	if s := p.Stats(); s.Crashes != 0 || s.Recycles != recycled || recycled == 0 {
		t.Errorf("%d crashes and %d recycled, want 0 and %d", s.Crashes, s.Recycles, recycled)
	}
}

// Limits that were changed past PHP's functions are seen within a second.
func TestAWorkerWithOtherLimitsIsReplaced(t *testing.T) {
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers = 1, 1 })
	before := body(t, run(t, p, script(t, `echo getmypid();`)))
	var pid int
	if _, err := fmt.Sscan(before, &pid); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}, nil); err != nil {
		t.Fatal(err)
	}
	next := script(t, `echo getmypid();`)
	waitFor(t, "another worker", func() bool { return body(t, run(t, p, next)) != before })
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process is still there: %v", err)
	}
}
