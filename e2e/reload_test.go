package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Without a pid file the control socket says which process the server is.
func TestReloadFindsTheServerByItsControlSocket(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	a := startApp(t, appOptions{Files: map[string]string{"index.php": ""}, TOML: "[server]\ncontrol_socket = \"" + dir + "/c\"\n"})
	reload := command{Args: []string{"reload", "-c", a.options.Config}}
	if status, stdout, stderr := reload.run(t); status != 0 || stdout != fmt.Sprintf("told process %d; its log says how it went\n", a.cmd.Process.Pid) {
		t.Errorf("ephpm reload: %d, %q, %q; the server is process %d", status, stdout, stderr, a.cmd.Process.Pid)
	}
	a.waitLog("PHP started anew")
	a.Stop()
	reload.want(t, 1, "error: cannot reach the server at "+dir+"/c: none is running")
}

// What a directory serves without a file takes up new code, too.
func TestReloadFindsTheServerOfThisDirectory(t *testing.T) {
	t.Parallel()
	env := []string{"XDG_RUNTIME_DIR=" + socketDir(t)}
	a := startApp(t, appOptions{Dev: true, Env: env, Files: map[string]string{"index.php": ""}})
	if status, _, stderr := (command{Dir: a.options.Root, Env: env, Args: []string{"reload"}}).run(t); status != 0 {
		t.Errorf("ephpm reload: %d, %q", status, stderr)
	}
	a.waitLog("PHP started anew")
}

// ephpm reload takes up new code although OPcache does not look for it, and no
// socket notices.
func TestReloadTakesUpNewCodeAndKeepsSockets(t *testing.T) {
	t.Parallel()
	pid := filepath.Join(t.TempDir(), "ephpm.pid")
	a := startApp(t, appOptions{
		Files: map[string]string{
			"index.php":     `<?php echo "old";`,
			"websocket.php": `<?php if ($_SERVER['WS_EVENT'] === 'message') ephpm_ws_send('echo');`,
		},
		TOML: "[server]\npid_file = \"" + pid + "\"\n[php]\nini_overrides = [[\"opcache.validate_timestamps\", \"0\"], [\"opcache.file_update_protection\", \"0\"]]\n",
	})
	if _, got := a.get("/"); got != "old" {
		t.Fatalf("before: %q", got)
	}
	s := a.dial("/", nil)
	if err := os.WriteFile(filepath.Join(a.options.Root, "index.php"), []byte(`<?php echo "new";`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, got := a.get("/"); got != "old" {
		t.Fatalf("without a reload: %q", got)
	}
	out, err := exec.Command(binary, "reload", "-c", a.options.Config).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "told process") {
		t.Fatalf("ephpm reload: %v, %s", err, out)
	}
	a.waitLog("PHP started anew")
	err = eventually(func() error {
		if _, got := a.get("/"); got != "new" {
			return fmt.Errorf("the page says %q", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.send("still there?")
	if got := s.recv(); got != "echo" {
		t.Errorf("the socket got %q", got)
	}
	a.Stop()
	if _, err := os.Stat(pid); err == nil {
		t.Error("the pid file is left")
	}
}
