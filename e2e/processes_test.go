package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A process is one of a server: the front, the zygote or a worker.
type process struct {
	pid  int
	name string // as the kernel has it: "ephpm", "ephpm-php-0"
}

func (p process) isWorker() bool { return strings.HasPrefix(p.name, "ephpm-php-") }

// processes lists the living processes of the server: those of the session that
// startApp made for it, whatever process groups they are in.
func (a *app) processes() []process {
	var list []process
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is fine
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid pgrp session …: the name may hold anything.
		open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
		fields := strings.Fields(string(text[end+1:]))
		pid, err := strconv.Atoi(strings.TrimSpace(string(text[:open])))
		if err != nil || fields[3] != strconv.Itoa(a.PID()) || fields[0] == "Z" {
			continue
		}
		list = append(list, process{pid, string(text[open+1 : end])})
	}
	return list
}

// workers lists the process ids of the workers.
func (a *app) workers() []int {
	var pids []int
	for _, p := range a.processes() {
		if p.isWorker() {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// memory returns how much memory the server's processes have in all, in bytes.
// Shared memory counts once. Pages of files do not count: they are shared with
// whatever else runs the same files at this moment, and do not leak.
func (a *app) memory() (int, error) {
	sum := 0
	for _, p := range a.processes() {
		rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.pid))
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(string(rollup)) {
			fields := strings.Fields(line)
			if fields[0] == "Pss_Anon:" || fields[0] == "Pss_Shmem:" {
				kib, err := strconv.Atoi(fields[1])
				if err != nil {
					return 0, err
				}
				sum += kib << 10
			}
		}
	}
	if sum == 0 {
		return 0, errors.New("no process has any memory")
	}
	return sum, nil
}

func TestProcessesFindsEveryRole(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		Files: map[string]string{"index.php": `<?php echo getmypid(), ' ', posix_getppid();`},
		TOML:  "[php]\nworkers = 2\nmin_workers = 2\n",
	})
	_, body := a.get("/")
	var worker, zygote int
	if _, err := fmt.Sscan(body, &worker, &zygote); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	list := a.processes()
	for role, pid := range map[string]int{"front": a.PID(), "zygote": zygote, "worker": worker} {
		if !slices.ContainsFunc(list, func(p process) bool { return p.pid == pid }) {
			t.Errorf("processes are %v, without the %s, %d", list, role, pid)
		}
	}
	if workers := a.workers(); len(workers) != 2 || !slices.Contains(workers, worker) {
		t.Errorf("workers are %v, want two with %d among them", workers, worker)
	}
}
