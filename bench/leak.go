package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// roleMemory is the memory of ephpm by role, in bytes.
type roleMemory struct {
	front, zygote, workers int64
	count                  int // of workers
}

// measureLeak runs many requests through ephpm and prints what its processes
// held before and after.
func measureLeak(ctx context.Context, dir string, o options) error {
	s, err := startEphpm(ctx, dir, o)
	if err != nil {
		return err
	}
	defer s.stop()
	put := func(requests int) (done int, err error) {
		for done < requests {
			for _, script := range o.scripts {
				l, err := runWrk(ctx, dir, s.url, script, slices.Max(o.conns), 2*time.Second)
				if err != nil {
					return done, err
				}
				done += l.Requests
			}
		}
		return done, nil
	}
	// Pools, caches and buffers reach their size first.
	if _, err := put(o.requests / 10); err != nil {
		return err
	}
	before, err := memoryByRole(s)
	if err != nil {
		return err
	}
	done, err := put(o.requests)
	if err != nil {
		return err
	}
	after, err := memoryByRole(s)
	if err != nil {
		return err
	}
	fmt.Printf("PSS in MB over %d requests\n", done)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tbefore\tafter\tbytes per request\t")
	row := func(name string, a, b int64) {
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.1f\t\n", name, float64(a)/(1<<20), float64(b)/(1<<20), float64(b-a)/float64(done))
	}
	row("front", before.front, after.front)
	row("zygote", before.zygote, after.zygote)
	row(fmt.Sprintf("%d workers", after.count), before.workers, after.workers)
	return w.Flush()
}

// memoryByRole tells the roles apart by who is whose child.
func memoryByRole(s *server) (roleMemory, error) {
	var m roleMemory
	front := s.procs[0].cmd.Process.Pid
	for _, pid := range s.pids() {
		n, err := pss(pid)
		if err != nil {
			return m, err
		}
		switch st, _ := readStat(pid); {
		case pid == front:
			m.front += n
		case st.parent == front:
			m.zygote += n
		default:
			m.workers += n
			m.count++
		}
	}
	return m, nil
}
