package main

import (
	"bytes"
	"strings"
	"testing"
)

// command runs one command line and returns what it printed.
func command(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(args, nil, &out, &errs)
	return status, out.String(), errs.String()
}

func TestMisuseShowsTheUsageOnStderr(t *testing.T) {
	for line, want := range map[string]string{
		"sevre":                 `error: unknown command "sevre"; did you mean serve?`,
		"frobnicate":            "error: unknown command \"frobnicate\"\n",
		"deploy --all":          "error: ephpm deploy is not available in this version; use ephpm reload\n",
		"dev -p 80000":          "error: ephpm dev: invalid value",
		"serve -x":              "error: ephpm serve: flag provided but not defined: -x\n",
		"serve -c":              "error: ephpm serve: flag needs an argument: -c\n",
		"serve extra":           `error: ephpm serve: unexpected argument "extra"`,
		"serve --listen=":       "error: ephpm serve: invalid value",
		"config":                "error: ephpm config has one command: check\n",
		"config show":           "error: ephpm config has one command: check\n",
		"config check -l :8080": "error: ephpm config check: flag provided but not defined: -l\n",
	} {
		status, stdout, stderr := command(strings.Fields(line)...)
		if status != 2 || stdout != "" || !strings.HasPrefix(stderr, want) || !strings.Contains(stderr, "Usage:") {
			t.Errorf("ephpm %s = %d, stdout %q, stderr\n%s\nwant 2 and %q with the usage", line, status, stdout, stderr, want)
		}
	}
}

func TestHelpIsOnStdout(t *testing.T) {
	for _, name := range []string{"help", "-h", "--help"} {
		if status, stdout, stderr := command(name); status != 0 || stdout != usage || stderr != "" {
			t.Errorf("ephpm %s = %d, %q, %q, want the usage on stdout", name, status, stdout, stderr)
		}
	}
	if status, stdout, stderr := command("serve", "-h"); status != 0 || stdout+stderr != usage {
		t.Errorf("ephpm serve -h = %d, %q, %q, want the usage", status, stdout, stderr)
	}
}

func TestVersionNamesAllThree(t *testing.T) {
	status, stdout, _ := command("version")
	for _, want := range []string{"ephpm ", "PHP ", "go1."} {
		if status != 0 || !strings.Contains(stdout, want) {
			t.Errorf("ephpm version = %d, %q, want %q in it", status, stdout, want)
		}
	}
}

func TestConfigCheck(t *testing.T) {
	inDir(t, "[server.websocket]\nping_interval_secs = 120\n")
	status, stdout, stderr := command("config", "check")
	if status != 0 || !strings.HasSuffix(stdout, "ephpm.toml is fine\n") || !strings.HasPrefix(stderr, "warning: server.websocket.ping") {
		t.Errorf("config check = %d, %q, %q, want fine with a warning", status, stdout, stderr)
	}

	inDir(t, "a = 1\nb = 2\n")
	status, stdout, stderr = command("config", "check")
	if lines := strings.Split(stderr, "\n"); status != 1 || stdout != "" || len(lines) != 3 || !strings.HasPrefix(lines[1], "error: ephpm.toml:2: b: ") {
		t.Errorf("config check of two mistakes = %d, %q, %q, want 1 and two lines", status, stdout, stderr)
	}
	if status, _, stderr := command("serve"); status != 1 || strings.Count(stderr, "error: ") != 2 {
		t.Errorf("serve with two mistakes = %d, %q, want 1 and two lines", status, stderr)
	}
	if status, _, stderr := command("config", "check", "-c", "nowhere.toml"); status != 1 || !strings.HasPrefix(stderr, "error: nowhere.toml does not exist") {
		t.Errorf("config check of a missing file = %d, %q", status, stderr)
	}
}

func TestIsForPHP(t *testing.T) {
	inDir(t, "")
	for line, want := range map[string]bool{
		"ephpm.toml":         true, // any file
		"ephpm.toml -x":      true,
		"nosuch.php":         true, // as php-cli answers
		"nosuch":             false,
		".":                  false,
		"-r 1;":              true,
		"-n script.php":      true,
		"-d a=b script.php":  true,
		"-da=b script.php":   true,
		"-d public":          false,
		"-d":                 false,
		"-l 127.0.0.1:8080":  false,
		"-c ephpm.toml":      false,
		"--document-root=/x": false,
	} {
		if got := isForPHP(strings.Fields(line)); got != want {
			t.Errorf("isForPHP(%s) = %v, want %v", line, got, want)
		}
	}
}
