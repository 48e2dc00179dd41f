package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ephpm/server"
)

// inDir makes a directory with the given ephpm.toml the current one.
func inDir(t *testing.T, source string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile(defaultFile, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
}

// mustLoad loads what must be fine.
func mustLoad(t *testing.T, r request) server.Config {
	t.Helper()
	c, _, err := load(r)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return c
}

func TestPrecedenceIsFlagEnvironmentFileDefault(t *testing.T) {
	inDir(t, `
[server]
listen = "127.0.0.1:1"
[server.timeouts]
idle = 11
header_read = "1500ms"
`)
	env := []string{"EPHPM_SERVER__LISTEN=127.0.0.1:2", "EPHPM_SERVER__TIMEOUTS__IDLE=22", "PATH=/bin"}

	c := mustLoad(t, request{listen: "127.0.0.1:3", environ: env, verbose: true})
	for _, test := range []struct {
		what      string
		got, want any
	}{
		{"listen of the flag", c.Server.Listen.String(), "127.0.0.1:3"},
		{"idle of the environment", c.Server.Timeouts.Idle, server.Duration(22 * time.Second)},
		{"header_read of the file", c.Server.Timeouts.HeaderRead, server.Duration(1500 * time.Millisecond)},
		{"request by default", c.Server.Timeouts.Request, server.Duration(300 * time.Second)},
		{"level by -v", c.Server.Logging.Level, "debug"},
	} {
		if test.got != test.want {
			t.Errorf("%s = %v, want %v", test.what, test.got, test.want)
		}
	}
	if c := mustLoad(t, request{environ: env}); c.Server.Listen.String() != "127.0.0.1:2" {
		t.Errorf("listen of the environment = %q", c.Server.Listen)
	}
}

func TestMistakesInTheFileNameLineAndKey(t *testing.T) {
	inDir(t, `# a comment
top = 1
listen = ":80"
[server]
lisetn = ":80"
index_files = "index.php"
websocket_files = [
  "a.php",
  2,
]
preview = { enabled = true }
[server.websocket]
pingg_interval = 30
enabled = "yes"
max_connections = 1.5
"send_queue" = true
send_wait_ms = "soon"
max_message_size = 2000-01-01
timeouts.request = 3
[server.timeouts.idle]
x = 1
[sever]
listen = ":80"
[php]
ini_overrides = [["a", "b"], ["c"]]
workers = "many"
worker_count = 4
static = 1
[[cluster]]
a = 1
[server.metrics]
enabled = true
path.x = 1
`)
	_, _, err := load(request{})
	if err == nil {
		t.Fatal("load succeeded")
	}
	want := strings.TrimSpace(`
ephpm.toml:2: top: unknown key; ephpm.toml.example lists them all
ephpm.toml:3: listen: unknown key; did you mean server.listen?
ephpm.toml:5: server.lisetn: unknown key; did you mean listen?
ephpm.toml:6: server.index_files: want a list; got the string "index.php"
ephpm.toml:7: server.websocket_files: entry 2: want a string; got the integer 2
ephpm.toml:11: server.preview: is a key, not a table
ephpm.toml:13: server.websocket.pingg_interval: unknown key; did you mean ping_interval_secs?
ephpm.toml:14: server.websocket.enabled: want true or false; got the string "yes"
ephpm.toml:15: server.websocket.max_connections: want an integer; got the fraction 1.5
ephpm.toml:16: server.websocket.send_queue: want an integer; got the boolean true
ephpm.toml:17: server.websocket.send_wait_ms: "soon" is not a time such as "2s" or "1500ms"
ephpm.toml:18: server.websocket.max_message_size: want a size: bytes, or a string such as "64MB"; got a date or a time
ephpm.toml:19: server.websocket.timeouts: unknown key; did you mean server.timeouts?
ephpm.toml:20: server.timeouts.idle: is a key, not a table
ephpm.toml:22: sever: unknown key; did you mean server?
ephpm.toml:25: php.ini_overrides: entry 2: want a pair ["name", "value"]; got a list
ephpm.toml:26: php.workers: "many" is not a number of workers; want an integer or "auto"
ephpm.toml:27: php.worker_count: not available in this version; set workers
ephpm.toml:28: php.static: unknown key; did you mean server.static?
ephpm.toml:29: cluster: not available in this version; remove the table
ephpm.toml:33: server.metrics.path: is a key, not a table
`)
	if got := err.Error(); got != want {
		t.Errorf("load says\n%s\nwant\n%s", got, want)
	}
}

func TestATableThatIsAValueIsToldSo(t *testing.T) {
	inDir(t, "server = 1\n")
	if _, _, err := load(request{}); err == nil || err.Error() != "ephpm.toml:1: server: is a table; its keys go below a line [server]" {
		t.Errorf("load = %v", err)
	}
}

func TestEnvIsATableInEveryForm(t *testing.T) {
	for _, source := range []string{
		"[php]\nenv = { APP_ENV = \"prod\", B = \"\" }\n",
		"[php.env]\nAPP_ENV = \"prod\"\nB = \"\"\n",
		"php.env.APP_ENV = \"prod\"\nphp.env.B = \"\"\n",
	} {
		inDir(t, source)
		if c := mustLoad(t, request{}); !maps.Equal(c.PHP.Env, server.Env{"APP_ENV": "prod", "B": ""}) {
			t.Errorf("%s gives %v", source, c.PHP.Env)
		}
	}
	for source, want := range map[string]string{
		"[php]\nenv = 'A=1'\n":     `ephpm.toml:2: php.env: want a table such as { APP_ENV = "prod" }`,
		"[php]\nenv = ['A=1']\n":   `ephpm.toml:2: php.env: want a table such as { APP_ENV = "prod" }; got a list`,
		"[php.env]\nA = 1\n":       `ephpm.toml:1: php.env: A: want a string`,
		"[php.env]\nHTTP_X = ''\n": `ephpm.toml:1: php.env: HTTP_X would pass for a request header; take another name`,
	} {
		inDir(t, source)
		if _, _, err := load(request{}); err == nil || err.Error() != want {
			t.Errorf("%s gives %v, want %s", source, err, want)
		}
	}
}

func TestBrokenTOMLNamesTheLine(t *testing.T) {
	inDir(t, "[server]\nlisten = \":80\"\nlisten = oops\n")
	if _, _, err := load(request{}); err == nil || !strings.HasPrefix(err.Error(), "ephpm.toml:3: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("load = %v, want one line that starts with ephpm.toml:3", err)
	}
}

func TestBadValuesNameWhereTheyWereSet(t *testing.T) {
	inDir(t, "[server]\nlisten = \"80\"\n[php]\nsapi_name = ''\nworker_max_requests = -1\n")
	for _, test := range []struct {
		r    request
		want string
	}{
		{request{}, "ephpm.toml:2: server.listen: "},
		{request{environ: []string{"EPHPM_SERVER__LISTEN=81"}}, "EPHPM_SERVER__LISTEN: server.listen: \"81\""},
		{request{listen: "82"}, "-l: server.listen: \"82\""},
		{request{root: "nowhere"}, "-d: server.document_root: \"nowhere\" does not exist"},
		{request{}, "ephpm.toml:4: php.sapi_name: "},
		{request{}, "ephpm.toml:5: php.worker_max_requests: -1 is less than 0"},
	} {
		_, _, err := load(test.r)
		if err == nil || !slices.ContainsFunc(strings.Split(err.Error(), "\n"), func(line string) bool { return strings.HasPrefix(line, test.want) }) {
			t.Errorf("load = %v, want a line that starts with %q", err, test.want)
		}
	}
}

func TestPathsOfAFileStartAtTheFile(t *testing.T) {
	app := t.TempDir()
	if err := os.Mkdir(filepath.Join(app, "public"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(app, "ephpm.toml")
	write := func(source string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(t.TempDir()) // somewhere else

	write("[server]\ndocument_root = 'public'\n[php]\nini_file = 'ephpm.toml'\n")
	c := mustLoad(t, request{file: file})
	if want := filepath.Join(app, "public"); c.Server.DocumentRoot != want {
		t.Errorf("document_root = %q, want %q", c.Server.DocumentRoot, want)
	}
	if c.PHP.INIFile != file || c.File != file {
		t.Errorf("ini_file = %q, File = %q, want %q twice", c.PHP.INIFile, c.File, file)
	}
	if c := mustLoad(t, request{file: file, root: "."}); c.Server.DocumentRoot != "." {
		t.Errorf("-d . = %q, want it to start at the current directory", c.Server.DocumentRoot)
	}
	write("")
	if c := mustLoad(t, request{file: file}); c.Server.DocumentRoot != app {
		t.Errorf("document_root by default = %q, want the file's directory", c.Server.DocumentRoot)
	}
}

func TestWithoutAFileSomebodyMustNameTheRoot(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, _, err := load(request{}); err == nil || !strings.Contains(err.Error(), "-c FILE") || !strings.Contains(err.Error(), "-d DIR") {
		t.Errorf("load of nothing = %v, want what to do", err)
	}
	root := t.TempDir()
	if c := mustLoad(t, request{root: root}); c.Server.DocumentRoot != root || c.File != "" {
		t.Errorf("with -d: root %q, file %q", c.Server.DocumentRoot, c.File)
	}
	if c := mustLoad(t, request{environ: []string{"EPHPM_SERVER__DOCUMENT_ROOT=" + root}}); c.Server.DocumentRoot != root {
		t.Errorf("with the variable: root %q", c.Server.DocumentRoot)
	}
	if _, _, err := load(request{file: "nowhere.toml", root: root}); err == nil || !strings.HasPrefix(err.Error(), "nowhere.toml does not exist") {
		t.Errorf("load of a missing file = %v, want an error", err)
	}
}

func TestMistakesOfSyntaxSayWhatIsMeant(t *testing.T) {
	for source, want := range map[string]string{
		"listen = \"abc\n":                      "1: the text does not end on its line; is the quote at its end missing?",
		"\nlisten = 'abc":                       "2: the text does not end on its line; is the quote at its end missing?",
		"listen = \"\"\"abc\n":                  "1: the text that begins here has no end; are the three quotes at its end missing?",
		"listen = abc":                          `1: expected value but found "abc" instead; a text needs quotes`,
		"[php.ini_overrides]\na = '1'":          `1: php.ini_overrides: is a list of pairs, not a table; write it as [["memory_limit", "1G"], ["display_errors", "Off"]]`,
		"[php]\nini_overrides = { a = '1' }":    `2: php.ini_overrides: is a list of pairs, not a table; write it as [["memory_limit", "1G"], ["display_errors", "Off"]]`,
		"[server]\nindex_files = { a = '1' }":   "2: server.index_files: is a list, not a table",
		"[server]\ndocument_root = { a = '1' }": "2: server.document_root: is a key, not a table",
	} {
		inDir(t, source)
		if _, _, err := load(request{}); err == nil || err.Error() != "ephpm.toml:"+want {
			t.Errorf("%q: %v, want %s", source, err, want)
		}
	}
}

func TestMistakesOfAllSourcesAreToldTogether(t *testing.T) {
	inDir(t, "a = 1\nserver.b = 2\n")
	_, _, err := load(request{environ: []string{"EPHPM_SERVER__C=1"}})
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("load = %v, want three lines", err)
	}
}

func TestWarningsAreNotes(t *testing.T) {
	inDir(t, "[server.websocket]\nping_interval_secs = 120\n")
	_, notes, err := load(request{environ: []string{"EPHPM_PORT=tcp://10.0.0.1:80"}})
	if err != nil || len(notes) != 2 {
		t.Errorf("load = %q, %v, want two notes", notes, err)
	}
}

func FuzzLoad(f *testing.F) {
	example, err := os.ReadFile("../../ephpm.toml.example")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(example))
	for _, seed := range []string{
		"", "\ufeff[server]\nlisten = ':80'", "[server", "a.b.c.d = { e = [1, [2, {f = 3}]] }",
		"[[server]]\n[[server]]\nlisten = 1", "server.listen = \"\"\"\nx\n\"\"\"", "\"\" = 1\n'a.b' = 2",
		"[php]\nini_overrides = [[\"a\", \"b\"]]\nworkers = 'auto'", "\x00", "[server.timeouts]\nidle = 9223372036854775807",
		"[server]\nrequest.max_body_size = '9999999T'", "a = 2000-01-01T00:00:00Z\nb = inf\nc = 0x10",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		l := &loader{config: server.DefaultConfig(), origin: map[string]string{}}
		l.settings = settingsOf(&l.config)
		root, err := parse(source)
		if err != nil {
			return
		}
		var problems []problem
		l.apply("", l.settings, root, "file", &problems)
		lines := strings.Count(source, "\n") + 1
		for _, p := range problems {
			if p.line < 1 || p.line > lines || p.key == "" && p.err == nil {
				t.Errorf("%q: problem at line %d of %d: %s: %v", source, p.line, lines, p.key, p.err)
			}
		}
		l.config.Server.DocumentRoot = "" // nothing outside is looked at
		l.config.PHP.INIFile = ""
		_ = l.config.Validate()
	})
}
