package e2e

import (
	"strings"
	"testing"
)

// With display_errors PHP prints a fatal error with status 200. A connect event
// that broke must not let anybody in all the same, and a message that broke is
// counted.
func TestFatalErrorsThatAreDisplayed(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[php]\nini_overrides = [[\"display_errors\", \"1\"]]\n")
	head, _ := a.curlUpgrade(events(`throw new Exception('the session store is down');`, ""))
	if !strings.HasPrefix(head, "HTTP/1.1 500 ") {
		t.Errorf("connect that broke: %s, want 500", firstOf(head, "\r\n"))
	}
	s := a.join("", "")
	s.send(`trigger_error('broken', E_USER_ERROR);`)
	s.wantRun(`return 1;`, `1`)
	a.waitMetric(`ephpm_ws_event_failures_total{event="message",reason="fatal"}`, 1)
}
