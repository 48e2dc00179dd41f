package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A script on the command line reaches the sockets of a server that runs.
func TestCommandLinePushesToSockets(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	a := startApp(t, appOptions{
		TOML:  "[server]\ncontrol_socket = \"" + dir + "/control\"\n",
		Files: map[string]string{"websocket.php": `<?php if ($_SERVER['WS_EVENT'] === 'connect') ephpm_ws_subscribe('lobby');`},
	})
	s := a.dial("/", nil)
	config := filepath.Join(dir, "ephpm.toml")
	writeFiles(t, dir, map[string]string{
		"ephpm.toml": "[server]\ncontrol_socket = \"control\"\n",
		"cron.php":   `<?php echo ephpm_ws_count(), ' ', ephpm_ws_broadcast('lobby', "from $argv[1]"), "\n";`,
	})
	for _, r := range []phpRun{
		{Dir: t.TempDir(), Args: []string{"--config", config, dir + "/cron.php", "a file"}},
		{Dir: t.TempDir(), Args: []string{"--config=" + config, "--site=default", dir + "/cron.php", "one site"}},
		{Dir: dir, Args: []string{"cron.php", "this directory"}},
		{Dir: t.TempDir(), Env: []string{"EPHPM_SERVER__CONTROL_SOCKET=" + dir + "/control"}, Args: []string{"-f", dir + "/cron.php", "the environment"}},
	} {
		r.want(t, 0, "1 1\n", "")
		if got, want := s.recv(), "from "+r.Args[len(r.Args)-1]; got != want {
			t.Errorf("the socket got %q, want %q", got, want)
		}
	}
	for _, c := range []struct {
		r    phpRun
		want string
	}{
		{phpRun{Env: []string{"EPHPM_SERVER__CONTROL_SOCKET="}, Args: []string{"-r", `ephpm_ws_count();`}}, "ephpm_ws_count() cannot reach the server: server.control_socket is empty"},
		{phpRun{Dir: dir, Args: []string{"-r", `ephpm_ws_send("x");`}}, "Uncaught Exception: ephpm_ws: no current websocket connection"},
		{phpRun{Dir: dir, Args: []string{"--site", "other.example", "-r", `ephpm_ws_count();`}}, dir + `/control: it has no site "other.example", but default`},
	} {
		if status, _, stderr := c.r.by(t, binary, "php"); status != 255 || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: %d, %q; want %q", c.r.Args, status, stderr, c.want)
		}
	}
	for _, args := range [][]string{{"--config", dir + "/none.toml", "-v"}, {"--site"}} {
		if status, _, stderr := (phpRun{Args: args}).by(t, binary, "php"); status != 1 || !strings.HasPrefix(stderr, "error: ") {
			t.Errorf("%q: %d, %q; want an error", args, status, stderr)
		}
	}
	if info, err := os.Stat(dir + "/control"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v; want it for its owner alone", info, err)
	}

	// A script that outlives the server finds the next one.
	a.Stop()
	if _, err := os.Stat(dir + "/control"); !os.IsNotExist(err) {
		t.Errorf("the socket of a server that ended: %v", err)
	}
	r := phpRun{Dir: dir, Args: []string{"cron.php", "x"}}
	if status, _, stderr := r.by(t, binary, "php"); status != 255 || !strings.Contains(stderr, "/control: none is running") {
		t.Errorf("without a server: %d, %q", status, stderr)
	}
	a.options.Listen = a.Addr
	a.start()
	r.want(t, 0, "0 0\n", "")
	a.Kill()
	a.start()
	r.want(t, 0, "0 0\n", "")
}

// With no configuration the only server that runs for the user is found.
func TestCommandLineFindsTheServerByItself(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	env := []string{"XDG_RUNTIME_DIR=" + dir}
	options := appOptions{Env: env, Files: map[string]string{"index.php": ""}}
	count := phpRun{Dir: t.TempDir(), Env: env, Args: []string{"-r", `try { echo ephpm_ws_count(); } catch (Error $e) { echo $e->getMessage(); }`}}
	a := startApp(t, options)
	count.want(t, 0, "0", "")
	options.Root = ""
	startApp(t, options)
	count.want(t, 0, "ephpm_ws_count() cannot reach the server: several servers are running: name the ephpm.toml of one with --config FILE", "")
	a.Kill()
	count.want(t, 0, "0", "")
}

func TestControlSocketRefusesNonsense(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	a := startApp(t, appOptions{TOML: "[server]\ncontrol_socket = \"" + dir + "/c\"\n", Files: map[string]string{"index.php": "fine"}})
	for _, sent := range []string{"GET / HTTP/1.1\r\n\r\n", "\xff\xff\xff\xff\x05\x00\x00\x00", "\x02\x00\x00\x00\x20\x00\x00\x00\x09\x00"} {
		conn, err := net.Dial("unix", dir+"/c")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Error(err)
		}
		answer, _ := io.ReadAll(conn) // a reset is an end as well
		if len(answer) > 0 && (len(answer) < 9 || answer[4] != 34) {
			t.Errorf("to %q the server says %q", sent, answer)
		}
		_ = conn.Close() // all was read
	}
	if err := wantBody(a.request("GET", "/", ""), "fine"); err != nil {
		t.Error(err)
	}
}

func TestAControlSocketThatIsTakenIsToldInTheLog(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	options := appOptions{TOML: "[server]\ncontrol_socket = \"" + dir + "/c\"\n", Files: map[string]string{"index.php": "fine"}}
	startApp(t, options)
	options.Root = ""
	b := startApp(t, options)
	b.waitLine(`level=WARN msg="no control socket`, fmt.Sprintf(`another server has %s/c`, dir))
}

// socketDir makes a directory whose path is short enough for a socket in it.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ephpm-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a server that was killed leaves its socket
	return dir
}
