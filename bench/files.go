package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"
)

// benchFiles are what measureFiles fetches: name and size in bytes.
var benchFiles = []struct {
	name string
	size int
}{{"1k.bin", 1 << 10}, {"1m.bin", 1 << 20}}

// fileBar is the least that files should reach, times nginx, with fileConns
// connections.
const (
	fileBar   = 0.8
	fileConns = 64
)

// measureFiles prints static files over HTTP/1.1 with keep-alive beside nginx.
func measureFiles(ctx context.Context, dir string, o options) error {
	for _, f := range benchFiles {
		content := bytes.Repeat([]byte("0123456789abcdef"), f.size/16)
		if err := os.WriteFile(filepath.Join(dir, "www", f.name), content, 0o644); err != nil {
			return err
		}
	}
	ours, err := startEphpm(ctx, dir, o)
	if err != nil {
		return err
	}
	defer ours.stop()
	theirs, err := startFPM(ctx, dir, o, false)
	if err != nil {
		return err
	}
	defer theirs.stop()
	servers := []*server{ours, theirs}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%d connections\treq/s\tMB/s\tp50 ms\tp99 ms\tCPU µs/req\tephpm ÷ nginx\t\n", fileConns)
	var bars []string
	for _, f := range benchFiles {
		got := map[*server][]sample{}
		for _, s := range servers { // not counted: caches fill
			if _, err := fetchFiles(ctx, dir, s, f.name, time.Second); err != nil {
				return err
			}
		}
		for range o.rounds {
			for _, s := range servers {
				one, err := fetchFiles(ctx, dir, s, f.name, o.duration)
				if err != nil {
					return err
				}
				got[s] = append(got[s], one)
			}
		}
		ratio := rateRatio(got[ours], got[theirs])
		for _, s := range servers {
			rate, note := median(got[s], sample.rate), ""
			if s == ours {
				note = fmt.Sprintf("%.2f", ratio)
			}
			fmt.Fprintf(w, "%s %s\t%.0f\t%.0f\t%.2f\t%.2f\t%.0f\t%s\t\n", map[bool]string{true: "ephpm", false: "nginx"}[s == ours], f.name,
				rate, rate*float64(f.size)/1e6,
				float64(median(got[s], func(s sample) int64 { return s.P50 }))/1e3,
				float64(median(got[s], func(s sample) int64 { return s.P99 }))/1e3,
				float64(median(got[s], sampleCPU))/1e3, note)
		}
		verdict := "ok"
		if ratio < fileBar {
			verdict = "missed"
		}
		bars = append(bars, fmt.Sprintf("bar %.2f: %.2f %s (requests per second, %s, times nginx)", fileBar, ratio, verdict, f.name))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, line := range bars {
		fmt.Println(line)
	}
	return nil
}

func fetchFiles(ctx context.Context, dir string, s *server, name string, d time.Duration) (sample, error) {
	pids := s.pids()
	before := cpuTime(pids)
	l, err := loadURL(ctx, dir, s.url+"/"+name, fileConns, d)
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w", s.name, err)
	}
	if l.Errors > 0 {
		return sample{}, fmt.Errorf("%s: %d errors for %s", s.name, l.Errors, name)
	}
	return sample{load: l, cpu: (cpuTime(pids) - before) / time.Duration(l.Requests)}, nil
}
