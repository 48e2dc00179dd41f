package main

import "strings"

// nearest returns the candidate that a mistyped name most likely meant, or ""
// when none is close. The first of several equally close ones wins.
func nearest(name string, candidates []string) string {
	best, bestDistance := "", 0
	for _, c := range candidates {
		d := distance(strings.ToLower(name), strings.ToLower(c))
		if d <= (max(len(name), len(c))+2)/3 && (best == "" || d < bestDistance) {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance counts the bytes to insert, delete, replace or swap with a neighbour
// that turn a into b (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
