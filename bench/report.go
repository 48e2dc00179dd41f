package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// A bar is what a comparison should reach: theirs and ours in one ratio, where
// more is better for us.
type bar struct {
	what    string
	sub     subject
	against string
	ratio   func(ours, theirs []sample) float64
	want    float64
}

var bars = []bar{
	{"requests per second, hello, 64 connections, times fpm", subject{"hello", 64}, "fpm", rateRatio, 2.7},
	{"requests per second, hello, 64 connections, times fpm keep-alive", subject{"hello", 64}, "fpm keep-alive", rateRatio, 2},
	{"requests per second, hello, 1 connection, times fpm", subject{"hello", 1}, "fpm", rateRatio, 1.1},
	{"requests per second, 30 KB page, 64 connections, times fpm", subject{"page30k", 64}, "fpm", rateRatio, 1.15},
	{"requests per second, form of 16 KB, 64 connections, times fpm", subject{"post16k", 64}, "fpm", rateRatio, 1.7},
	{"latency of 99 %, hello, 64 connections, theirs by ours", subject{"hello", 64}, "fpm", lateRatio, 1},
}

func rateRatio(ours, theirs []sample) float64 {
	return median(ours, sample.rate) / median(theirs, sample.rate)
}

func lateRatio(ours, theirs []sample) float64 {
	late := func(s sample) int64 { return s.P99 }
	return float64(median(theirs, late)) / float64(median(ours, late))
}

func sampleCPU(s sample) time.Duration { return s.cpu }

// median returns the middle one of a figure, the lower of two.
func median[S any, T cmp.Ordered](samples []S, figure func(S) T) T {
	var all []T
	for _, s := range samples {
		all = append(all, figure(s))
	}
	slices.Sort(all)
	return all[(len(all)-1)/2]
}

func printTable(sub subject, servers []*server, got map[string][]sample) {
	fmt.Printf("%s.php, %d connections\n", sub.script, sub.conns)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "server\treq/s\tp50 ms\tp99 ms\tserved\tCPU µs/req\tPSS MB\terrors\tephpm ÷ it\t")
	ours := got[servers[0].name]
	for _, s := range servers {
		samples := got[s.name]
		errors := 0
		for _, one := range samples {
			errors += one.Errors
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.2f\t%.0f\t%.0f\t%.1f\t%d\t%.2f\t\n", s.name,
			median(samples, sample.rate),
			float64(median(samples, func(s sample) int64 { return s.P50 }))/1e3,
			float64(median(samples, func(s sample) int64 { return s.P99 }))/1e3,
			median(samples, sample.served),
			float64(median(samples, sampleCPU))/1e3,
			float64(median(samples, func(s sample) int64 { return s.memory }))/(1<<20),
			errors, rateRatio(ours, samples))
	}
	_ = w.Flush() // to the terminal
	fmt.Println()
}

func printBars(all results) {
	for _, b := range bars {
		got := all[b.sub]
		if len(got["ephpm"]) == 0 {
			continue // not measured this time
		}
		ratio := b.ratio(got["ephpm"], got[b.against])
		verdict := "ok"
		if ratio < b.want {
			verdict = "missed"
		}
		fmt.Printf("bar %.2f: %.2f %s (%s)\n", b.want, ratio, verdict, b.what)
	}
}
