package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// A rewrite changes what is run, not what the client asked for.
func TestRewrittenRequestKeepsItsURI(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[[rewrite]]\npath = \"/pathinfo/*\"\nto = \"/s.php/pathinfo/$1?$query_string\"\n",
		Files: map[string]string{"s.php": dump(`[$_SERVER['PATH_INFO'], $_SERVER['SCRIPT_NAME'], $_SERVER['PHP_SELF'], $_SERVER['REQUEST_URI'],
			$_SERVER['QUERY_STRING'], $_SERVER['PATH_TRANSLATED'] === $_SERVER['DOCUMENT_ROOT'] . $_SERVER['PATH_INFO'], $_GET]`)},
	})
	hundred(t, func(i int) error {
		return wantBody(a.request("GET", fmt.Sprintf("/pathinfo/%d?q=%d", i, i), ""), fmt.Sprintf(
			`["/pathinfo/%d","/s.php","/s.php/pathinfo/%d","/pathinfo/%d?q=%d","q=%d",true,{"q":"%d"}]`, i, i, i, i, i, i))
	})
}

// What waits for the only worker while PHP starts anew is served by a new one, and
// what ran is run to its end.
func TestReloadServesWhoWaits(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  metricsOn + "[server]\npid_file = \"" + filepath.Join(t.TempDir(), "pid") + "\"\n[php]\nworkers = 1\n",
		Files: holdFiles,
	})
	g, held := hold(a)
	waiting := a.queueUp(10)
	if out, err := exec.Command(binary, "reload", "-c", a.options.Config).CombinedOutput(); err != nil {
		t.Fatalf("ephpm reload: %v, %s", err, out)
	}
	a.waitLog(`msg="PHP started anew"`)
	g.open()
	if resp, _ := held.wait(); resp.StatusCode != 200 {
		t.Errorf("what ran: %s", resp.Status)
	}
	wantServed(t, waiting)
	a.waitMetric(`ephpm_php_backlog{class="page"}`, 0)
}
