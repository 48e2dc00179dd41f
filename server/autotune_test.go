package server

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestOPcacheFollowsTheMemory(t *testing.T) {
	for memory, want := range map[int64]opcache{
		256 << 20:     {64 << 20, 8 << 20, 6553},
		2 << 30:       {128 << 20, 16 << 20, 13107},
		64 << 30:      {512 << 20, 64 << 20, 52428},
		math.MaxInt64: {512 << 20, 64 << 20, 52428},
	} {
		if got := (machine{2, memory}).opcache(); got != want {
			t.Errorf("with %v: %+v, want %+v", Size(memory), got, want)
		}
	}
}

func TestWorkersFollowTheMachine(t *testing.T) {
	const gib = 1 << 30
	tests := []struct {
		machine     machine
		config      PHPConfig
		least, most int
	}{
		{machine{2, 4 * gib}, PHPConfig{}, 2, 64},
		{machine{1, gib / 4}, PHPConfig{}, 2, 16},
		{machine{1, 64 * gib}, PHPConfig{}, 2, 32},
		{machine{64, 512 * gib}, PHPConfig{}, 64, 512},
		{machine{8, 8 * gib}, PHPConfig{Workers: 4}, 4, 4},
		{machine{2, 8 * gib}, PHPConfig{Workers: 10, MinWorkers: 5}, 5, 10},
		{machine{2, 8 * gib}, PHPConfig{Workers: 1}, 1, 1},
		{machine{2, 8 * gib}, PHPConfig{MinWorkers: 1000}, 64, 64},
	}
	for _, tt := range tests {
		if least, most := tt.machine.workers(tt.config); least != tt.least || most != tt.most {
			t.Errorf("%+v, %d to %d: %d to %d workers, want %d to %d",
				tt.machine, tt.config.MinWorkers, tt.config.Workers, least, most, tt.least, tt.most)
		}
	}
}

func TestGrantedMemoryIsTheLeastLimit(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	meminfo := file("MemFree: 1 kB\nMemTotal:     2048 kB\n")
	tests := []struct {
		name  string
		files fstest.MapFS
		want  int64
	}{
		{"no cgroup", fstest.MapFS{"proc/meminfo": meminfo}, 2 << 20},
		{"no limit", fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max": file("max\n")}, 2 << 20},
		{"a parent's limit", fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max": file("max\n"), "sys/fs/cgroup/a/memory.max": file("1000\n")}, 1000},
		{"in a container", fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/\n"),
			"sys/fs/cgroup/memory.max": file("4096\n")}, 4096},
		{"outside of the mount", fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/../../x\n"),
			"sys/fs/cgroup/memory.max": file("4096\n")}, 4096},
		{"version 1", fstest.MapFS{"proc/meminfo": meminfo, "sys/fs/cgroup/memory/memory.limit_in_bytes": file("5000\n")}, 5000},
	}
	for _, tt := range tests {
		if got := grantedMemory(tt.files); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", tt.name, got, tt.want)
		}
	}
}
