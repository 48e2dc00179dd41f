package e2e

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// storePage remembers who called first at its site, in the store and in a session
// of it.
const storePage = `<?php
ini_set('session.save_handler', 'ephpm');
session_id('0123456789abcdef0123456789');
session_start();
$_SESSION['first'] ??= $_GET['i'];
ephpm_kv_setnx('first', $_GET['i']);
echo ephpm_kv_get('first'), ' ', $_SESSION['first'], ' ', count(ephpm_kv_scan()['keys']);`

// Sites reach their own keys, whether they share workers, have their own or are a
// directory.
func TestSitesHaveStoresOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := startSites(t, `
[server]
sites_dir = "$dir/sites/dir"
sites_state_dir = "$dir/state"
[kv]
memory_limit = "8MB"
snapshot = "$dir/sites/kv"
[[site]]
names = ["a.example"]
root = "$dir/sites/a"
[[site]]
names = ["b.example"]
root = "$dir/sites/b"
[[site]]
names = ["own.example"]
root = "$dir/sites/own"
isolation = "process"
workers = 1
`, map[string]string{"a/index.php": storePage, "b/index.php": storePage, "own/index.php": storePage,
		"kv/README": "saved keys", "dir/c.example/index.php": storePage, "dir/d.example/index.php": storePage})
	hosts := []string{"a.example", "b.example", "own.example", "c.example", "d.example"}
	for i, host := range hosts {
		s.want(host, fmt.Sprint("/?i=", i), 200, fmt.Sprintf("%d %[1]d 1", i))
		s.want(host, fmt.Sprint("/?i=again", i), 200, fmt.Sprintf("%d %[1]d 2", i)) // its session is a key, written at the end
	}
	// A directory that goes and comes back has what was saved.
	dir := filepath.Join(s.dir, "sites", "dir", "c.example")
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	s.waitLog(`msg="site removed" site=c.example`)
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if err := eventually(func() error {
		if _, body := s.ask("c.example", "/?i=back"); body != "3 3 2" {
			return fmt.Errorf("it says %q", body)
		}
		return nil
	}); err != nil {
		t.Errorf("a site that came back: %v", err)
	}
	s.want("d.example", "/?i=x", 200, "4 4 2")
}

// A directory is a site for clients of Redis too, even before its first page, and
// its password opens nothing else. When it goes, they go.
func TestDirectoriesHaveRedisClients(t *testing.T) {
	t.Parallel()
	s := startSites(t, `
[server]
document_root = "$dir/sites/root"
sites_dir = "$dir/sites/dir"
sites_state_dir = "$dir/state"
[kv]
memory_limit = "8MB"
secret = "s3cret"
[kv.redis_compat]
enabled = true
listen = "127.0.0.1:0"
`, map[string]string{"root/index.php": `<?php echo ephpm_kv_get('k');`,
		"dir/c.example/index.php": `<?php echo $_SERVER['EPHPM_REDIS_USERNAME'], ' ', $_SERVER['EPHPM_REDIS_PASSWORD'], ' ', ephpm_kv_get('k');`})
	m := hmac.New(sha256.New, []byte("s3cret"))
	m.Write([]byte("c.example"))
	password := hex.EncodeToString(m.Sum(nil))
	as := []string{"--user", "c.example", "--pass", password}
	if got := redisCLI(t, s.redisAddr(), append(as, "SET", "k", "of c")...); got != "OK" {
		t.Errorf("SET before the first page: %q", got)
	}
	s.want("c.example", "/", 200, "c.example "+password+" of c")
	if resp, body := s.ask("elsewhere.example", "/"); resp.StatusCode != 200 || body != "" {
		t.Errorf("the document root finds %q (%d)", body, resp.StatusCode)
	}
	conn, err := net.Dial("tcp", s.redisAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // it is over then
	if _, err := fmt.Fprintf(conn, "AUTH c.example %s\r\n", password); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	r := bufio.NewReader(conn)
	if line, err := r.ReadString('\n'); line != "+OK\r\n" {
		t.Fatalf("AUTH: %q %v", line, err)
	}
	if err := os.RemoveAll(filepath.Join(s.dir, "sites", "dir", "c.example")); err != nil {
		t.Fatal(err)
	}
	if line, err := r.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Errorf("after its site: %q %v, want the end of the connection", line, err)
	}
	if got := redisCLI(t, s.redisAddr(), append(as, "GET", "k")...); !strings.Contains(got, "WRONGPASS") {
		t.Errorf("without its site: %q, want no entry, least of all to the document root", got)
	}
}
