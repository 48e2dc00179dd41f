package e2e

import "testing"

// Also for those who wait until there is a job for them. It fails more often on a
// busy machine.
func TestBacklogBeyondTheJobsIsFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	rounds := 3
	if raceEnabled {
		rounds = 1 // each takes long
	}
	for range rounds {
		if got, want := orderServed(t, 90); got != want {
			t.Errorf("served in the order %q, want %q", got, want)
		}
	}
}

// workers = 1 must mean that one page runs at a time while only pages come.
func TestReserveStaysOutWhileItsClassIsServed(t *testing.T) {
	a := startApp(t, appOptions{
		TOML: metricsOn + waitLong + "workers = 1\n",
		Files: map[string]string{
			"hold.php":  holdFiles["hold.php"],
			"index.php": `<?php usleep(500);`,
		}})
	for range 10 {
		g, held := hold(a)
		var waiting []*late
		for range 90 {
			waiting = append(waiting, a.later(a.request("GET", "/", "")))
		}
		a.waitMetric(`ephpm_php_backlog{class="page"}`, 90)
		g.open()
		held.wait()
		for _, l := range waiting {
			l.wait()
		}
		if n := len(a.workers()); n != 1 {
			t.Fatalf("%d workers, want 1", n)
		}
	}
}
