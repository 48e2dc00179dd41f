package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// errorLines returns the lines of stderr that are not the ordinary log.
func errorLines(stderr string) []string {
	var lines []string
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "time=") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// wantOneLine checks that serve ends with 1 and says why in one line.
func wantOneLine(t *testing.T, c command, want string) {
	t.Helper()
	status, _, stderr := c.run(t)
	lines := errorLines(stderr)
	if status != 1 || len(lines) != 1 || !regexp.MustCompile(want).MatchString(lines[0]) {
		t.Errorf("ephpm %s: exit status %d, %q; want 1 and one line like %q", strings.Join(c.Args, " "), status, lines, want)
	}
}

func TestOccupiedPort(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := l.Addr().String()
	wantOneLine(t, command{Args: []string{"serve", "-d", ".", "-l", addr}},
		"^error: listen on "+regexp.QuoteMeta(addr)+`: another program has this port: stop it, or choose another with \[server\] listen$`)
}

func TestRootThatIsNoDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"file": "x"})
	wantOneLine(t, command{Dir: dir, Args: []string{"serve", "-d", "file"}}, `^error: -d: server\.document_root: "file" is not a directory; name another`)
	wantOneLine(t, command{Dir: dir, Args: []string{"serve", "-d", "nothing"}}, `^error: -d: server\.document_root: "nothing" does not exist; name another`)
}

// ordinaryUser is a command that runs the binary as somebody who may not do
// everything.
func ordinaryUser(t *testing.T) []string {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	path, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("runs as root and finds no setpriv (util-linux) to become somebody else")
	}
	return []string{path, "--reuid=65534", "--regid=65534", "--clear-groups"}
}

func TestUnreadableRoot(t *testing.T) {
	t.Parallel()
	as := ordinaryUser(t)
	// Neither the binary nor the directories above may be what cannot be read.
	dir, err := os.MkdirTemp("", "ephpm-unreadable-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	copied, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "root")
	if err := os.WriteFile(filepath.Join(dir, "ephpm"), copied, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, root} {
		_ = os.Mkdir(d, 0o755) // the first is there
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(root, 0o000); err != nil {
		t.Fatal(err)
	}
	args := append(as, filepath.Join(dir, "ephpm"), "serve", "-d", root, "-l", "127.0.0.1:0")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	want := fmt.Sprintf("error: -d: server.document_root: %q cannot be read by this user; give it read and execute permission, or run as its owner\n", root)
	if cmd.ProcessState.ExitCode() != 1 || string(out) != want {
		t.Errorf("%v, %q; want exit status 1 and %q", err, out, want)
	}
}

func TestPHPThatDoesNotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"ephpm.toml": "[php]\nini_file = \"missing.ini\"\n"})
	wantOneLine(t, command{Dir: dir, Args: []string{"serve", "-l", "127.0.0.1:0"}}, `^error: ephpm\.toml:2: php\.ini_file: "missing\.ini" cannot be read: no such file`)
}

func TestSyntaxErrorIsOneLineInTheLog(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{
		"index.php":     "<?php\n\nif (;\n",
		"websocket.php": "<?php\nfunction {\n",
		"fine.php":      `<?php echo "fine";`,
	}})
	if resp, body := a.get("/"); resp.StatusCode != 500 || strings.Contains(body, "syntax") {
		t.Errorf("index.php: %s %q, want 500 and no details", resp.Status, body)
	}
	if resp, body := a.refusal("/", nil); resp.StatusCode != 500 || strings.Contains(body, "syntax") {
		t.Errorf("websocket.php: %s %q, want 500 and no details", resp.Status, body)
	}
	if err := wantBody(a.request("GET", "/fine.php", ""), "fine"); err != nil {
		t.Error(err)
	}
	for _, want := range [][]string{
		{`text="PHP Parse error:  syntax error, unexpected token \\";\\" in \S+/index\.php on line 3"`, `script=\S+/index\.php\b`, `request=\S+`},
		{`text="PHP Parse error:  syntax error, unexpected token \\"{\\".* in \S+/websocket\.php on line 2"`, `script=\S+/websocket\.php\b`, `request=\S+`},
	} {
		a.waitLine(want...)
		if n := a.countLines(want[0]); n != 1 {
			t.Errorf("%d lines like %s, want one", n, want[0])
		}
	}
}
