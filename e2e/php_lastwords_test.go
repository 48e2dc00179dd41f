package e2e

import "testing"

func TestLastWordsOfACrashedScriptAreLogged(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `error_log("my last words"); `+crash)
	a.get("/")
	a.waitLog(`text="my last words"`)
}

func TestLastWordsOfAScriptOverTheTimeLimitAreLogged(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[server.timeouts]\nrequest = \"100ms\"\n",
		Files: map[string]string{"index.php": `<?php error_log("my last words"); sleep(60);`},
	})
	a.get("/")
	a.waitLog(`text="my last words"`)
}

func TestErrorLogIsThereWhileTheScriptRuns(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `error_log("still at it"); file_get_contents($_GET['gate']);`)
	g := newGate(t)
	answer := a.later(a.request("GET", "/?gate="+g.path, ""))
	g.wait()
	a.waitLog(`text="still at it"`)
	g.open()
	answer.wait()
}
