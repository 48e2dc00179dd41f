package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
)

// appOptions says how to start a server. The zero value serves an empty
// directory with the defaults.
type appOptions struct {
	// Root is the document root, absolute or relative to this directory. Empty
	// means the one that the configuration names, or, when TOML and Config do
	// not name one, what the server makes of that.
	Root string
	// Files are written into a new document root, path to content. Not together
	// with Root.
	Files map[string]string
	// TOML is the content of the configuration file, without listen.
	TOML string
	// Config is the path of an existing configuration file that is used instead
	// of TOML.
	Config string
	// Listen is the address of the listener. Empty means a free port of
	// 127.0.0.1, which is kept for the server until the test ends if nothing
	// speaks TLS: HTTP/3 would need the same port of UDP.
	Listen string
	// Env is added to the environment, "NAME=value".
	Env []string
	// Args are added to the command line.
	Args []string
	// Dev starts ephpm dev, in the document root and without a configuration.
	// Without Args it takes a free port.
	Dev bool
}

// hangAfter is what no test takes: one that still has its server then ends all with
// what every goroutine does.
const hangAfter = 10 * patience

// An app is a running ephpm server. Its methods are for the goroutine of the
// test that started it.
type app struct {
	URL  string // http://127.0.0.1:43127
	Addr string // 127.0.0.1:43127

	t       testing.TB
	options appOptions
	cmd     *exec.Cmd
	log     *outputLog
	exited  chan struct{} // closed when the process has ended
}

// startApp starts a server and returns when it listens. The server is stopped
// when the test ends.
func startApp(t testing.TB, o appOptions) *app {
	t.Helper()
	a := &app{t: t, options: o}
	if len(o.Files) > 0 {
		a.options.Root = t.TempDir()
		writeFiles(t, a.options.Root, o.Files)
	}
	if o.Config == "" && !o.Dev {
		a.options.Config = filepath.Join(t.TempDir(), "ephpm.toml")
		writeFiles(t, filepath.Dir(a.options.Config), map[string]string{"ephpm.toml": o.TOML})
	}
	switch {
	case o.Listen != "":
	case strings.Contains(o.TOML, "[server.tls]"):
		a.options.Listen = "127.0.0.1:0"
	default:
		a.options.Listen = reservedAddr(t)
	}
	guard := time.AfterFunc(hangAfter, func() {
		debug.SetTraceback("all")
		panic(t.Name() + " hangs, its server's log is:\n" + a.Log())
	})
	t.Cleanup(func() { guard.Stop() })
	a.start()
	t.Cleanup(func() {
		if t.Failed() {
			defer func() { t.Logf("server log:\n%s", a.Log()) }()
		}
		a.Stop()
	})
	return a
}

// fewWorkers is how many a server has when its PHP runs under a command that slows
// it down, and the test does not say how many: as many as it would start by itself
// take a minute to fork.
const fewWorkers = 4

func (a *app) environment() []string {
	if *under == "" || strings.Contains(a.options.TOML, "workers") || a.options.Dev {
		return nil
	}
	return []string{fmt.Sprint("EPHPM_PHP__WORKERS=", fewWorkers)}
}

func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (a *app) start() {
	a.t.Helper()
	args := []string{"serve", "-c", a.options.Config, "-l", a.options.Listen}
	if a.options.Root != "" {
		root, err := filepath.Abs(a.options.Root)
		if err != nil {
			a.t.Fatal(err)
		}
		args = append(args, "-d", root)
	}
	if a.options.Dev {
		args = []string{"dev"}
		if len(a.options.Args) == 0 {
			args = append(args, "-p", "0")
		}
	}
	a.log = newOutputLog()
	a.cmd = exec.Command(binary, append(args, a.options.Args...)...)
	if a.options.Dev {
		a.cmd.Dir = a.options.Root
	}
	a.cmd.Env = append(append(os.Environ(), a.environment()...), a.options.Env...)
	a.cmd.Stdout, a.cmd.Stderr = a.log, a.log
	// A session of its own, so that its processes are known; see processes. It does
	// not outlive the tests, however these end.
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	// Whoever is left behind holds the output open.
	a.cmd.WaitDelay = patience
	if err := a.cmd.Start(); err != nil {
		a.t.Fatalf("start ephpm: %v", err)
	}
	exited := make(chan struct{})
	a.exited = exited
	cmd := a.cmd
	go func() { // ended by the process, for which Stop and Kill wait
		defer close(exited)
		_ = cmd.Wait() // ProcessState has what matters
	}()

	m := a.log.wait(a.t, `listening"?[ ,].*\baddr"?[=:]"?([0-9.:\[\]a-f]+)`, a.exited)
	if m == nil {
		a.t.Fatalf("ephpm does not listen; its log:\n%s", a.Log())
	}
	a.Addr = m[1]
	a.URL = "http://" + a.Addr
}

// Log returns what the server wrote since it was started or restarted.
func (a *app) Log() string { return a.log.String() }

// waitLog waits until the server's log matches pattern and returns the match
// and its groups.
func (a *app) waitLog(pattern string) []string {
	a.t.Helper()
	m := a.log.wait(a.t, pattern, a.exited)
	if m == nil {
		a.t.Fatalf("the server's log never matched %q", pattern)
	}
	return m
}

// PID is the process id of the front.
func (a *app) PID() int { return a.cmd.Process.Pid }

// Stop asks the server to end (SIGTERM), waits, and returns its exit status. It
// checks that the server ended in good order. Stopping twice is harmless.
func (a *app) Stop() int {
	a.t.Helper()
	return a.end(syscall.SIGTERM)
}

// Kill ends the front without a warning (SIGKILL) and waits until all of its
// processes are gone.
func (a *app) Kill() {
	a.t.Helper()
	a.end(syscall.SIGKILL)
}

// Restart stops the server and starts it again on the same address.
func (a *app) Restart() {
	a.t.Helper()
	a.Stop()
	a.options.Listen = a.Addr
	a.start()
}

func (a *app) end(sig syscall.Signal) int {
	a.t.Helper()
	select {
	case <-a.exited:
	default:
		// The process may end by itself at this moment.
		_ = a.cmd.Process.Signal(sig)
	}
	select {
	case <-a.exited:
	case <-time.After(3 * patience): // of which WaitDelay may take one
		a.t.Errorf("ephpm did not end within %v of %v", 3*patience, sig)
		a.killLeftBehind()
		<-a.exited
	}
	a.checkNobodyIsLeft()
	for _, trouble := range []string{"WARNING: DATA RACE", "panic: ", "fatal error: "} {
		if strings.Contains(a.Log(), trouble) {
			a.t.Errorf("the server's log has %q:\n%s", trouble, a.Log())
		}
	}
	return a.cmd.ProcessState.ExitCode()
}

// checkNobodyIsLeft waits until all processes of the server have ended: zygote
// and workers must not outlive the front.
func (a *app) checkNobodyIsLeft() {
	a.t.Helper()
	err := eventually(func() error {
		if left := a.processes(); len(left) > 0 {
			return fmt.Errorf("processes of the server outlived it: %v", left)
		}
		return nil
	})
	if err != nil {
		a.t.Error(err)
		a.killLeftBehind()
	}
}

func (a *app) killLeftBehind() {
	for _, p := range a.processes() {
		_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may end by itself at this moment
	}
}

// eventually calls try until it returns nil, for what can only be asked, not
// waited for. It returns the last error when patience is over.
func eventually(try func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("still after %v: %w", patience, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// get fetches a path and returns the answer and its body.
func (a *app) get(path string) (*http.Response, string) {
	a.t.Helper()
	req, err := http.NewRequest("GET", a.URL+path, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.do(req)
}

// do sends a request, without following redirects, and returns the answer and
// its body.
func (a *app) do(req *http.Request) (*http.Response, string) {
	a.t.Helper()
	resp, body, err := fetch(req)
	if err != nil {
		a.t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	return resp, body
}

// fetch is do for any goroutine. When only the body could not be read to its
// end, it returns the answer and what there was of the body with the error.
func fetch(req *http.Request) (*http.Response, string, error) {
	return fetchWithin(patience, req)
}

func fetchWithin(limit time.Duration, req *http.Request) (*http.Response, string, error) {
	client := http.Client{
		Timeout:       limit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		err = fmt.Errorf("read body: %w", err)
	}
	return resp, string(body), err
}

// request makes a request for a path. Pairs of header are a name and a value.
func (a *app) request(method, path, body string, header ...string) *http.Request {
	a.t.Helper()
	req, err := http.NewRequest(method, a.URL+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return req
}
