package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestVariablesOfTheSite(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[php]\nworkers = 4\n[php.env]\nAPP_ENV = \"prod\"\nAPP_EMPTY = \"\"\nAPP_ODD = \"a=b \\\"é\\\"\\n\"\n",
		Files: map[string]string{
			"index.php": `<?php
				putenv("OTHER={$_GET['i']}"); // must not lose the others
				echo json_encode([getenv('APP_ENV'), $_SERVER['APP_ENV'], getenv('APP_EMPTY'), $_SERVER['APP_EMPTY'], $_SERVER['APP_ODD'],
					getenv('OTHER'), isset($_ENV['APP_ENV']), $_GET['i']]);`,
			"websocket.php": `<?php if ($_SERVER['WS_EVENT'] === 'message') ephpm_ws_send($_SERVER['APP_ENV'] . getenv('APP_ENV'));`,
		}})
	hundred(t, func(i int) error {
		return wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""),
			fmt.Sprintf(`["prod","prod","","","a=b \"\u00e9\"\n","%d",false,"%d"]`, i, i))
	})
	s := a.dial("/", nil)
	s.send("x")
	if got := s.recv(); got != "prodprod" {
		t.Errorf("in an event: %q", got)
	}
	// A client cannot choose them.
	if _, body := a.exchange(getText("/?i=0", "APP_ENV: evil", "Http-App-Env: evil")); !strings.HasPrefix(body, `["prod","prod"`) {
		t.Errorf("with headers of their name: %s", body)
	}
}

func TestVariablesThatAreRefused(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "ephpm.toml")
	for name, want := range map[string]string{
		"HTTP_PROXY": "would pass for a request header", "SCRIPT_FILENAME": "is set by the server", `"a b"`: "is not the name of a variable",
	} {
		if err := os.WriteFile(config, []byte("[php.env]\n"+name+" = 'x'\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(binary, "config", "check", "-c", config).CombinedOutput()
		if err == nil || !strings.Contains(string(out), config+":1: php.env: ") || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, %s; want line 1 and %q", name, err, out, want)
		}
	}
}

// envScript does all that can be done to the environment.
const envScript = `<?php
	$show = fn (string $n) => print(json_encode([getenv($n), getenv($n, true), isset($_ENV[$n]), isset($_SERVER[$n]), isset(getenv()[$n])]) . "\n");
	$show('E2E_NONE'); $show('E2E_OUTER');
	foreach (['E2E_NONE=1', 'E2E_NONE=', 'E2E_NONE', 'E2E_NONE=2=3', 'E2E_OUTER=inner', 'E2E_OUTER', 'É=ü'] as $s) {
		echo json_encode(putenv($s)), " $s: "; $show(strtok($s, '='));
	}
	foreach (['', '=x', "E2E_NUL=a\0b"] as $s) {
		try { echo json_encode([putenv($s), getenv('E2E_NUL')]), "\n"; } catch (\Throwable $e) { echo get_class($e), ': ', $e->getMessage(), "\n"; }
	}
	$_ENV['E2E_NONE'] = 'x'; $show('E2E_NONE'); unset($_ENV['E2E_NONE']);
	echo shell_exec('echo "$E2E_OUTER|$E2E_NONE|$É"');`

func TestEnvironmentIsAsInPHP(t *testing.T) {
	t.Parallel()
	const outer = "E2E_OUTER=from outside"
	a := startApp(t, appOptions{
		Env:   []string{outer},
		TOML:  "[php]\nini_overrides = [[\"variables_order\", \"GPC\"]]\n",
		Files: map[string]string{"index.php": envScript},
	})
	cli := exec.Command("php", "-d", "variables_order=GPC", filepath.Join(a.options.Root, "index.php"))
	cli.Env = append(os.Environ(), outer)
	want, err := cli.Output()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // what one request does is undone for the next
		if _, got := a.get("/"); got != string(want) {
			t.Errorf("the environment is\n%s\nphp says\n%s", got, want)
		}
	}
}

func TestPutenvIsUndone(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		Env:  []string{"E2E_OUTER=outer"},
		TOML: "[php]\nworkers = 1\n",
		Files: map[string]string{"index.php": `<?php
			echo json_encode([getenv('E2E_OUTER'), getenv('E2E_NEW')]);
			putenv('E2E_OUTER=changed'); putenv("E2E_NEW={$_GET['i']}");
			echo getenv('E2E_NEW');
			if ($_GET['i'] % 2) missing();`}})
	for i := range 20 {
		if _, body := a.get(fmt.Sprintf("/?i=%d", i)); !strings.HasPrefix(body, fmt.Sprintf(`["outer",false]%d`, i)) {
			t.Errorf("request %d: %q", i, body)
		}
	}
}

func TestIniTakesTheEnvironment(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		Env: []string{"E2E_ZERO=0", "E2E_TEXT=a b"},
		TOML: `[php]
ini_overrides = [["user_agent", "${E2E_ZERO}"], ["default_mimetype", "x/${E2E_TEXT}"], ["upload_max_filesize", "100M"], ["memory_limit", "99M"]]
`,
		Files: map[string]string{"index.php": dump("array_map('ini_get', ['user_agent', 'default_mimetype', 'upload_max_filesize', 'memory_limit'])")},
	})
	hundred(t, func(int) error { return wantBody(a.request("GET", "/", ""), `["0","x/a b","100M","99M"]`) })
}

func TestPreload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"preload.php": `<?php class Preloaded { const N = 7; } function preloaded($i) { return "preloaded $i"; }`})
	a := startApp(t, appOptions{
		TOML:  fmt.Sprintf("[php]\nini_overrides = [[\"opcache.preload\", %q], [\"opcache.preload_user\", \"root\"]]\n", dir+"/preload.php"),
		Files: map[string]string{"index.php": `<?php echo Preloaded::N, ' ', preloaded($_GET['i']);`},
	})
	hundred(t, func(i int) error {
		return wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""), fmt.Sprintf("7 preloaded %d", i))
	})
}

func TestOPcacheIsDerivedAndOverridden(t *testing.T) {
	t.Parallel()
	script := map[string]string{"index.php": dump(`array_map('ini_get', ['opcache.memory_consumption', 'opcache.max_accelerated_files',
		'opcache.interned_strings_buffer', 'opcache.validate_timestamps', 'opcache.revalidate_freq'])`)}
	a := startApp(t, appOptions{Files: script})
	m := a.waitLog(`msg=starting .*opcache=(\d+)MiB opcache_files=(\d+) opcache_revalidate=2s`)
	var strings int
	if _, err := fmt.Sscan(m[1], &strings); err != nil {
		t.Fatal(err)
	}
	if err := wantBody(a.request("GET", "/", ""), fmt.Sprintf(`["%s","%s","%d","1","2"]`, m[1], m[2], strings/8)); err != nil {
		t.Error(err)
	}
	a = startApp(t, appOptions{Files: script, TOML: "[php]\nopcache_revalidate = \"never\"\nini_overrides = [[\"opcache.memory_consumption\", \"33\"]]\n"})
	a.waitLog(`opcache_revalidate=never`)
	if err := wantBody(a.request("GET", "/", ""), fmt.Sprintf(`["33","%s","8","0","2"]`, m[2])); err != nil {
		t.Error(err)
	}
}
