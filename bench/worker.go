package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// How a worker is measured.
const (
	workerHellos = 1000 // before its memory is looked at
	workerKills  = 100
	killPause    = 150 * time.Millisecond
	killPatience = 5 * time.Second
)

// measureWorker prints what an idle worker holds, and how long it takes from the
// death of a worker until another is there in its place.
func measureWorker(ctx context.Context, dir string, o options) error {
	s, err := startEphpm(ctx, dir, o)
	if err != nil {
		return err
	}
	defer s.stop()
	for range workerHellos * o.workers {
		if _, err := fetch(ctx, s.url+"/hello.php"); err != nil {
			return err
		}
	}
	m, err := memoryByRole(s)
	if err != nil {
		return err
	}
	fmt.Printf("PSS of an idle worker after %d requests or so: %.2f MB\n",
		workerHellos, float64(m.workers)/float64(m.count)/(1<<20))

	var took []time.Duration
	for range workerKills {
		d, err := timeReplacement(ctx, s)
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	slices.Sort(took)
	fmt.Printf("replacement of a killed worker: p50 %.2f ms, max %.2f ms of %d\n",
		took[len(took)/2].Seconds()*1e3, took[len(took)-1].Seconds()*1e3, len(took))
	return nil
}

// timeReplacement kills a worker and waits for one that was not there before.
func timeReplacement(ctx context.Context, s *server) (time.Duration, error) {
	zygote, before, err := workersOf(s)
	if err != nil {
		return 0, err
	}
	// One that dies as it is born is replaced later, on purpose.
	select {
	case <-time.After(killPause):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	start := time.Now()
	if err := syscall.Kill(before[0], syscall.SIGKILL); err != nil {
		return 0, fmt.Errorf("kill worker %d: %w", before[0], err)
	}
	for time.Since(start) < killPatience {
		for _, pid := range childrenOf(zygote) {
			if !slices.Contains(before, pid) {
				took := time.Since(start)
				_, err := fetch(ctx, s.url+"/hello.php") // and it goes on
				return took, err
			}
		}
	}
	return 0, fmt.Errorf("no worker after %v", killPatience)
}

// workersOf returns the zygote, which is the front's child, and its workers.
func workersOf(s *server) (zygote int, workers []int, err error) {
	for _, zygote = range childrenOf(s.procs[0].cmd.Process.Pid) {
		if workers = childrenOf(zygote); len(workers) > 0 {
			return zygote, workers, nil
		}
	}
	return 0, nil, errors.New("no process has workers")
}

// childrenOf reads what proc_pid_task(5) says of a process's threads.
func childrenOf(pid int) (children []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is correct
	for _, file := range files {
		data, _ := os.ReadFile(file) // a thread that ended has none
		for _, field := range strings.Fields(string(data)) {
			if n, err := strconv.Atoi(field); err == nil {
				children = append(children, n)
			}
		}
	}
	return children
}
