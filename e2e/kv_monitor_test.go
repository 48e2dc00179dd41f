package e2e

import (
	"bufio"
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// ephpm kv monitor shows what PHP, its sessions and ephpm kv do, reads that workers
// otherwise do by themselves included.
func TestKVMonitor(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	toml := "[server]\ncontrol_socket = \"" + dir + "/control\"\n"
	a := startApp(t, appOptions{TOML: toml, Files: map[string]string{"index.php": `<?php
		ephpm_kv_set('a', "1\n", 60); ephpm_kv_get('a'); ephpm_kv_get('none'); ephpm_kv_del('a', 'b'); ephpm_kv_cas('c', null, 'v');
		ini_set('session.save_handler', 'ephpm'); session_id('0123456789abcdef'); session_start(['use_strict_mode' => 0]); session_write_close();
		echo 'done';`}})
	writeFiles(t, dir, map[string]string{"ephpm.toml": toml})
	k := kvTest{t, dir + "/ephpm.toml"}

	cmd := exec.Command(binary, "kv", "-c", k.config, "monitor")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 10_000)
	go func() { // until the command ends
		defer close(lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		for range lines {
		}
		_ = cmd.Wait() // it was killed
	})
	err = eventually(func() error {
		k.want("", "set", "ready", "")
		if len(lines) == 0 {
			return errors.New("the monitor shows nothing")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := wantBody(a.request("GET", "/", ""), "done"); err != nil {
		t.Error(err)
	}
	k.want("", "set", "end", "")
	head := regexp.MustCompile(`^\d+\.\d{6} \[default php\] `)
	var got []string
	late := time.After(patience)
	for done := false; !done; {
		select {
		case line, ok := <-lines:
			text := head.ReplaceAllString(line, "")
			if !ok || text == line {
				t.Fatalf("line %q, %v", line, ok)
			}
			if done = strings.Contains(text, `"end"`); !done && !strings.Contains(text, `"ready"`) {
				got = append(got, text)
			}
		case <-late:
			t.Fatalf("the monitor shows only %q", got)
		}
	}
	want := []string{
		`"set" "a" "1\n" "60"`, `"get" "a"`, `"get" "none"`, `"del" "a" "b"`, `"cas" "c" "" "v" "0"`,
		`"session_open" "0123456789abcdef"`, `"session_write" "0123456789abcdef" "" "1440"`, `"session_close"`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the monitor shows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
