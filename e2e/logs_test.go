package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestErrorLogIsInTheServersLog(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"dir/script.php": `<?php error_log("number {$_GET['i']}"); echo $_SERVER['REQUEST_ID'];`}})
	ids := make([]string, 100)
	hundred(t, func(i int) error {
		_, id, err := fetch(a.request("GET", fmt.Sprintf("/dir/script.php?i=%d", i), ""))
		ids[i] = id
		return err
	})
	for i, id := range ids {
		a.waitLine(`msg="PHP message"`, fmt.Sprintf(`text="number %d"`, i), `site=default`, `script=\S+/dir/script\.php\b`, `request=`+id+`\b`)
	}
}

func TestWhatPHPHasToSayIsInTheServersLog(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		Args: []string{"-v"},
		Files: map[string]string{"index.php": `<?php
			echo $undefined;
			error_log("several\nlines\twith \"quotes\" and \x1b[31m");
			error_log(str_repeat("long ", 100_000));
			fwrite(fopen('php://stderr', 'w'), "to stderr\n");
			syslog(LOG_INFO, "not ours");
			shell_exec('echo from a child >&2');`}})
	if _, body := a.get("/"); body != "" {
		t.Errorf("messages are shown to the client: %q", body)
	}
	wantLine := func(level, message, text string) {
		t.Helper()
		a.waitLine(`level=`+level+` msg="`+message+`"`, `text="`+text, `site=default`, `script=\S+/index\.php\b`, `request=\S+`)
	}
	wantLine("WARN", "PHP message", `PHP Warning:  Undefined variable \$undefined in \S+ on line 2"`)
	wantLine("INFO", "PHP message", `several\\nlines\\twith \\"quotes\\" and \\x1b\[31m"`)
	wantLine("INFO", "PHP message", `(long ){100}`)
	wantLine("WARN", "PHP stderr", `to stderr"`)
	wantLine("WARN", "PHP stderr", `from a child"`)
}

func TestErrorLogGoesWhereIniSays(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/php.log"
	a := startApp(t, appOptions{
		TOML:  fmt.Sprintf("[php]\nini_overrides = [[\"error_log\", %q]]\n", file),
		Files: map[string]string{"index.php": `<?php error_log("into the file"); echo file_get_contents(ini_get('error_log'));`},
	})
	if _, body := a.get("/"); !strings.Contains(body, "into the file") {
		t.Errorf("the file has %q", body)
	}
}

func TestHealthAndReady(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[php]\nworkers = 1\nworker_backlog = 0\n",
		Files: map[string]string{"hold.php": holdFiles["hold.php"], "index.php": `<?php echo "script";`},
	})
	g, held := hold(a) // it does not take a worker to be healthy
	for path, want := range map[string]string{
		"/_ephpm/health": `{"status":"ok"}` + "\n", "/_ephpm/ready": `{"status":"ready"}` + "\n",
		"/_ephpm/health?x": `{"status":"ok"}` + "\n", "/_ephpm/%68ealth": `{"status":"ok"}` + "\n",
	} {
		resp, body := a.getExactly(path)
		if resp.StatusCode != 200 || body != want || resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("GET %s: %s %q %v, want %q", path, resp.Status, body, resp.Header, want)
		}
	}
	if resp, body := a.do(a.request("HEAD", "/_ephpm/health", "")); resp.StatusCode != 200 || body != "" {
		t.Errorf("HEAD: %s %q", resp.Status, body)
	}
	g.open()
	held.wait()
	// The last answer is out a moment before its worker is free.
	a.wantBodyUnless(503, "/_ephpm/other", "script")
	post := func() error {
		resp, body := a.do(a.request("POST", "/_ephpm/health", ""))
		if resp.StatusCode == 503 {
			return errors.New(resp.Status)
		}
		if body != "script" {
			t.Errorf("POST is the site's: %s %q", resp.Status, body)
		}
		return nil
	}
	if err := eventually(post); err != nil {
		t.Error(err)
	}
}
