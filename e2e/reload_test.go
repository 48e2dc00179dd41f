package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

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
