package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// youngScripts lets OPcache keep files that were written just now.
const youngScripts = `["opcache.file_update_protection", "0"]`

// cacheState is a script: is the cache there, is page.php in it, how often was it
// emptied, by a script and because it was full?
const cacheState = `<?php $s = opcache_get_status(false);
	echo json_encode([$s['opcache_enabled'], opcache_is_script_cached(__DIR__ . '/page.php'),
		$s['opcache_statistics']['manual_restarts'], $s['opcache_statistics']['oom_restarts']]);`

// Emptying the cache under load harms no request: neither those that run, nor those
// that begin in the very moment when it is emptied.
func TestOPcacheResetIsSafe(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[php]\nworkers = 40\nini_overrides = [" + youngScripts + "]\n",
		Files: map[string]string{
			"index.php": `<?php if ($_GET['i'] % 5 == 0) opcache_reset(); else usleep(1000); require 'part.php'; echo part($_GET['i']);`,
			"part.php":  `<?php function part($i) { return "part $i"; }`,
		}})
	for range 10 {
		hundred(t, func(i int) error {
			return wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""), fmt.Sprintf("part %d", i))
		})
	}
	if log := a.Log(); strings.Contains(log, "worker died") || strings.Contains(log, "PHP message") {
		t.Errorf("the log says:\n%s", log)
	}
}

// The cache is one: whoever empties it does so for every worker, and for every
// request that begins afterwards.
func TestOPcacheResetTakesEffectInEveryWorker(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[php]\nworkers = 8\nmin_workers = 8\nopcache_revalidate = \"never\"\nini_overrides = [" + youngScripts + "]\n",
		Files: map[string]string{
			"page.php":  `<?php usleep(1000); require 'part.php';`,
			"part.php":  `<?php echo "old";`,
			"reset.php": `<?php var_export(opcache_reset());`,
			"state.php": cacheState,
		},
	})
	page := func(want string) func(int) error {
		return func(int) error { return wantBody(a.request("GET", "/page.php", ""), want) }
	}
	hundred(t, page("old"))
	writeFiles(t, a.options.Root, map[string]string{"part.php": `<?php echo "new";`})
	hundred(t, page("old"))
	if err := wantBody(a.request("GET", "/reset.php", ""), "true"); err != nil {
		t.Fatal(err)
	}
	hundred(t, page("new"))
	if err := eventually(func() error { // it is there again
		if err := page("new")(0); err != nil {
			return err
		}
		return wantBody(a.request("GET", "/state.php", ""), `[true,true,1,0]`)
	}); err != nil {
		t.Error(err)
	}
}

// A script that runs on and on keeps the cache from being emptied; then PHP starts
// anew beside it, and the others have a cache again.
func TestOPcacheIsThereAgainDespiteAScriptThatUsesIt(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"page.php":  `<?php echo "page";`,
		"reset.php": `<?php var_export(opcache_reset());`,
		"state.php": cacheState,
	}
	for name, script := range holdFiles {
		files[name] = script
	}
	a := startApp(t, appOptions{
		TOML:  "[php]\nworkers = 4\nini_overrides = [" + youngScripts + ", [\"opcache.force_restart_timeout\", \"1\"]]\n",
		Files: files,
	})
	g, held := hold(a)
	if err := wantBody(a.request("GET", "/reset.php", ""), "true"); err != nil {
		t.Fatal(err)
	}
	if err := wantBody(a.request("GET", "/state.php", ""), `[false,false,0,0]`); err != nil {
		t.Errorf("while a script uses it: %v", err)
	}
	a.waitLog(`msg="scripts keep OPcache from being emptied, starting PHP anew"`)
	if err := eventually(func() error {
		if err := wantBody(a.request("GET", "/page.php", ""), "page"); err != nil {
			return err
		}
		return wantBody(a.request("GET", "/state.php", ""), `[true,true,0,0]`)
	}); err != nil {
		t.Error(err)
	}
	g.open()
	if resp, body := held.wait(); resp.StatusCode != 200 {
		t.Errorf("the script that ran on: %s %q", resp.Status, body)
	}
}

// A cache that is full of what is not used any more empties itself, which harms
// nobody either.
func TestOPcacheThatIsFullIsEmptied(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[php]\nworkers = 8\nini_overrides = [" + youngScripts + ", [\"opcache.memory_consumption\", \"8\"], [\"opcache.interned_strings_buffer\", \"1\"]]\n",
		Files: map[string]string{
			"index.php": `<?php opcache_invalidate(__DIR__ . '/large.php', true); echo (require 'large.php')($_GET['i']);`,
			"large.php": "<?php\nreturn function ($i) {\n" + strings.Repeat("if ($i === 'x') { echo strlen($i) + count([$i, $i]); }\n", 1000) + "return \"large $i\";\n};\n",
			"page.php":  `<?php echo "page";`,
			"state.php": `<?php echo opcache_get_status(false)['opcache_statistics']['oom_restarts'] > 1 ? 'emptied' : 'not yet';`,
		}})
	for range 2 {
		hundred(t, func(i int) error {
			return wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""), fmt.Sprintf("large %d", i))
		})
	}
	if err := eventually(func() error {
		if err := wantBody(a.request("GET", "/?i=1", ""), "large 1"); err != nil {
			return err
		}
		return wantBody(a.request("GET", "/state.php", ""), "emptied")
	}); err != nil {
		t.Error(err)
	}
	if log := a.Log(); strings.Contains(log, "worker died") || strings.Contains(log, "PHP message") {
		t.Errorf("the log says:\n%s", log)
	}
}

func TestOPcacheIsOnAndShared(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[php]\nworkers = 2\nmin_workers = 2\nini_overrides = [[\"opcache.file_update_protection\", \"0\"]]\n",
		Files: map[string]string{
			"first.php": `<?php require 'part.php'; file_get_contents($_GET['gate']); echo getmypid();`,
			"part.php":  `<?php`,
			"second.php": `<?php
				$status = opcache_get_status();
				echo json_encode([
					'pid' => getmypid(), 'on' => $status['opcache_enabled'],
					'cached' => opcache_is_script_cached(__DIR__ . '/first.php') && opcache_is_script_cached(__DIR__ . '/part.php'),
				]);`,
		}})
	a.waitLog(`msg="PHP started" version=\S+ opcache=true`)
	g := newGate(t)
	answer := a.later(a.request("GET", "/first.php?gate="+g.path, ""))
	g.wait()
	// The other worker has never compiled what the first did.
	_, body := a.get("/second.php")
	g.open()
	_, first := answer.wait()
	var got struct {
		PID        json.Number
		On, Cached bool
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	if got.PID.String() == first {
		t.Fatalf("one worker ran both, %s", first)
	}
	if !got.On || !got.Cached {
		t.Errorf("%s, want OPcache on, with what another worker compiled", body)
	}
}

func TestScriptThatChangesIsCompiledAnew(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[php]\nini_overrides = [[\"opcache.revalidate_freq\", \"0\"]]\n",
		Files: map[string]string{"index.php": `<?php echo "one";`}})
	for _, word := range []string{"one", "two words", "three of them"} {
		writeFiles(t, a.options.Root, map[string]string{"index.php": `<?php echo "` + word + `";`})
		if err := wantBody(a.request("GET", "/", ""), word); err != nil {
			t.Error(err)
		}
	}
}
