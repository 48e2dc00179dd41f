package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A phpRun is one run of PHP's command line.
type phpRun command

// by runs it by a program and its first arguments.
func (r phpRun) by(t *testing.T, program ...string) (status int, stdout, stderr string) {
	t.Helper()
	return command(r).by(t, program...)
}

// want runs it as ephpm php and checks what it does.
func (r phpRun) want(t *testing.T, status int, stdout, stderr string) {
	t.Helper()
	gotStatus, gotOut, gotErr := r.by(t, binary, "php")
	if gotStatus != status || gotOut != stdout || gotErr != stderr {
		t.Errorf("ephpm php %q: %d\n%s\nstderr:\n%s\nwant %d\n%s\nstderr:\n%s", r.Args, gotStatus, gotOut, gotErr, status, stdout, stderr)
	}
}

// phpCLI is Debian's php-cli of the version that ephpm has; the test is skipped
// without.
func phpCLI(t *testing.T) string {
	t.Helper()
	_, version, _ := phpRun{Args: []string{"-r", `echo PHP_MAJOR_VERSION, '.', PHP_MINOR_VERSION;`}}.by(t, binary, "php")
	path, err := exec.LookPath("php" + version)
	if err != nil {
		t.Skipf("php%s-cli is not installed", version)
	}
	return path
}

// phpFiles are the scripts of the table below.
var phpFiles = map[string]string{
	"self.php": `<?php
var_dump($argv, $argc, $_SERVER['argv'], PHP_SAPI, php_sapi_name(), __FILE__, __LINE__, getcwd());
foreach (['PHP_SELF', 'SCRIPT_NAME', 'SCRIPT_FILENAME', 'PATH_TRANSLATED', 'DOCUMENT_ROOT'] as $name) {
	var_dump($_SERVER[$name]);
}
var_dump(get_included_files(), headers_sent(), http_response_code(), isset($_SERVER['REQUEST_TIME_FLOAT']), defined('STDIN'));
`,
	"shebang":     "#!/usr/bin/env php\n<?php declare(strict_types=1);\nnamespace A; echo __LINE__;",
	"bad.php":     "<?php\nfoo(",
	"fatal.php":   "<?php\necho 'before';\nfoo();\necho 'after';",
	"thrown.php":  "<?php\nfunction f(int $a) { throw new LogicException('no'); }\nf(1);",
	"streams.php": `<?php fwrite(STDERR, 'e'); fwrite(STDOUT, 'o'); echo fgets(STDIN), PHP_EOL, stream_get_contents(STDIN);`,
	"line.php":    `<?php echo $argn, '-', $argi, "\n";`,
	"order.php":   `<?php register_shutdown_function(function () { echo 's'; exit(4); }); class D { function __destruct() { echo 'd'; } } $d = new D; exit(3);`,
	"halt.php":    "<?php echo 'a', __COMPILER_HALT_OFFSET__; __halt_compiler(); junk",
	"my.ini":      "memory_limit = 77M\ndisplay_errors = 1\n",
	"text":        "just text\n",
}

func writePHPFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range phpFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPHPCommandIsLikePHPCLI(t *testing.T) {
	t.Parallel()
	cli := phpCLI(t)
	dir := writePHPFiles(t)
	for _, r := range []phpRun{
		// Scripts and their arguments.
		{Args: []string{"self.php"}},
		{Args: []string{"./self.php", "a", "-b", "--", "--c=d"}},
		{Args: []string{"-f", "self.php", "--", "-x", "y"}},
		{Args: []string{filepath.Join(dir, "self.php"), ""}},
		{Args: []string{"--file", "self.php", "a"}},
		{Args: []string{"shebang"}},
		{Args: []string{"text"}},
		{Args: []string{"halt.php"}},
		{Args: []string{"nosuch.php"}},
		{Args: []string{"-f", "nosuch.php"}},
		{Args: []string{"-l", "nosuch.php"}},
		{Args: []string{"."}},
		{Args: []string{"streams.php"}, Stdin: "one\ntwo\nthree"},
		// Programs on stdin.
		{Stdin: phpFiles["self.php"]},
		{Stdin: phpFiles["self.php"], Args: []string{"--", "-x", "y"}},
		{Stdin: phpFiles["shebang"]},
		{Stdin: phpFiles["fatal.php"]},
		// Code.
		{Args: []string{"-r", "var_dump($argv, $_SERVER['PHP_SELF'], __FILE__, __LINE__, get_included_files());", "--", "-a", "b"}},
		{Args: []string{"-r", "echo 1; fwrite(STDOUT, 2); echo 3;"}},
		{Args: []string{"-nr", "echo ini_get('memory_limit');"}},
		{Args: []string{"--run", "echo $argc;", "x"}},
		{Args: []string{"-r", "syntax error"}},
		{Args: []string{"-r", "fclose(STDOUT); echo 1; fwrite(STDERR, 2);"}},
		{Args: []string{"-r", "var_dump(STDIN, STDOUT, STDERR, fopen('php://stdin', 'r'));"}},
		// Exit statuses and errors.
		{Args: []string{"-r", "exit(7);"}},
		{Args: []string{"-r", "exit(256 + 3);"}},
		{Args: []string{"-r", "exit('bye');"}},
		{Args: []string{"order.php"}},
		{Args: []string{"fatal.php"}},
		{Args: []string{"thrown.php"}},
		{Args: []string{"bad.php"}},
		{Args: []string{"-n", "fatal.php"}},
		{Args: []string{"-n", "thrown.php"}},
		{Args: []string{"-n", "bad.php"}},
		{Args: []string{"-d", "display_errors=1", "-d", "log_errors=0", "fatal.php"}},
		{Args: []string{"-d", "display_errors=stderr", "-d", "log_errors=0", "fatal.php"}},
		{Args: []string{"-d", "display_errors=1", "-r", "echo $x; trigger_error('a');"}},
		{Args: []string{"-d", "memory_limit=2M", "-r", "str_repeat('x', 9 << 20);"}},
		{Args: []string{"-r", "set_time_limit(1); while (true);"}},
		{Args: []string{"-r", "header('A: b'); echo 1; header('C: d'); var_dump(headers_list(), headers_sent(), http_response_code(404));"}},
		{Args: []string{"-r", "echo 1; session_start();"}},
		// Syntax check, highlight, strip.
		{Args: []string{"-l", "self.php"}},
		{Args: []string{"-l", "shebang"}},
		{Args: []string{"-l", "bad.php"}},
		{Args: []string{"-n", "-l", "bad.php"}},
		{Args: []string{"-l"}, Stdin: phpFiles["bad.php"]},
		{Args: []string{"-d", "asp_tags=Off", "-d", "error_reporting=E_ALL", "-l", "-f", "self.php"}},
		{Args: []string{"-s", "self.php"}},
		{Args: []string{"-w", "shebang"}},
		// Lines of stdin.
		{Args: []string{"-B", "$s = 0;", "-R", "$s += $argn;", "-E", "echo $s, $argi;"}, Stdin: "1\n2\r\n3"},
		{Args: []string{"-F", "line.php", "x"}, Stdin: "a\nb\n"},
		{Args: []string{"-R", "echo $argn; exit(3);"}, Stdin: "a\nb\n"},
		// php.ini.
		{Args: []string{"-n", "-r", "$a = ini_get_all(null, false); ksort($a); print_r($a);"}},
		{Args: []string{"-c", "my.ini", "-r", "echo ini_get('memory_limit'), basename(php_ini_loaded_file()); foo();"}},
		{Args: []string{"-c", "my.ini", "-d", "memory_limit=66M", "-r", "echo ini_get('memory_limit');"}},
		{Args: []string{"-d", "html_errors=1", "-d", "max_execution_time=3", "-r", "echo ini_get('html_errors'), ini_get('max_execution_time');"}},
		{Args: []string{"-d", "a", "-db=/x=y", "-d", "c=d e", "-d", "f=E_ALL & ~E_NOTICE", "-d", "g=", "-d", `h="i"`, "-r",
			"foreach (str_split('abcfgh') as $k) var_dump(get_cfg_var($k));"}},
		{Args: []string{"--define", "foo=bar", "--run", "echo get_cfg_var('foo');"}},
		{Args: []string{"-d", "auto_prepend_file=text", "shebang"}},
		{Args: []string{"-d", "opcache.enable_cli=1", "self.php"}},
		// The environment.
		{Env: []string{"A=b c"}, Args: []string{"-r", "var_dump(getenv('A'), $_SERVER['A'], $_ENV, getenv('LD_PRELOAD'));"}},
		{Env: []string{"LD_PRELOAD=libm.so.6"}, Args: []string{"-r", "passthru('env | grep -E \"^(LD_|EPHPM)\"');"}},
		{Args: []string{"-d", "variables_order=EGPCS", "-r", "$a = $_ENV; unset($a['_']); ksort($a); print_r($a);"}},
		{Args: []string{"-r", "passthru('ulimit -n; umask');"}},
		// What php-cli has and other ways to run PHP do not.
		{Args: []string{"-r", "cli_set_process_title('a title'); echo cli_get_process_title(), PHP_CLI_PROCESS_TITLE; passthru('ps -o args= -p ' . getmypid());"}},
		{Args: []string{"-r", "echo new ReflectionFunction('cli_set_process_title'), new ReflectionFunction('cli_get_process_title'), new ReflectionFunction('dl');"}},
		{Args: []string{"-f", "self.php", "-f", "self.php"}},
		{Args: []string{"-r", "1;", "-f", "self.php"}},
		{Args: []string{"-r", "posix_kill(getmypid(), 15); sleep(20);"}},
	} {
		r.Dir = dir
		t.Run(strings.Join(append(r.Args, strconv.Quote(r.Stdin)), " "), func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := r.by(t, cli)
			r.want(t, status, stdout, stderr)
		})
	}
}

func TestPHPCommandModulesAreThoseOfPHPCLI(t *testing.T) {
	t.Parallel()
	cli := phpCLI(t)
	r := phpRun{Args: []string{"-m"}}
	_, list, _ := r.by(t, cli)
	want := strings.Replace(list, "exif\n", "ephpm\nexif\n", 1)
	if status, stdout, stderr := r.by(t, binary, "php"); status != 0 || stdout != want || stderr != "" {
		t.Errorf("ephpm php -m: %d, stderr %q\n%s\nwant\n%s", status, stderr, stdout, want)
	}
}

func TestPHPCommandShows(t *testing.T) {
	t.Parallel()
	for option, want := range map[string]string{
		"-v":        `^PHP 8\.\d+\.\d+\S* \(cli\) \(.*\) \(NTS\)\nCopyright \(c\) The PHP Group\nZend Engine v\d`,
		"--version": `^PHP 8\.`,
		"-i":        `(?s)^phpinfo\(\)\nPHP Version => 8\..*\nServer API => Command Line Interface\n.*\nephpm => enabled\n`,
		"-m":        `(?s)^\[PHP Modules\]\n.*\nCore\n.*\n\n\[Zend Modules\]\n`,
		"--ini":     `(?s)^Configuration File \(php.ini\) Path: /.*\nLoaded Configuration File: .*\nScan for additional .ini files in: `,
		"-h":        `^Usage: ephpm php \[options\]`,
	} {
		status, stdout, stderr := phpRun{Args: []string{option}}.by(t, binary, "php")
		if status != 0 || stderr != "" || !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("ephpm php %s: %d, stderr %q\n%.1000s\nwant %s", option, status, stderr, stdout, want)
		}
	}
	for option, want := range map[string]string{
		"-a": "There is no interactive shell here.\n",
		"-S": "There is no -S here: use ephpm serve -l ADDR -d DIR.\n",
		"-z": "There is no -z here: use -d zend_extension=FILE.\n",
	} {
		phpRun{Args: []string{option, "x"}}.want(t, 1, want, "")
	}
	status, stdout, stderr := phpRun{Args: []string{"-Z"}}.by(t, binary, "php")
	if status != 1 || stderr != "Error in argument 1, char 2: option not found Z\n" || !strings.HasPrefix(stdout, "Usage:") {
		t.Errorf("ephpm php -Z: %d, %q, %q, want 1 with the usage", status, stdout, stderr)
	}
}

func TestPHPCommandReadsStdinForADash(t *testing.T) {
	t.Parallel()
	phpRun{Stdin: `<?php echo $argv[1];`, Args: []string{"-", "-x"}}.want(t, 0, "-x", "")
}

func TestPHPCommandWorksWithoutItsName(t *testing.T) {
	t.Parallel()
	dir := writePHPFiles(t)
	for _, args := range [][]string{{"shebang"}, {"-d", "a=b", "shebang"}, {"-da=b", "shebang"}, {"-n", "shebang"}, {"-r", "echo 3;"}, {"-f", "shebang"}} {
		if status, stdout, stderr := (phpRun{Dir: dir, Args: args}).by(t, binary); status != 0 || stdout != "3" || stderr != "" {
			t.Errorf("ephpm %q: %d, %q, %q, want 3", args, status, stdout, stderr)
		}
	}
	if status, stdout, stderr := (phpRun{Dir: dir, Args: []string{"-l", "shebang"}}).by(t, binary); status != 0 || stdout != "No syntax errors detected in shebang\n" || stderr != "" {
		t.Errorf("ephpm -l: %d, %q, %q", status, stdout, stderr)
	}
}

func TestPHPBinaryRunsScripts(t *testing.T) {
	t.Parallel()
	dir := writePHPFiles(t)
	link := filepath.Join(dir, "php")
	if err := os.Symlink(binary, link); err != nil {
		t.Fatal(err)
	}
	const code = `
$run = proc_open([PHP_BINARY, '-d', 'a.b=c', 'shebang'], [1 => ['pipe', 'w']], $pipes);
echo PHP_BINARY, ' ', stream_get_contents($pipes[1]), ' ', proc_close($run);`
	r := phpRun{Dir: dir, Args: []string{"-r", code}}
	for name, c := range map[string]struct {
		program []string
		want    string
	}{
		"ephpm php":               {[]string{binary, "php"}, binary},
		"a link named php":        {[]string{link}, link},
		"the same by its place":   {[]string{"./php"}, link},
		"the same, found in PATH": {[]string{"env", "PATH=" + dir, "php"}, link},
	} {
		status, stdout, stderr := r.by(t, c.program...)
		if want := c.want + " 3 0"; status != 0 || stdout != want || stderr != "" {
			t.Errorf("%s: %d, %q, %q, want %q", name, status, stdout, stderr, want)
		}
	}
}

func TestPHPCommandRunsAPhar(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const make = `
$p = new Phar('tool.phar');
$p['bin/tool'] = "#!/usr/bin/env php\n<?php require __DIR__ . '/../src/Tool.php'; exit(Tool::run(array_slice(\$argv, 1)));";
$p['src/Tool.php'] = '<?php class Tool { static function run($args) { echo Phar::running(false), " ", implode(",", $args), "\n"; return count($args); } }';
$p->setStub("#!/usr/bin/env php\n<?php Phar::mapPhar('tool.phar'); require 'phar://tool.phar/bin/tool'; __HALT_COMPILER();");
copy('tool.phar', 'tool');`
	phpRun{Dir: dir, Args: []string{"-d", "phar.readonly=0", "-r", make}}.want(t, 0, "", "")
	for _, name := range []string{"tool.phar", "tool"} {
		phpRun{Dir: dir, Args: []string{name, "install", "--no-dev"}}.want(t, 2, filepath.Join(dir, name)+" install,--no-dev\n", "")
	}
}

func TestPHPCommandWritesMegabytesThroughAPipe(t *testing.T) {
	t.Parallel()
	status, stdout, _ := phpRun{Args: []string{"-r", "for ($i = 0; $i < 5; $i++) echo str_repeat($i, 1 << 20);"}}.by(t, binary, "php")
	if status != 0 || len(stdout) != 5<<20 || strings.Count(stdout, "4") != 1<<20 {
		t.Errorf("%d, %d bytes, want 5 MiB", status, len(stdout))
	}
	// A reader that goes away ends the script.
	status, stdout, _ = phpRun{Args: []string{"-c", `"$0" php -r 'while (true) echo str_repeat("x", 4096);' | head -c 3; echo " ${PIPESTATUS[0]}"`, binary}}.by(t, "bash")
	if status != 0 || stdout != "xxx 255\n" {
		t.Errorf("with a reader that goes away: %d, %q, want %q", status, stdout, "xxx 255\n")
	}
}

func TestPHPCommandIsUnbufferedAndEndsBySignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		// Or what these tests ignore, as under nohup, is ignored by what they start.
		cmd := exec.Command("env", "--default-signal", binary, "php", "-r", `echo "ready"; sleep(600);`)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }) // it may have ended
		ready := make([]byte, 5)
		if n, err := out.Read(ready); n != 5 {
			t.Errorf("read %q, %v, want ready before the script ends", ready[:n], err)
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // ProcessState has what matters
		late.Stop()
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != sig {
			t.Errorf("%s ended it with %s", sig, cmd.ProcessState)
		}
	}
}

func TestPHPCommandKeepsIgnoringWhatItsParentIgnored(t *testing.T) {
	t.Parallel()
	const script = `trap '' TERM QUIT HUP; exec "$0" php -r 'foreach ([SIGTERM, SIGQUIT, SIGHUP] as $s) posix_kill(getmypid(), $s); echo "alive";'`
	if status, stdout, _ := (phpRun{Args: []string{"-c", script, binary}}).by(t, "bash"); status != 0 || stdout != "alive" {
		t.Errorf("%d, %q, want alive", status, stdout)
	}
}

func TestPHPCommandHandlesItsOwnSignals(t *testing.T) {
	t.Parallel()
	phpRun{Args: []string{"-r", `
pcntl_async_signals(true);
pcntl_signal(SIGTERM, function () { echo 'handled'; exit(5); });
posix_kill(getmypid(), SIGTERM);
sleep(20);`}}.want(t, 5, "handled", "")
}

func TestEphpmLogIsOnStderrOnTheCommandLine(t *testing.T) {
	t.Parallel()
	phpRun{Args: []string{"-r", `ephpm_log('hello'); ephpm_log('no', EPHPM_LOG_LEVEL_ERROR, ['a' => 1]); try { ephpm_log('x', 0, [NAN]); } catch (ValueError $e) { echo $e->getMessage(); }`}}.want(t,
		0, "ephpm_log(): Argument #3 ($context) must hold only values that JSON can hold", "INFO hello\nERROR no {\"a\":1}\n")
}
