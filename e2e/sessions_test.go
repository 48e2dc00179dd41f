package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"testing"
)

// sessionsIn returns a configuration that keeps sessions in a directory of the
// test's own.
func sessionsIn(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("[php]\nini_overrides = [[\"session.save_path\", %q]]\n", t.TempDir())
}

const sessionScript = `<?php
	session_start();
	$_SESSION['n'] = isset($_SESSION['n']) ? $_SESSION['n'] + 1 : 0;
	if (isset($_GET['secret'])) $_SESSION['secret'] = $_GET['secret'];
	echo $_SESSION['n'], ' ', $_SESSION['secret'] ?? 'none';
	if (isset($_GET['exit'])) exit(1);`

// visitor returns a client with a cookie jar, as a browser.
func visitor(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, Timeout: patience}
}

// visit fetches a URL and returns the body.
func visit(c *http.Client, url string) (string, error) {
	resp, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestSessionLastsFromRequestToRequest(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: sessionsIn(t), Files: map[string]string{"index.php": sessionScript}})
	hundred(t, func(i int) error {
		c := visitor(t)
		for n := range 3 {
			want := fmt.Sprintf("%d s%d", n, i)
			if body, err := visit(c, fmt.Sprintf("%s/?secret=s%d", a.URL, i)); err != nil || body != want {
				return fmt.Errorf("visit %d: %q, %v; want %q", n, body, err, want)
			}
		}
		return nil
	})
}

// Also when the one that stored it left by exit(1), without closing the session.
func TestSessionIsNotSeenByOthers(t *testing.T) {
	t.Parallel()
	// One worker, so that whatever it keeps would be seen.
	a := startApp(t, appOptions{
		TOML:  sessionsIn(t) + "workers = 1\n",
		Files: map[string]string{"index.php": sessionScript},
	})
	for _, query := range []string{"", "&exit"} {
		if body, err := visit(visitor(t), a.URL+"/?secret=mine"+query); err != nil || body != "0 mine" {
			t.Fatalf("the owner got %q, %v", body, err)
		}
		for range 2 {
			if body, err := visit(visitor(t), a.URL+"/"); err != nil || body != "0 none" {
				t.Errorf("a stranger got %q, %v; want an empty session", body, err)
			}
		}
	}
}

func TestSessionOutlivesTheServer(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: sessionsIn(t), Files: map[string]string{"index.php": sessionScript}})
	c := visitor(t)
	if _, err := visit(c, a.URL+"/?secret=mine"); err != nil {
		t.Fatal(err)
	}
	a.Restart()
	if body, err := visit(c, a.URL+"/"); err != nil || body != "1 mine" {
		t.Errorf("behind a restart: %q, %v; want the same session", body, err)
	}
}

func TestSessionDirectoryThatIsMissingIsInTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	a := startApp(t, appOptions{
		TOML:  fmt.Sprintf("[php]\nini_overrides = [[\"session.save_path\", %q]]\n", dir),
		Files: map[string]string{"index.php": sessionScript},
	})
	a.get("/")
	a.waitLine(`msg="PHP message"`, `text="PHP Warning:  session_start\(\)`, `script=\S+index.php`, `request=\S+`)
}
