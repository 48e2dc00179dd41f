package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func snapshotTOML(t *testing.T, dir, interval string) string {
	return strings.Replace(redisTOML(t), "[kv.redis", fmt.Sprintf("[kv]\nsnapshot = %q\nsnapshot_interval_secs = %q\n[kv.redis", dir, interval), 1)
}

func TestKeysOutliveAStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := startApp(t, appOptions{TOML: snapshotTOML(t, dir, "0s"), Files: map[string]string{"index.php": ""}})
	redisCLI(t, a.redisAddr(), "SET", "k", "v", "EX", "1000")
	redisCLI(t, a.redisAddr(), "HSET", "h", "f", "v")
	a.Stop()
	a.start()
	if got := redisCLI(t, a.redisAddr(), "GET", "k"); got != "v" {
		t.Errorf("GET after a restart: %q, want v", got)
	}
	if got := redisCLI(t, a.redisAddr(), "HGET", "h", "f"); got != "v" {
		t.Errorf("HGET after a restart: %q, want v", got)
	}
}

// Killed in the middle of one snapshot or another, the server finds what the one
// before had.
func TestASnapshotSurvivesKills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := startApp(t, appOptions{TOML: snapshotTOML(t, dir, "1ms"), Files: map[string]string{"index.php": ""}})
	redisCLI(t, a.redisAddr(), "SET", "k", "v")
	redisCLI(t, a.redisAddr(), "SET", "large", strings.Repeat("x", 100_000))
	file := filepath.Join(dir, "default.kv")
	if err := eventually(func() error {
		info, err := os.Stat(file)
		if err == nil && info.Size() < 100_000 {
			err = fmt.Errorf("the snapshot has %d bytes", info.Size())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		a.Kill()
		a.start()
		if got := redisCLI(t, a.redisAddr(), "GET", "k"); got != "v" {
			t.Fatalf("GET after SIGKILL: %q, want v", got)
		}
	}
}

func TestABrokenSnapshotIsKeptAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"default.kv": "ephpm kv snapshot 1\nand then nothing that makes sense, but long enough"})
	a := startApp(t, appOptions{TOML: snapshotTOML(t, dir, "0s"), Files: map[string]string{"index.php": ""}})
	a.waitLog(`could not be loaded whole; its file is kept.*default\.kv\.[0-9]+.*checksum`)
	if got := redisCLI(t, a.redisAddr(), "DBSIZE"); got != "0" {
		t.Errorf("DBSIZE = %q, want 0", got)
	}
	aside, err := filepath.Glob(filepath.Join(dir, "default.kv.*"))
	if err != nil || len(aside) != 1 {
		t.Errorf("kept aside: %q, %v", aside, err)
	}
}
