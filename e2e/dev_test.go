package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestDevServesThisDirectory(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Dev: true, Files: map[string]string{
		"index.php":  `<?php echo "first";`,
		"broken.php": `<?php echo $missing;`,
		"ephpm.toml": "[server]\nnonsense = true\n", // is not read
	}})
	a.waitLog(`(?m)^  ephpm \S+ with PHP 8\.\S+ serves ` + regexp.QuoteMeta(a.options.Root) + `$`)
	a.waitLog(`(?m)^  http://localhost:` + a.Addr[strings.LastIndexByte(a.Addr, ':')+1:] + `$`)
	if !strings.HasPrefix(a.Addr, "127.0.0.1:") {
		t.Errorf("it listens on %s, want this machine alone", a.Addr)
	}
	if err := wantBody(a.request("GET", "/", ""), "first"); err != nil {
		t.Error(err)
	}
	// An edit of the same length within the second shows at once.
	for _, text := range []string{"again", "third"} {
		if err := os.WriteFile(filepath.Join(a.options.Root, "index.php"), []byte(`<?php echo "`+text+`";`), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := wantBody(a.request("GET", "/", ""), text); err != nil {
			t.Error(err)
		}
	}
	if _, body := a.get("/broken.php"); !strings.Contains(body, "Undefined variable") {
		t.Errorf("an error is not in the page: %q", body)
	}
	if resp, _ := a.get("/ephpm.toml"); resp.StatusCode != 200 {
		t.Errorf("a file that is no configuration of this server: %s", resp.Status)
	}
	for _, line := range []string{`GET / 200`, `GET /broken\.php 200`, `GET /ephpm\.toml 200`} {
		a.waitLog(`(?m)^\d\d:\d\d:\d\d ` + line + ` [0-9.]+(ms|s|µs)$`)
	}
	if status := a.Stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

func TestDevTakesTheNextPortThatIsFree(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	a := startApp(t, appOptions{Dev: true, Files: map[string]string{"index.php": `fine`}, Args: []string{"-p", strconv.Itoa(port)}})
	var got int
	if _, err := fmt.Sscanf(a.Addr, "127.0.0.1:%d", &got); err != nil || got <= port || got >= port+50 {
		t.Errorf("it listens on %s, %v; want one of the 49 ports behind %d", a.Addr, err, port)
	}
	if err := wantBody(a.request("GET", "/", ""), "fine"); err != nil {
		t.Error(err)
	}
	command{Args: []string{"dev", "-l", taken.Addr().String()}}.want(t, 1,
		"error: listen on "+taken.Addr().String()+": another program has this port: stop it, or choose another with [server] listen")
}

func TestDevReadsTheEnvironment(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeFiles(t, root, map[string]string{"sub/index.php": `<?php echo ini_get('memory_limit');`})
	a := startApp(t, appOptions{Dev: true, Root: root, Env: []string{"EPHPM_SERVER__DOCUMENT_ROOT=sub", "EPHPM_PHP__MEMORY_LIMIT=77M"}})
	if err := wantBody(a.request("GET", "/", ""), "77M"); err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{{"-p", "x"}, {"-p", "65536"}, {"-c", "ephpm.toml"}} {
		if status, _, stderr := (command{Args: append([]string{"dev"}, args...)}).run(t); status != 2 || !strings.HasPrefix(stderr, "error: ephpm dev: ") {
			t.Errorf("ephpm dev %q: %d, %q", args, status, stderr)
		}
	}
}

func TestDevServesADirectoryOfSites(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Dev: true, Args: []string{"-p", "0", "-s", "sites"}, Files: map[string]string{
		"index.php":               `<?php echo "here";`,
		"sites/blog/index.php":    `<?php echo "blog";`,
		"sites/shop/index.php":    `<?php include 'lib/name.php';`, // from where open_basedir lets it
		"sites/shop/lib/name.php": `<?php echo "shop";`,
	}})
	for host, want := range map[string]string{"blog.localhost": "blog", "shop": "shop", "localhost": "here"} {
		r := a.request("GET", "/", "")
		r.Host = host
		if err := wantBody(r, want); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// With several sites a script on the command line must say which it means.
func TestCommandLineNamesASite(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	writeFiles(t, dir, map[string]string{"sites/blog.test/index.php": "blog", "a/index.php": "a"})
	startApp(t, appOptions{TOML: "[server]\ncontrol_socket = \"" + dir + "/c\"\nsites_dir = \"" + dir + "/sites\"\n[[site]]\nnames = [\"a.test\"]\nroot = \"" + dir + "/a\"\n"})
	const code = `try { echo ephpm_ws_count(); } catch (Error $e) { echo strstr($e->getMessage(), '/c: '); }`
	env := []string{"EPHPM_SERVER__CONTROL_SOCKET=" + dir + "/c"}
	for site, want := range map[string]string{
		"a.test": "0", "blog.test": "0", "": "/c: it has several sites, name one with --site: a.test", "x.test": `/c: it has no site "x.test", but a.test`,
	} {
		args := []string{"-r", code}
		if site != "" {
			args = append([]string{"--site", site}, args...)
		}
		phpRun{Dir: dir, Env: env, Args: args}.want(t, 0, want, "")
	}
}
