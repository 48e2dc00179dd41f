//go:build race

package e2e

// raceEnabled says whether this test binary has the race detector.
const raceEnabled = true
