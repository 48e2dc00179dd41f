package e2e

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

func TestSleepsOfScriptsAreAsExactAsElsewhere(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{
		"slack.php": `<?php echo file_get_contents("/proc/self/timerslack_ns");`,
	}})
	if err := wantBody(a.request("GET", "/slack.php", ""), "50000\n"); err != nil {
		t.Error(err)
	}
	front, err := os.ReadFile(fmt.Sprintf("/proc/%d/timerslack_ns", a.PID()))
	if errors.Is(err, os.ErrPermission) {
		return // only root may look at another process's
	}
	if err != nil || string(front) != "1000000\n" {
		t.Errorf("front: %q, %v, want a millisecond", front, err)
	}
}
