package e2e

import (
	"errors"
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

// statusOf sends bytes and returns the status of the answer, 0 for none at all. The
// connection must be closed then.
func statusOf(t *testing.T, a *app, text string) int {
	t.Helper()
	w := a.connect()
	_, _ = w.Write([]byte(text)) // the server may close before it has read all
	answer, err := w.rest()      // a reset is an end too
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%.60q: still open after %v", text, patience)
	}
	status := 0
	if answer != "" {
		if _, err := fmt.Sscanf(answer, "HTTP/1.1 %d", &status); err != nil {
			t.Errorf("%.60q: %q is no answer", text, answer)
		}
	}
	return status
}

func wantStatus(t *testing.T, a *app, text string, want int) {
	t.Helper()
	if got := statusOf(t, a, text); got != want {
		t.Errorf("%.60q: %d, want %d", text, got, want)
	}
}

// A header that does not come to its end in time ends its connection.
func TestHeadersThatNeverEnd(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[server.timeouts]\nheader_read = \"500ms\"\n",
		Files: map[string]string{"index.php": `<?php echo "ran";`},
	})
	wantStatus(t, a, "GET / HTTP/1.1\r\nHost: x\r\n", 0)
	err := eventually(func() error { // on a busy machine the time may be over before the server has read anything
		if got := statusOf(t, a, "GET / HT"); got != 400 {
			if got != 0 {
				t.Errorf("half a request line: %d, want 400", got)
			}
			return fmt.Errorf("half a request line: %d, want 400", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	a := startApp(t, appOptions{
		TOML: "[server.timeouts]\nheader_read = 0\n",
		Files: map[string]string{
			"index.php": `<?php file_put_contents('` + mark + `', $_SERVER['REQUEST_URI'] . "\n", FILE_APPEND);`,
			"fine.php":  `<?php echo "fine";`,
		}})
	for text, want := range map[string]int{
		"GET\r\n\r\n":                                                                          400,
		"GET /\r\n\r\n":                                                                        400,
		"GET / HTTP\r\n\r\n":                                                                   400,
		"GET / HTTP/1\r\n\r\n":                                                                 400,
		"GET / HTTP/3.7\r\nHost: x\r\n\r\n":                                                    505,
		"GET / HTTP/1.1\r\n\r\n":                                                               400, // no Host
		"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n":                                         400,
		"GET / HTTP/1.1\r\nHost: a b\r\n\r\n":                                                  400,
		"GET / HTTP/1.1\r\nHost: x/y\r\n\r\n":                                                  400,
		"G T / HTTP/1.1\r\nHost: x\r\n\r\n":                                                    400,
		"GET  / HTTP/1.1\r\nHost: x\r\n\r\n":                                                   400,
		"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n":                                                 400,
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n":                                 400, // TLS
		"GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n":                                                400,
		"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n":                                                400,
		"GET /?\x00 HTTP/1.1\r\nHost: x\r\n\r\n":                                               400,
		"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n":                                        400,
		"GET / HTTP/1.1\r\nHost: x\r\nX Y: 1\r\n\r\n":                                          400,
		"GET / HTTP/1.1\r\nHost: x\r\nX : 1\r\n\r\n":                                           400,
		"GET / HTTP/1.1\r\nHost: x\r\n: 1\r\n\r\n":                                             400,
		"GET / HTTP/1.1\r\nHost: x\r\n X: folded\r\n\r\n":                                      400,
		"GET / HTTP/1.1\r\nHost: x\r\nX: \x00\r\n\r\n":                                         400,
		"GET / HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n":                                         400,
		"GET / HTTP/1.1\r\nHost: x\r\nX: " + repeat(100_000) + "\r\n\r\n":                      431,
		"GET /?" + repeat(100_000) + " HTTP/1.1\r\nHost: x\r\n\r\n":                            431,
		"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n":                              400,
		"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: something\r\n\r\n":                       400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 2\r\n\r\nab":                         400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab":       400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n":           400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n":                        501,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n":         400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n":           400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n": 400,
		"GET /%00 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":                            400,
		"GET /% HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":                              400,

		// Request lines.
		" / HTTP/1.1\r\nHost: x\r\n\r\n":                               400,
		"GET/ HTTP/1.1\r\nHost: x\r\n\r\n":                             400,
		"GET /HTTP/1.1\r\nHost: x\r\n\r\n":                             400,
		"GET\t/\tHTTP/1.1\r\nHost: x\r\n\r\n":                          400,
		"GET / HTTP/1.1 \r\nHost: x\r\n\r\n":                           400,
		"GET / http/1.1\r\nHost: x\r\n\r\n":                            400,
		"GET / HTTP/1.1x\r\nHost: x\r\n\r\n":                           400,
		"GET / HTTP/01.1\r\nHost: x\r\n\r\n":                           400,
		"GET / HTTP/-1.1\r\nHost: x\r\n\r\n":                           400,
		"GET / HTTP/0.9\r\nHost: x\r\n\r\n":                            505,
		"GET / HTTQ/1.1\r\nHost: x\r\n\r\n":                            400,
		"G(T / HTTP/1.1\r\nHost: x\r\n\r\n":                            400,
		"GET\x00 / HTTP/1.1\r\nHost: x\r\n\r\n":                        400,
		"\xc3\xa9 / HTTP/1.1\r\nHost: x\r\n\r\n":                       400,
		"GET \\ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":      400,
		"GET x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":       400,
		"GET ?x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":      400,
		"PUT * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":       400,
		"GET http:// HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n": 400,
		"GET http://[::1/ HTTP/1.1\r\nHost: x\r\n\r\n":                 400,
		"GET http://x:y/ HTTP/1.1\r\nHost: x\r\n\r\n":                  400,
		"GET /%c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":     400,
		"\r\n\r\n\r\nGET / HT\r\n\r\n":                                 400,
		"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n":                             400,

		"GET /\rx HTTP/1.1\r\nHost: x\r\n\r\n":                                     400,
		"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n":                                    400,
		"\nGET / HTTP/1.1\r\nHost: x\r\n\r\n":                                      400,
		"\xef\xbb\xbfGET / HTTP/1.1\r\nHost: x\r\n\r\n":                            400,
		repeat(100_000) + " / HTTP/1.1\r\nHost: x\r\n\r\n":                         431,
		"GET / HTTP/1.10\r\nHost: x\r\n\r\n":                                       400,
		"GET / HTTP/2.0\r\nHost: x\r\n\r\n":                                        505,
		"GET x:80 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":                400,
		"CONNECT / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":               400,
		"CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\nConnection: close\r\n\r\n":         400,
		"CONNECT http://x/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":       400,
		"GET http://a:b@x/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":       400,
		"GET http://y@x/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":         400,
		"GET http://y\\@x/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":       400,
		"GET http:///x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":           400,
		"GET http:/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":             400,
		"GET http:x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":              400,
		"GET http://x%00y/ HTTP/1.1\r\nHost: x\r\n\r\n":                            400,
		"GET file:///etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":  400,
		"GET javascript:alert(1) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n": 400,
		"GET /?a\tb HTTP/1.1\r\nHost: x\r\n\r\n":                                   400,
		"GET /?a\x0bb HTTP/1.1\r\nHost: x\r\n\r\n":                                 400,
		"GET /?a\x7fb HTTP/1.1\r\nHost: x\r\n\r\n":                                 400,
		"GET /%2e%2e%5cx HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":         400,
		"GET /x%5c..%5cy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":         400,
		"GET /index.php%00.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":   400,
		"OPTIONS *x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":              400,

		// Header fields.
		"GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: y\r\n", 20_000) + "\r\n": 431,
		"GET / HTTP/1.1\r\nHost: x\r\n" + repeat(100_000) + ": y\r\n\r\n":             431,
		"GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\x00\r\n\r\n":                         400,
		"GET / HTTP/1.1\r\nHost: x\r\nX: a\nb\r\n\r\n":                                400,
		"GET / HTTP/1.1\r\nHost: x\rX: y\r\n\r\n":                                     400,
		"GET / HTTP/1.1\r\nHost: x\r\nX\xef\xbc\x9a y\r\n\r\n":                        400,
		"GET / HTTP/1.1\r\nHost: x\r\nExpect: a miracle\r\nConnection: close\r\n\r\n": 417,
		"GET / HTTP/1.1\r\nHost: x\r\n:authority: y\r\n\r\n":                          400,
		"GET / HTTP/1.1\r\nHost: x\r\n:\r\n\r\n":                                      400,
		"GET / HTTP/1.1\r\nHost: x\r\nX\r\n\r\n":                                      400,
		"GET / HTTP/1.1\r\nHost: x\r\nX\t: 1\r\n\r\n":                                 400,
		"GET / HTTP/1.1\r\nHost: x\r\nX\x00Y: 1\r\n\r\n":                              400,
		"GET / HTTP/1.1\r\nHost: x\r\nX(Y): 1\r\n\r\n":                                400,
		"GET / HTTP/1.1\r\nHost: x\r\nX\xc3: 1\r\n\r\n":                               400,
		"GET / HTTP/1.1\r\nHost: x\r\nX: a\x7fb\r\n\r\n":                              400,
		"GET / HTTP/1.1\r\nHost: x\r\nX: a\x0bb\r\n\r\n":                              400,
		"GET / HTTP/1.1\r\n Host: x\r\n\r\n":                                          400,

		// Hosts.
		"GET / HTTP/1.1\r\nHost: x\x00y\r\n\r\n":                                   400,
		"GET / HTTP/1.1\r\nHost: x@y\r\nConnection: close\r\n\r\n":                 400,
		"GET / HTTP/1.1\r\nHost: ../x\r\n\r\n":                                     400,
		"GET / HTTP/1.1\r\nHost: ..\r\nConnection: close\r\n\r\n":                  400,
		"GET / HTTP/1.1\r\nHost: x..y\r\nConnection: close\r\n\r\n":                400,
		"GET / HTTP/1.1\r\nHost: [::1\r\nConnection: close\r\n\r\n":                400,
		"GET / HTTP/1.1\r\nHost: x:99999999\r\nConnection: close\r\n\r\n":          400,
		"GET / HTTP/1.1\r\nHost: x:y\r\nConnection: close\r\n\r\n":                 400,
		"GET / HTTP/1.1\r\nHost: %2e%2e\r\nConnection: close\r\n\r\n":              400,
		"GET / HTTP/1.1\r\nHost: x#y\r\n\r\n":                                      400,
		"GET / HTTP/1.1\r\nHost: " + repeat(300) + "\r\nConnection: close\r\n\r\n": 400,

		"GET / HTTP/1.1\r\nHost: x\ty\r\n\r\n":                                  400,
		"GET / HTTP/1.1\r\nHost: x,y\r\nConnection: close\r\n\r\n":              400,
		"GET / HTTP/1.1\r\nHost: x\r\nHost: \r\n\r\n":                           400,
		"GET / HTTP/1.1\r\nhost: x\r\nHOST: x\r\n\r\n":                          400,
		"GET / HTTP/1.1\r\nHost: x\r\n\tfolded\r\n\r\n":                         400,
		"GET / HTTP/1.1\r\nHost: x:80:80\r\nConnection: close\r\n\r\n":          400,
		"GET / HTTP/1.1\r\nHost: :80\r\nConnection: close\r\n\r\n":              400,
		"GET / HTTP/1.1\r\nHost: x..\r\nConnection: close\r\n\r\n":              400,
		"GET / HTTP/1.1\r\nHost: .\r\nConnection: close\r\n\r\n":                400,
		"GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\nConnection: close\r\n\r\n": 400,
		"GET / HTTP/1.1\r\nHost: http://x/\r\n\r\n":                             400,
		"GET / HTTP/1.1\r\nHost: \xc3\xa4.test\r\nConnection: close\r\n\r\n":    400,

		// Bodies.
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1,1\r\n\r\na":                                                                         400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1e0\r\n\r\na":                                                                         400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \xc2\xb9\r\n\r\na":                                                                    400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775808\r\n\r\na":                                                         400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 01\r\n\r\na":                                                     400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n":                                                                  501,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \r\n\r\n":                                                                          501,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n":                                                      501,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n":                                                      501,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":                            501,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n 1\r\na\r\n0\r\n\r\n":                                               400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;x\na\r\n0\r\n\r\n":                                                400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n":                                                  400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\na\n0\n\n":                                                        400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("0", 24) + "1\r\na\r\n":                          400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1_0\r\na":                                                           400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\x001\r\na":                                                         400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+repeat(3000)+"\r\na\r\n", 30) + "0\r\n\r\n": 400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\na":                                                                          400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x1\r\n\r\na":                                                                         400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1 1\r\n\r\na":                                                                         400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \r\n\r\na":                                                                            400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n":                                                 501,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n":                                                    501,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n":                                                      400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n":                                              400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\na\r\n0\r\n\r\n":                                               400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\r\na\r\n0\r\n\r\n":                                                 400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\na":                                             400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n":                                              400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;" + repeat(100_000) + "\r\na\r\n0\r\n\r\n":                        400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nno colon\r\n\r\n":                                    400,
	} {
		wantStatus(t, a, text, want)
	}
	if ran, err := os.ReadFile(mark); err == nil {
		t.Errorf("PHP was started for %q", ran)
	}
	if err := wantBody(a.request("GET", "/fine.php", ""), "fine"); err != nil {
		t.Error(err)
	}
}

// A body that is ambiguous for some reader must not become a second request.
func TestRequestsAreNotSmuggled(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	a := startApp(t, appOptions{Files: map[string]string{
		"index.php": `<?php file_put_contents('` + mark + `', $_SERVER['REQUEST_URI'] . "\n", FILE_APPEND); echo "[", $_SERVER['REQUEST_URI'], "]";`,
	}})
	smuggled := "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, text := range map[string]string{
		"both lengths":                fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", 5+len(smuggled), smuggled),
		"odd encoding":                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\nContent-Length: 3\r\n\r\n0\r\n" + smuggled,
		"two encodings":               "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + smuggled,
		"a bare line feed":            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\n0\r\n\r\n" + smuggled,
		"no line before it":           "POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"folded encoding":             fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: %d\r\n\r\n0\r\n\r\n%s", 5+len(smuggled), smuggled),
		"folded length":               fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n %d\r\n\r\n%s", len(smuggled), smuggled),
		"listed length":               fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0, %d\r\n\r\n%s", len(smuggled), smuggled),
		"lengths differ":              fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"odd length":                  fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +%d\r\n\r\n%s", len(smuggled), smuggled),
		"length in a name":            fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length\x00: 0\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"a body of a GET":             fmt.Sprintf("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"a body of an upgrade":        fmt.Sprintf("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"a body that is refused":      fmt.Sprintf("POST /%%00 HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"a body with 417":             fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nExpect: x\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"an extension":                fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x;a=\"\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled),
		"a line feed in an extension": "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;\nxx\r\n0\r\n\r\n" + smuggled,
		"a short chunk":               "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n0\r\n\r\n" + smuggled,
		"a trailer that is a length":  fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTransfer-Encoding: chunked\r\nX: %s", smuggled),
		"absolute form":               fmt.Sprintf("POST http://x/ HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"underscores":                 fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent_Length: 0\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"blank before it":             "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + smuggled,
	} {
		w := a.connect()
		w.send(text)
		w.answer()
		_ = w.tcp().CloseWrite() // the server may have closed it
		answer, _ := w.rest()
		if ran, _ := os.ReadFile(mark); strings.Contains(answer+string(ran), "/smuggled") {
			t.Errorf("%s: the body was run as a request: %q", name, answer)
		}
	}
	// These have no answer, or one without the body that is announced.
	for name, text := range map[string]string{
		"a body of a HEAD":     fmt.Sprintf("HEAD / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"a huge chunk":         "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + smuggled,
		"a huge chunk, signed": "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n8000000000000000\r\n" + smuggled,
	} {
		w := a.connect()
		w.send(text)
		_ = w.tcp().CloseWrite() // the server may have closed it
		answer, _ := w.rest()
		if ran, _ := os.ReadFile(mark); strings.Contains(answer+string(ran), "/smuggled") {
			t.Errorf("%s: the body was run as a request: %q", name, answer)
		}
	}
}

// Of two lengths the chunks count, for the script as for where the request ends; then
// the connection ends, because somebody in front may have gone by the other (RFC 9112
// §6.1, §6.3).
func TestChunksCountMoreThanALength(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{
		"index.php": `<?php echo $_SERVER['REQUEST_URI'], ' ', $_SERVER['CONTENT_LENGTH'] ?? '', ' ', file_get_contents('php://input');`,
	}})
	for _, length := range []int{0, 1, 14, 1000} {
		w := a.connect()
		w.send(fmt.Sprintf("POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", length) + getText("/next"))
		if resp, body := w.answer(); body != "/first 4 body" || !resp.Close {
			t.Errorf("with the length %d: %q, close: %v; want the body and the end", length, body, resp.Close)
		}
		if rest, _ := w.rest(); rest != "" { // what was not read may reset it
			t.Errorf("with the length %d: then %q, want the end", length, rest)
		}
	}
}
