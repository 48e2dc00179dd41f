package phpbridge

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// cli runs this test program as PHP's command line, without a server.
func cli(t *testing.T, stdin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return cliWith(t, CLIServer{Socket: "it is not there"}, stdin, args...)
}

func cliWith(t *testing.T, to CLIServer, stdin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	path, argv, env, err := CLICommand("ephpm", args, to)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := &exec.Cmd{Path: path, Args: argv, Env: env, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs}
	_ = cmd.Run() // ProcessState has what matters
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// What it prints is compared with php-cli's in e2e; here the C code runs under
// the sanitizers.
func TestCommandLine(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script.php")
	if err := os.WriteFile(script, []byte("#!/usr/bin/env php\n<?php // a\necho __LINE__, fgets(STDIN), $argv[1] ?? '';"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		stdin  string
		args   []string
		status int
		want   string
	}{
		{"", []string{"-r", `echo PHP_SAPI; exit(7);`}, 7, "cli"},
		{"in\n", []string{script, "arg"}, 0, "3in\narg"},
		{`<?php echo $argv[1];`, []string{"--", "-x"}, 0, "-x"},
		{"", []string{"-n", "-d", "a.b=c d", "-r", `echo get_cfg_var('a.b');`}, 0, "c d"},
		{"a\nb\n", []string{"-B", "$s = '';", "-R", "$s .= $argn . $argi;", "-E", "echo $s;"}, 0, "a1b2"},
		{"", []string{"-l", script}, 0, "No syntax errors detected in " + script + "\n"},
		{"", []string{"-w", script}, 0, "<?php  echo __LINE__, fgets(STDIN), $argv[1] ?? '';"},
		{"", []string{"-n", "-r", "foo("}, 255, "\nParse error: Unclosed '(' in Command line code on line 1\n"},
		{"", []string{script + ".no"}, 1, "Could not open input file: " + script + ".no\n"},
		{"", []string{"-r", `cli_set_process_title(str_repeat('title ', 1000)); echo strlen(cli_get_process_title()) > 10 ? getenv('HOME') : '';`}, 0, os.Getenv("HOME")},
		{"", []string{"-r", `try { ephpm_ws_count(); } catch (Error $e) { echo $e->getMessage(); }`}, 0, "ephpm_ws_count() cannot reach the server: it is not there"},
		{"", []string{"-r", `echo PHP_BINARY, getenv('EPHPM_PROCESS_ROLE'), getenv('EPHPM_PHP_BINARY'), getenv('EPHPM_PHP_SERVER'), getenv('EPHPM_PHP_SITE');`}, 0, phpBinary("ephpm")},
		{"", []string{"-r", "1;", "-f", "x"}, 1, "Either execute direct code, process stdin or use a file.\n"},
	} {
		status, stdout, stderr := cli(t, c.stdin, c.args...)
		if status != c.status || stdout != c.want || stderr != "" {
			t.Errorf("%q: %d, %q, %q, want %d, %q", c.args, status, stdout, stderr, c.status, c.want)
		}
	}
	for _, args := range [][]string{{"-v"}, {"-m"}, {"-i"}, {"--ini"}, {"-h"}, {"-s", script}} {
		if status, stdout, stderr := cli(t, "", args...); status != 0 || stdout == "" || stderr != "" {
			t.Errorf("%q: %d, %q, %q, want some text", args, status, stdout, stderr)
		}
	}
}

func TestCommandLineWithoutLibphp(t *testing.T) {
	_, argv, env, err := CLICommand("ephpm", []string{"-v"}, CLIServer{})
	if err != nil {
		t.Fatal(err)
	}
	env = append(env, "LD_PRELOAD=")
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: argv, Env: env}
	out, err := cmd.CombinedOutput()
	want := "error: the PHP library " + library() + " cannot be loaded (" + libraryAdvice() + ")\n"
	if err == nil || cmd.ProcessState.ExitCode() != 1 || string(out) != want {
		t.Errorf("without the library: %v, %q, want %q", err, out, want)
	}
}

func TestPHPBinaryIsTheLink(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	link := filepath.Join(dir, "php")
	if got := phpBinary("ephpm"); got != self {
		t.Errorf("without a link PHP_BINARY is %q, want %q", got, self)
	}
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	if got := phpBinary(link); got != link {
		t.Errorf("called by the link, PHP_BINARY is %q, want %q", got, link)
	}
	t.Setenv("PATH", dir)
	for _, name := range []string{"php", "ephpm"} {
		if got := phpBinary(name); got != link {
			t.Errorf("called %s, with the link in PATH, PHP_BINARY is %q, want %q", name, got, link)
		}
	}
}
