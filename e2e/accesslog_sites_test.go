package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// A site's lines are in its own file, which SIGUSR1 opens anew as well; what is no
// site's, and sites without a file, are in that of all.
func TestSitesHaveAccessLogsOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := startSites(t, `
[server.logging]
access = "$dir/all.log"
access_format = "json"
[[site]]
names = ["a.example"]
root = "$dir/sites/a"
logging = { access = "$dir/a.log", access_format = "combined" }
[[site]]
names = ["b.example"]
root = "$dir/sites/b"
[[site]]
names = ["c.example"]
root = "$dir/sites/c"
logging = { access = "off" }
`, map[string]string{
		"a/index.php": `<?php echo "a";`, "b/index.php": `<?php echo "b";`, "c/index.php": `<?php echo "c";`,
		"a/websocket.php": `<?php`,
	})
	hundred(t, func(i int) error {
		host := string(rune('a'+i%3)) + ".example"
		return s.wantSite(host, fmt.Sprintf("/?i=%d", i), host[:1])
	})
	s.want("stranger.example", "/?stranger", 404, "")
	s.join("a.example").close()
	own, all := filepath.Join(s.dir, "a.log"), filepath.Join(s.dir, "all.log")
	waitAccessFile(t, own, `"CLOSE / HTTP/1\.1" 1000 `)
	for _, file := range []string{own, all} {
		if err := os.Rename(file, file+".1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(s.PID(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{own, all} {
		s.waitLog(`msg="access log opened anew" file=` + regexp.QuoteMeta(file))
	}
	for _, host := range []string{"a", "b", "c"} {
		s.want(host+".example", "/?again", 200, host)
	}
	s.Stop() // nothing is lost
	count := func(file, pattern string) int {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return len(regexp.MustCompile(`(?m)`+pattern).FindAll(text, -1))
	}
	for _, want := range []struct {
		file, pattern string
		n             int
	}{
		{own + ".1", `^127\.0\.0\.1 - - \[.*\] "GET /\?i=\d+ HTTP/1\.1" 200 1 `, 34},
		{own + ".1", `^.`, 36}, // with the socket's beginning and its end
		{own, `"GET /\?again HTTP`, 1},
		{own, `^.`, 1},
		{all + ".1", `^\{.*"site":"b\.example".*"target":"/\?i=\d+"`, 33},
		{all + ".1", `^\{.*"target":"/\?stranger"`, 1},
		{all + ".1", `^.`, 34},
		{all, `^\{.*"site":"b\.example".*"target":"/\?again"`, 1},
		{all, `^.`, 1},
	} {
		if n := count(want.file, want.pattern); n != want.n {
			t.Errorf("%s has %d lines with %s, want %d", filepath.Base(want.file), n, want.pattern, want.n)
		}
	}
}

func TestOneAccessLogHasOneFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"a/index.php": "", "ephpm.toml": `[server.logging]
access = "access.log"
[[site]]
names = ["a.example"]
root = "a"
[site.logging]
access = "./a/../access.log"
access_format = "json"
`})
	out, err := exec.Command(binary, "config", "check", "-c", filepath.Join(dir, "ephpm.toml")).CombinedOutput()
	want := `site[1].logging.access_format: "json" is not the format "combined" that the same file has by server.logging.access`
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%v: %s; want %s", err, out, want)
	}
}
