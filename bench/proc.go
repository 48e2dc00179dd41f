package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTick is the unit of the times in /proc/PID/stat on Linux.
const clockTick = 10 * time.Millisecond

// A procStat is what /proc/PID/stat says of a process.
type procStat struct {
	parent int
	cpu    time.Duration // user and system, of itself and of children it waited for
}

func readStat(pid int) (procStat, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, false // ended meanwhile
	}
	// The name, in parentheses, may hold anything; fields are counted after it.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 15 {
		return procStat{}, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(fields[i]) // the kernel writes numbers
		return n
	}
	ticks := number(11) + number(12) + number(13) + number(14)
	return procStat{parent: number(1), cpu: time.Duration(ticks) * clockTick}, true
}

// processTree returns the processes and all that descend from them, parents
// first.
func processTree(roots ...int) []int {
	children := map[int][]int{}
	paths, _ := filepath.Glob("/proc/[0-9]*") // the pattern is correct
	for _, path := range paths {
		pid, _ := strconv.Atoi(filepath.Base(path))
		if st, ok := readStat(pid); ok {
			children[st.parent] = append(children[st.parent], pid)
		}
	}
	tree := slices.Clone(roots)
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i]]...)
	}
	return tree
}

// cpuTime returns the CPU time that the processes used up to now.
func cpuTime(pids []int) time.Duration {
	var sum time.Duration
	for _, pid := range pids {
		if st, ok := readStat(pid); ok {
			sum += st.cpu
		}
	}
	return sum
}

// memory returns the proportional set size of the processes in bytes: memory
// that several share counts once in all.
func memory(pids ...int) (int64, error) {
	var sum int64
	for _, pid := range pids {
		n, err := pss(pid)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// pss returns that of one process, zero when it has ended meanwhile.
func pss(pid int) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("process %d: smaps_rollup has no Pss", pid)
}
