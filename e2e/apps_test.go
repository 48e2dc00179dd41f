package e2e

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// The applications are Debian's packages, copied because they are configured in
// their own directory and because links out of a document root are refused.

// startsApplication is called first by a test with a whole application.
func startsApplication(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("whole applications run once, without the race detector: smaller tests take every way that they take")
	}
}

// copyPackage copies the directory that a Debian package installed, with what
// its symbolic links lead to, and returns the copy.
func copyPackage(t testing.TB, dir, pkg string) string {
	t.Helper()
	needDebian(t, dir, pkg)
	to := filepath.Join(t.TempDir(), filepath.Base(dir))
	if out, err := exec.Command("cp", "-RL", dir, to).CombinedOutput(); err != nil {
		t.Fatalf("copy %s: %v\n%s", dir, err, out)
	}
	return to
}

// needDebian fails the test when a file of a Debian package is not there.
func needDebian(t testing.TB, file, pkg string) {
	t.Helper()
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("%v; install it with: apt-get install --no-install-recommends %s", err, pkg)
	}
}

// replaceIn replaces a text that must occur in a file.
func replaceIn(t testing.TB, file, old, with string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("%s has no %q", file, old)
	}
	writeFiles(t, filepath.Dir(file), map[string]string{
		filepath.Base(file): strings.ReplaceAll(string(text), old, with),
	})
}

// startMariaDB starts a database server of its own, which runs the statements of
// setup, and returns the path of its socket. It ends with the test.
func startMariaDB(t testing.TB, setup ...string) string {
	t.Helper()
	const server, install = "/usr/sbin/mariadbd", "/usr/bin/mariadb-install-db"
	needDebian(t, server, "mariadb-server-core")
	needDebian(t, install, "mariadb-server-core")

	// The path of a socket has a limit, so the directory has a short name.
	dir, err := os.MkdirTemp("", "ephpm-db-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "socket")
	writeFiles(t, dir, map[string]string{"setup.sql": strings.Join(setup, ";\n") + ";\n"})

	common := []string{"--no-defaults", "--datadir=" + data}
	if os.Getuid() == 0 {
		common = append(common, "--user=root") // it refuses to be root unasked
	}
	args := append(common[:len(common):len(common)], "--auth-root-authentication-method=normal", "--skip-test-db")
	if out, err := exec.Command(install, args...).CombinedOutput(); err != nil {
		t.Fatalf("mariadb-install-db: %v\n%s", err, out)
	}

	log := newOutputLog()
	cmd := exec.Command(server, append(common, "--skip-networking", "--socket="+socket,
		"--pid-file="+filepath.Join(dir, "pid"), "--init-file="+filepath.Join(dir, "setup.sql"))...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start mariadbd: %v", err)
	}
	exited := make(chan struct{})
	go func() { // ended by the process, for which the cleanup waits
		defer close(exited)
		_ = cmd.Wait() // it is told to end
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		select {
		case <-exited:
		case <-time.After(patience):
			t.Errorf("mariadbd did not end within %v; its log:\n%s", patience, log)
			_ = cmd.Process.Kill() // it may end by itself at this moment
			<-exited
		}
	})

	// It listens after it ran the statements.
	err = eventually(func() error {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		t.Fatalf("mariadbd does not listen: %v; its log:\n%s", err, log)
	}
	return socket
}

// checkPHPLog fails the test when PHP complained about the application.
func (a *app) checkPHPLog() {
	a.t.Helper()
	for line := range strings.Lines(a.Log()) {
		for _, trouble := range []string{"Fatal error", "Parse error", "worker died"} {
			if strings.Contains(line, trouble) {
				a.t.Errorf("the server's log has: %s", line)
			}
		}
	}
}

// visit opens a page in the tab.
func (b *tab) visit(url string) {
	b.t.Helper()
	b.do("open "+url, chromedp.Navigate(url))
}

// choose puts a file into an input that a CSS selector finds.
func (b *tab) choose(selector, file string) {
	b.t.Helper()
	b.do("choose a file for "+selector,
		chromedp.SetUploadFiles(chromedp.CSS(selector), []string{file}, chromedp.NodeReady))
}

// refill replaces the text of a field that a CSS selector finds. Scripts of the
// page have not changed it then.
func (b *tab) refill(selector, text string) {
	b.t.Helper()
	b.do("wait for "+selector, chromedp.WaitVisible(chromedp.CSS(selector)))
	b.run("document.querySelector(" + strconv.Quote(selector) + ").select()") // and focus
	b.keys(text)
	if got := b.value(selector); got != text {
		b.t.Fatalf("%s has %q, want %q", selector, got, text)
	}
}

// press presses the button that a CSS selector finds, by keyboard: it may still
// move.
func (b *tab) press(selector string) {
	b.t.Helper()
	button := chromedp.CSS(selector)
	b.do("press "+selector, chromedp.WaitVisible(button), chromedp.WaitEnabled(button), chromedp.Focus(button), chromedp.KeyEvent("\r"))
}

// keys types into whatever has the focus.
func (b *tab) keys(text string) {
	b.t.Helper()
	b.do(fmt.Sprintf("type %q", text), chromedp.KeyEvent(text))
}

// picture keeps a screenshot with the test's artifacts, and in the documentation
// when it is of the few there and -update is given.
func (b *tab) picture(t *testing.T, name string, documented bool) {
	t.Helper()
	file := filepath.Join(t.ArtifactDir(), name)
	if documented && *update {
		file = filepath.Join("../docs", name)
	}
	b.wait(`document.getAnimations().every((a) => a.playState !== 'running') && [...document.images].every((i) => i.complete)`)
	b.screenshot(file)
}

// writePhoto writes a picture of the evening sky over the sea.
func writePhoto(t testing.TB, file string, width, height int) {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := color.RGBA{uint8(40 + 190*y/height), uint8(60 + 70*y/height), uint8(130 - 60*y/height), 255}
			if dx, dy := x-width*7/10, y-height*6/10; dx*dx+dy*dy < height*height/50 {
				c = color.RGBA{255, 225, 150, 255}
			}
			wave := x%(width/4) - width/8
			if y > height*8/10+wave*wave*height/(width*width/4) {
				c = color.RGBA{25, 30, 50, 255}
			}
			m.SetRGBA(x, y, c)
		}
	}
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(f, m); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// attribute returns an attribute of the first element that a CSS selector finds.
func (b *tab) attribute(selector, name string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.AttributeValue(chromedp.CSS(selector), name))
	if err != nil {
		b.t.Fatalf("%s of %s: %v", name, selector, err)
	}
	return got.Value
}

// run runs JavaScript in the page and waits for what it promises.
func (b *tab) run(script string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[chromedp.Void]("(async () => { await ("+script+") })()", chromedp.EvalAwaitPromise)); err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
}

// value returns what the field that a CSS selector finds holds.
func (b *tab) value(selector string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.Value(chromedp.CSS(selector)))
	if err != nil {
		b.t.Fatalf("value of %s: %v", selector, err)
	}
	return got
}
