package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A command is one run of the binary that ends by itself.
type command struct {
	Dir   string   // where it is run; empty means an empty directory
	Env   []string // added to the environment
	Stdin string
	Args  []string
}

// run returns the exit status and what was printed.
func (c command) run(t *testing.T) (status int, stdout, stderr string) {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	return c.by(t, binary)
}

// by runs it by a program and its first arguments, in this directory if Dir is
// empty.
func (c command) by(t *testing.T, program ...string) (status int, stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(program[0], append(program[1:], c.Args...)...)
	cmd.Dir, cmd.Env = c.Dir, append(os.Environ(), c.Env...)
	cmd.Stdin = strings.NewReader(c.Stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }) // it may have ended
	defer late.Stop()
	_ = cmd.Wait() // ProcessState has what matters
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// want checks the status and that the lines are all that was printed to stderr.
func (c command) want(t *testing.T, status int, lines ...string) {
	t.Helper()
	got, stdout, stderr := c.run(t)
	want := ""
	for _, line := range lines {
		want += line + "\n"
	}
	if got != status || stderr != want || stdout != "" {
		t.Errorf("ephpm %s: exit status %d, stdout %q, stderr\n%swant %d and\n%s", strings.Join(c.Args, " "), got, stdout, stderr, status, want)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"version", "--version"} {
		status, stdout, stderr := command{Args: []string{name}}.run(t)
		lines := strings.Split(stdout, "\n")
		if status != 0 || stderr != "" || len(lines) != 4 || !strings.HasPrefix(lines[0], "ephpm ") ||
			!strings.HasPrefix(lines[1], "PHP 8.") || !strings.HasPrefix(lines[2], "go1.") {
			t.Errorf("ephpm %s: %d, %q, %q", name, status, stdout, stderr)
		}
	}
}

func TestHelpNamesEveryCommand(t *testing.T) {
	t.Parallel()
	status, stdout, _ := command{Args: []string{"help"}}.run(t)
	for _, want := range []string{"ephpm serve [-c FILE]", "ephpm config check", "ephpm kv COMMAND", "ephpm version", "-v "} {
		if status != 0 || !strings.Contains(stdout, want) {
			t.Errorf("ephpm help: %d, without %q", status, want)
		}
	}
}

func TestCommandLineThatMakesNoSense(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"sevre":                `error: unknown command "sevre"; did you mean serve?` + "\n",
		"config":               "error: ephpm config has one command: check\n",
		"config chekc":         "error: ephpm config has one command: check\n",
		"serve -x":             "error: ephpm serve: flag provided but not defined: -x\n",
		"serve -c":             "error: ephpm serve: flag needs an argument: -c\n",
		"serve -d . extra":     `error: ephpm serve: unexpected argument "extra"` + "\n",
		"config check -l :808": "error: ephpm config check: flag provided but not defined: -l\n",
	} {
		status, stdout, stderr := command{Args: strings.Fields(args)}.run(t)
		if status != 2 || stdout != "" || !strings.HasPrefix(stderr, want) || !strings.Contains(stderr, "Usage:") {
			t.Errorf("ephpm %s: %d, %q, %.200q; want 2 and %q", args, status, stdout, stderr, want)
		}
	}
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"ephpm.toml":     "[server]\nlisten = \":8080\"\n",
		"empty.toml":     "",
		"public.toml":    "[server]\nlisten = \"0.0.0.0:8080\"\ndocument_root = \".\"\nindex_files = [\"index.php\", \"index.html\"]\n\n[server.timeouts]\nrequest = 30\n\n[server.websocket]\nenabled = true\nmax_connections = 10\n\n[php]\nmode = \"fpm\"\nworkers = 4\nmax_execution_time = 30\nmemory_limit = \"128M\"\nini_overrides = [[\"display_errors\", \"Off\"]]\n",
		"sub/other.toml": "[server]\ndocument_root = \"..\"\n",
	})
	for _, file := range []string{"ephpm.toml", "empty.toml", "public.toml", "sub/other.toml", "./sub/../empty.toml"} {
		status, stdout, stderr := command{Dir: dir, Args: []string{"config", "check", "-c", file}}.run(t)
		if status != 0 || stderr != "" || stdout != filepath.Join(dir, file)+" is fine\n" {
			t.Errorf("config check -c %s: %d, %q, %q", file, status, stdout, stderr)
		}
	}
	if status, stdout, stderr := (command{Dir: dir, Args: []string{"config", "check"}}).run(t); status != 0 || !strings.HasPrefix(stdout, dir) {
		t.Errorf("config check, with an ephpm.toml here: %d, %q, %q", status, stdout, stderr)
	}
}

func TestExampleOfEveryKeyIsAccepted(t *testing.T) {
	t.Parallel()
	example, err := filepath.Abs("../ephpm.toml.example")
	if err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := (command{Args: []string{"config", "check", "-c", example}}).run(t); status != 0 || stderr != "" {
		t.Errorf("config check -c ephpm.toml.example: %d, %q", status, stderr)
	}
}

// Every mistake is told with its key, its line and what was meant, by serve as by
// config check, and nothing is served.
func TestConfigurationMistakes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		toml string
		want []string
	}{
		"an unknown key":   {"[server]\n\nlistne = \":80\"\n", []string{"error: ephpm.toml:3: server.listne: unknown key; did you mean listen?"}},
		"an unknown table": {"[servre]\nlisten = \":80\"\n", []string{"error: ephpm.toml:1: servre: unknown key; did you mean server?"}},
		"a wrong type":     {"[server]\nlisten = 80\n", []string{"error: ephpm.toml:2: server.listen: want an address such as \":8080\", or a list of them; got the integer 80"}},
		"a wrong entry":    {"[server]\nindex_files = [\n  \"a.php\",\n  7]\n", []string{"error: ephpm.toml:2: server.index_files: entry 2: want a string; got the integer 7"}},
		"a wrong value":    {"[server.logging]\nlevel = \"loud\"\n", []string{`error: ephpm.toml:2: server.logging.level: "loud" is not one of debug, info, warn, error`}},
		"a wrong time":     {"[server.timeouts]\nrequest = \"soon\"\n", []string{`error: ephpm.toml:2: server.timeouts.request: "soon" is not a time such as "2s" or "1500ms"`}},
		"no extension":     {"[server]\nphp_extensions = [\"php\"]\n", []string{`error: ephpm.toml:2: server.php_extensions: "php" is not an extension such as ".php"`}},
		"a negative":       {"[php]\nworker_backlog = -1\n", []string{"error: ephpm.toml:2: php.worker_backlog: -1 is less than 0"}},
		"a root that is not there": {"[server]\ndocument_root = \"/nowhere\"\n",
			[]string{`error: ephpm.toml:2: server.document_root: "/nowhere" does not exist; name another, in the file or with -d`}},
		"a fallback": {"[server]\nfallback = [\"$url\"]\n", []string{
			`error: ephpm.toml:2: server.fallback: "$url" is neither "$uri", a path that starts with "/", nor a status such as "=404"`,
			`error: ephpm.toml:2: server.fallback: "$url": there is no $url, only $uri and $query_string`}},
		"several": {"[server]\nlistne = \"\"\n[php]\nworkers = \"many\"\n", []string{
			"error: ephpm.toml:2: server.listne: unknown key; did you mean listen?",
			`error: ephpm.toml:4: php.workers: "many" is not a number of workers; want an integer or "auto"`}},
		"a key in the wrong table": {"[php]\nlisten = \":80\"\n", []string{"error: ephpm.toml:2: php.listen: unknown key; did you mean server.listen?"}},
		"a part of another server": {"[cluster]\nenabled = true\n", nil},
		"no TOML":                  {"[server\nlisten = 1\n", nil},
		"a key twice":              {"[server]\nlisten = \":80\"\nlisten = \":81\"\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFiles(t, dir, map[string]string{"ephpm.toml": test.toml})
			for _, args := range [][]string{{"config", "check"}, {"serve"}, {"serve", "-c", "ephpm.toml", "-l", "127.0.0.1:0"}} {
				if test.want != nil {
					command{Dir: dir, Args: args}.want(t, 1, test.want...)
					continue
				}
				status, _, stderr := command{Dir: dir, Args: args}.run(t)
				if status != 1 || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "error: ephpm.toml:") {
					t.Errorf("%q: %d, %q; want 1 and one line that names the line", args, status, stderr)
				}
			}
		})
	}
}

func TestConfigurationThatIsMissing(t *testing.T) {
	t.Parallel()
	command{Args: []string{"serve"}}.want(t, 1, "error: there is no ephpm.toml in this directory; name a configuration with -c FILE, or a directory to serve with -d DIR")
	command{Args: []string{"serve", "-c", "other.toml"}}.want(t, 1, "error: other.toml does not exist; name a configuration with -c FILE, or leave -c out and name a directory to serve with -d DIR")
}

func TestEnvironmentMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"ephpm.toml": ""})
	command{Dir: dir, Env: []string{"EPHPM_SERVER__LISTNE=:80"}, Args: []string{"config", "check"}}.want(t, 1,
		"error: EPHPM_SERVER__LISTNE: unknown key; did you mean EPHPM_SERVER__LISTEN?")
	command{Dir: dir, Env: []string{"EPHPM_SERVER__LOGGING__LEVEL=loud"}, Args: []string{"serve"}}.want(t, 1,
		`error: EPHPM_SERVER__LOGGING__LEVEL: server.logging.level: "loud" is not one of debug, info, warn, error`)
}

// Flag, environment, file, default: the first that says something is heard.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"flag/index.php": `<?php echo "flag ", ini_get('memory_limit');`,
		"env/index.php": `<?php echo "env ", ini_get('memory_limit');`, "file/index.php": `<?php echo "file ", ini_get('memory_limit');`})
	toml := fmt.Sprintf("[server]\ndocument_root = %q\n[php]\nmemory_limit = \"65M\"\n", dir+"/file")
	env := []string{"EPHPM_SERVER__DOCUMENT_ROOT=" + dir + "/env", "EPHPM_PHP__MEMORY_LIMIT=66M"}
	for want, o := range map[string]appOptions{
		"file 65M": {TOML: toml},
		"env 66M":  {TOML: toml, Env: env},
		"flag 66M": {TOML: toml, Env: env, Root: dir + "/flag"},
		"env 128M": {Env: env[:1]},
	} {
		a := startApp(t, o)
		if _, body := a.get("/"); body != want {
			t.Errorf("GET /: %q, want %q", body, want)
		}
	}
}

func TestIniSettings(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[php]\nini_overrides = [[\"precision\", \"5\"], [\"error_reporting\", \"E_ALL & ~E_NOTICE\"], [\"date.timezone\", \"Europe/Zurich\"]]\nsapi_name = \"other\"\n",
		Files: map[string]string{"index.php": dump(`[ini_get('precision'), error_reporting() === (E_ALL & ~E_NOTICE), date_default_timezone_get(), PHP_SAPI, php_sapi_name(),
			(int) ini_get('register_argc_argv'), ini_get('output_buffering'), (int) ini_get('implicit_flush'), isset($argv), isset($_SERVER['argv']), ini_get('max_execution_time')]`)}})
	want := `["5",true,"Europe/Zurich","other","other",0,"4096",0,false,false,"30"]`
	if _, body := a.get("/?a+b"); body != want {
		t.Errorf("%s, want %s", body, want)
	}
}

func TestVerboseLogTellsAboutUpgrades(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		Args: []string{"-v"},
		Files: map[string]string{"websocket.php": `<?php
			if ($_SERVER['WS_EVENT'] === 'connect' && isset($_GET['no'])) { http_response_code(403); echo "not you"; }
			if ($_SERVER['WS_EVENT'] === 'message') ephpm_ws_close(4001, "enough");`}})
	s := a.dial("/", nil)
	a.waitLine(`level=DEBUG msg="socket established"`, `connection=[0-9a-f]{32}\b`, `addr=127\.0\.0\.1`)
	s.send("x")
	s.recvClose()
	a.waitLine(`level=DEBUG msg="socket closed"`, `4001`)
	if resp, body := a.refusal("/?no", nil); resp.StatusCode != 403 || body != "not you" {
		t.Errorf("%s %q, want the script's refusal", resp.Status, body)
	}
	a.waitLine(`msg="(refused by connect|upgrade refused)"`, `status=403`)
	w := a.connect()
	w.send(getText("/", "Connection: Upgrade", "Upgrade: websocket"))
	if resp, _ := w.answer(); resp.StatusCode != 400 {
		t.Errorf("half a handshake: %s, want 400", resp.Status)
	}
	a.waitLine(`msg="upgrade refused"`, `status=400`)
}

func TestWithoutVTheLogIsQuiet(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[server.logging]\nlevel = \"warn\"\n[server]\nlisten = \"127.0.0.1:0\"\n",
		Files: map[string]string{"index.php": `<?php error_log("hello");`},
		Args:  []string{"-v"}, // startApp needs the line that says where it listens
	})
	a.get("/")
	a.waitLog(`text=hello`)
	quiet := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php echo 1;`}})
	quiet.get("/")
	quiet.Stop()
	if strings.Contains(quiet.Log(), "level=DEBUG") {
		t.Errorf("without -v:\n%s", quiet.Log())
	}
}
