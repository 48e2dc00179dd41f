package e2e

import "testing"

// What a script had in its buffers when its time was over must not begin an
// answer: nothing was sent, so the client is told 504.
func TestScriptOverTheTimeLimitWithAFullBufferIs504(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[server.timeouts]\nrequest = \"100ms\"\n",
		Files: map[string]string{"index.php": `<?php ob_start(); echo str_repeat("x", 1000000); sleep(60);`},
	})
	if resp, body, err := fetch(a.request("GET", "/", "")); err != nil || resp.StatusCode != 504 {
		t.Errorf("%v, %d bytes, %v; want 504", resp.Status, len(body), err)
	}
}
