package e2e

import "testing"

// How long a write may take says nothing of a socket on which nobody writes.
func TestQuietSocketsOverEveryTransport(t *testing.T) {
	t.Parallel()
	e := startEveryHTTP(t, appOptions{TOML: "[server.timeouts]\nidle = 1\nheader_read = 1\n[server.websocket]\nwrite_timeout_secs = 1\n", Files: map[string]string{
		"websocket.php": `<?php if ($_SERVER['WS_EVENT'] === 'message') {
			$ms = (int)file_get_contents('php://input');
			usleep($ms * 1000);
			ephpm_ws_send("after $ms");
		}`}})
	for _, over := range transports {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			f := e.dial(t, over)
			for _, ms := range []string{"0", "2500", "0"} {
				f.say(frameText, ms)
				f.want(frameText, "after "+ms)
			}
		})
	}
}
