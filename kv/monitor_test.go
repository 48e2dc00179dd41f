package kv

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var monitorTime = regexp.MustCompile(`^\d{10}\.\d{6} `)

func TestAMonitorSeesCommands(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{MemoryLimit: 1 << 20})
	if s.Report("php", "get", []byte("k")); s.Monitored() {
		t.Error("a store is watched from the start")
	}
	m := s.NewMonitor("a.example")
	s.Report("php", "set", []byte("k\x00\"\\\r\n\t\xff"), []byte(strings.Repeat("x", 300)))
	s.Report("php", "del", make([][]byte, 40)...)
	lines, lost := m.Next(t.Context())
	want := []string{
		`[a.example php] "set" "k\x00\"\\\r\n\t\xff" "` + strings.Repeat("x", 256) + `"...(300 bytes)`,
		`[a.example php] "del"` + strings.Repeat(` ""`, 32) + ` ...(40 arguments)`,
	}
	if len(lines) != 2 || lost != 0 {
		t.Fatalf("%d lines, %d lost: %q", len(lines), lost, lines)
	}
	for i, line := range lines {
		if got := monitorTime.ReplaceAllString(string(line), ""); got != want[i] || got == string(line) {
			t.Errorf("line %d: %s, want the time and %s", i, line, want[i])
		}
	}
	for i := range 100_000 {
		s.Report("php", "get", fmt.Append(nil, i))
	}
	lines, lost = m.Next(t.Context())
	if size := len(lines) * len(lines[0]); lost == 0 || len(lines)+lost != 100_000 || size > 2*maxMonitorQueue {
		t.Errorf("%d lines of %d bytes, and %d are lost, of 100,000", len(lines), size, lost)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if lines, lost := m.Next(ctx); len(lines) > 0 || lost > 0 {
		t.Errorf("%q and %d without a command", lines, lost)
	}
	m.Close()
	if m.Close(); s.Monitored() {
		t.Error("a store is watched after the end")
	}
}

func TestMONITORShowsWhatClientsSend(t *testing.T) {
	t.Parallel()
	store := newStore(t, Options{MemoryLimit: 1 << 20})
	_, addr, _ := serveParked(t, ServerOptions{Default: store, Authenticate: func(_, _ string) *Store { return store }})
	m, p := dial(t, addr), dial(t, addr)
	if got := m.do("MONITOR"); got != "+OK" {
		t.Fatalf("MONITOR: %s", got)
	}
	for _, line := range []string{"set k 'v w'", "auth secret", "multi", "incr n", "exec", "nonsense", "get"} {
		p.do(line)
	}
	store.Report("php", "get", []byte("k"))
	var got []string
	for range 5 {
		got = append(got, regexp.MustCompile(`^\+\d+\.\d+ \[0 (127\.0\.0\.1:\d+|php)\] `).ReplaceAllString(m.read(), ""))
	}
	want := []string{`"set" "k" "v w"`, `"multi"`, `"exec"`, `"incr" "n"`, `"get" "k"`}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("MONITOR shows %q, want %q", got, want)
	}
	m.send("RESET")
	for line := m.read(); line != "+RESET"; line = m.read() {
		if !strings.Contains(line, `"RESET"`) {
			t.Errorf("after RESET: %s", line)
		}
	}
	if store.Monitored() {
		t.Error("the store is watched after RESET")
	}
}
