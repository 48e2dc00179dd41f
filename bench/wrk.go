package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// A load is what wrk saw.
type load struct {
	Requests int   `json:"requests"`
	Micros   int64 `json:"micros"` // that it took
	Mean     int64 `json:"mean"`   // of the latencies, microseconds
	P50      int64 `json:"p50"`
	P99      int64 `json:"p99"`
	Errors   int   `json:"errors"` // sockets, time-outs, status 400 and above
}

// served returns how many connections had a request under way at a time, which
// for a fair server is all of them (Little's law). Latencies of a server that
// lets some starve say nothing: who was never answered is not in them.
func (l load) served() float64 { return l.rate() * float64(l.Mean) / 1e6 }

// rate returns requests per second.
func (l load) rate() float64 { return float64(l.Requests) / (float64(l.Micros) / 1e6) }

// formSize are the scripts that get a form, and its size in bytes.
var formSize = map[string]int{"post16k": 16 << 10}

var resultLine = regexp.MustCompile(`(?m)^RESULT (.*)$`)

// runWrk puts load on a script.
func runWrk(ctx context.Context, dir, base, script string, conns int, d time.Duration) (load, error) {
	var form []string
	if n := formSize[script]; n > 0 {
		form = []string{"--", strconv.Itoa(n)}
	}
	return loadURL(ctx, dir, base+"/"+script+".php", conns, d, form...)
}

// loadURL puts load on a URL; more are arguments of count.lua.
func loadURL(ctx context.Context, dir, url string, conns int, d time.Duration, more ...string) (load, error) {
	var l load
	// One thread is enough for more than any of the servers can do, and leaves
	// the CPUs to them.
	args := append([]string{
		"-t", "1", "-c", strconv.Itoa(conns),
		"-d", fmt.Sprintf("%.0fs", d.Seconds()), "--timeout", "10s",
		"-s", filepath.Join(dir, "count.lua"), url,
	}, more...)
	cmd := exec.CommandContext(ctx, "wrk", args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return l, fmt.Errorf("wrk %s: %w\n%s", url, err, out)
	}
	m := resultLine.FindSubmatch(out)
	if m == nil {
		return l, fmt.Errorf("wrk %s printed no result:\n%s", url, out)
	}
	if err := json.Unmarshal(m[1], &l); err != nil {
		return l, fmt.Errorf("wrk %s: %w", url, err)
	}
	if l.Requests == 0 {
		return l, fmt.Errorf("wrk %s: no request was answered:\n%s", url, out)
	}
	return l, nil
}
