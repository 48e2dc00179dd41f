package main

import (
	"os"
	"strings"
	"testing"
)

// Commands for a running server take the ephpm.toml here as the server did: its
// document root is not this directory.
func TestCommandsTakeTheConfigurationHereAsItIs(t *testing.T) {
	inDir(t, "[server]\ndocument_root = \"public\"\ncontrol_socket = \"control\"\n[kv]\nsnapshot = \"stores\"\n")
	for _, dir := range []string{"public", "stores"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{"reload", "kv ping"} {
		status, stdout, stderr := command(strings.Fields(line)...)
		if status != 1 || stdout != "" || !strings.HasSuffix(stderr, "/control: none is running\n") {
			t.Errorf("ephpm %s = %d, %q, %q, want that none is running", line, status, stdout, stderr)
		}
	}
}

func TestReloadSaysWhyItCannotFindTheServer(t *testing.T) {
	inDir(t, "[server]\ncontrol_socket = \"\"\n")
	status, stdout, stderr := command("reload")
	if want := "error: neither server.pid_file nor server.control_socket is set"; status != 1 || stdout != "" || !strings.HasPrefix(stderr, want) {
		t.Errorf("ephpm reload = %d, %q, %q, want %q", status, stdout, stderr, want)
	}
}
