package e2e

import "testing"

func TestServerStopsInGoodOrder(t *testing.T) {
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php echo PHP_SAPI;`}})
	if resp, body := a.get("/"); resp.StatusCode != 200 || body != "ephpm" {
		t.Errorf("GET / = %s %q, want 200 and the SAPI's name", resp.Status, body)
	}
	if status := a.Stop(); status != 0 {
		t.Errorf("exit status after SIGTERM is %d, want 0", status)
	}
	a.waitLog(`msg=stopped`)
}

func TestProcessesEndWithAKilledFront(t *testing.T) {
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php echo 1;`}})
	a.get("/")
	a.Kill() // checks that nobody is left
}
