package server

import (
	"bufio"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// A machine is what the system grants this process.
type machine struct {
	cpus   int
	memory int64 // in bytes
}

// thisMachine asks the runtime for the CPUs, which honours affinity and the
// cgroup's quota, and the system's files for the memory.
func thisMachine() machine {
	return machine{cpus: runtime.GOMAXPROCS(0), memory: grantedMemory(os.DirFS("/"))}
}

// workers derives how many workers are kept and how many may run, for what the
// configuration leaves open.
//
// A script that computes needs a CPU, one that waits for a database only memory.
// So the most is what half of the memory holds at 32 MiB a worker, but at least
// 16, at most 32 for each CPU, and never more than 512. As many as there are
// CPUs, at least 2, are kept ready: a fork takes about a millisecond.
func (m machine) workers(c PHPConfig) (least, most int) {
	const each = 32 << 20
	most = int(c.Workers)
	if most == 0 {
		most = min(max(16, int(m.memory/2/each)), 32*m.cpus, 512)
	}
	least = int(c.MinWorkers)
	if least == 0 {
		least = max(2, m.cpus)
	}
	return min(least, most), most
}

// An opcache is how large OPcache's shared memory is made.
type opcache struct {
	memory  int64 // in bytes
	strings int64 // of these for strings that scripts share
	files   int64 // how many scripts it may hold
}

// opcache derives it: a sixteenth of the memory, from 64 MiB, which holds a
// WordPress, to 512. It is only address space until scripts fill it. A script
// takes 30 KiB or so, and its strings an eighth of that.
func (m machine) opcache() opcache {
	const mib, script = 1 << 20, 10 << 10 // at the least
	memory := min(max(64, m.memory/16/mib), 512)
	return opcache{memory: memory * mib, strings: memory / 8 * mib, files: memory * mib / script}
}

// grantedMemory is the least of the machine's memory and the limits of the
// cgroups that this process is in.
func grantedMemory(root fs.FS) int64 {
	granted := totalMemory(root)
	for _, name := range memoryLimits(root) {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil { // not "max"
			granted = min(granted, n)
		}
	}
	return granted
}

// memoryLimits names the files that may limit this process: of its cgroup and of
// all above it in version 2, of its own in version 1.
func memoryLimits(root fs.FS) []string {
	const mount = "sys/fs/cgroup"
	names := []string{mount + "/memory/memory.limit_in_bytes"}
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return names
	}
	for line := range strings.Lines(string(text)) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !ok {
			continue
		}
		for group = path.Clean("/" + group); ; group = path.Dir(group) {
			names = append(names, path.Join(mount, group, "memory.max"))
			if group == "/" {
				break
			}
		}
	}
	return names
}

// totalMemory is the machine's memory.
func totalMemory(root fs.FS) int64 {
	f, err := root.Open("proc/meminfo")
	if err != nil {
		return math.MaxInt64
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 2 && fields[0] == "MemTotal:" {
			if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				return kib << 10
			}
		}
	}
	return math.MaxInt64
}
