package phpbridge

import (
	"net/http/httptest"
	"syscall"
	"testing"
)

// stop sends SIGSTOP to the workers in slots, which run nothing, and waits until
// they stand.
func stop(t *testing.T, p *Pool, slots ...int) {
	t.Helper()
	for _, i := range slots {
		pid := 0
		waitFor(t, "a worker in the slot", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			pid = p.slots[i].pid
			return pid != 0
		})
		stopProcess(t, pid)
	}
}

func stopProcess(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a process that stands", func() bool { return stopped(processState(pid)) })
}

func TestWorkersThatAreStoppedAreReplaced(t *testing.T) {
	t.Parallel()
	p := testPool(t, nil)
	run(t, p, script(t, ``))
	stop(t, p, 0, 1)
	if got := body(t, run(t, p, script(t, `echo "fine";`))); got != "fine" { // or fails after BacklogWait
		t.Errorf("the request got %q", got)
	}
	waitFor(t, "the end of one", func() bool { return p.Stats().Crashes > 0 })
}

// The worker of the lowest slot is woken first. What it leaves is another's.
func TestAWorkerThatIsStoppedKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	p := testPool(t, nil)
	run(t, p, script(t, ``))
	stop(t, p, 0)
	for range 3 {
		if got := body(t, run(t, p, script(t, `echo "fine";`))); got != "fine" {
			t.Errorf("the request got %q", got)
		}
	}
}

func TestReloadEndsAWorkerThatIsStopped(t *testing.T) {
	t.Parallel()
	p := testPool(t, nil)
	run(t, p, script(t, ``))
	stop(t, p, 0)
	if err := p.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "two workers of the new zygote", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i := range 2 {
			if s := &p.slots[i]; s.status != slotRunning || s.zygote != p.zygote || s.pid == 0 {
				return false
			}
		}
		return true
	})
}

func TestAZygoteThatIsStoppedGoesOn(t *testing.T) {
	t.Parallel()
	p := testPool(t, nil)
	p.mu.Lock()
	zygote := p.zygote
	p.mu.Unlock()
	run(t, p, script(t, ``))
	stopProcess(t, zygote.cmd.Process.Pid)
	if got := body(t, run(t, p, script(t, `echo "from a live worker";`))); got != "from a live worker" {
		t.Errorf("while it stands, a request got %q", got)
	}
	for i := range 2 {
		p.kill(i, syscall.SIGKILL)
	}
	waitFor(t, "an answer from a new worker", func() bool {
		w := httptest.NewRecorder()
		_, err := p.Serve(t.Context(), w, script(t, `echo "fine";`))
		return err == nil && w.Body.String() == "fine" && p.Stats().Spawns > 2
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.zygote != zygote {
		t.Error("the zygote was replaced, and its workers with it")
	}
}
