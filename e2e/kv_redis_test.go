package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// redisTOML serves the store to clients of Redis on a free port, and loads
// phpredis where Debian's configuration does not.
func redisTOML(t testing.TB) string {
	t.Helper()
	needDebian(t, "/etc/php/8.2/mods-available/redis.ini", "php8.2-redis")
	toml := "[kv.redis_compat]\nenabled = true\nlisten = \"127.0.0.1:0\"\n"
	if _, err := os.Stat("/etc/php/8.2/embed/conf.d/20-redis.ini"); err != nil {
		toml += "[php]\nextensions = [\"igbinary\", \"redis\"]\n"
	}
	return toml
}

// redisAddr is where clients of Redis are served.
func (a *app) redisAddr() string {
	a.t.Helper()
	return a.waitLog(`serving clients of Redis" on=([0-9.]+:[0-9]+)`)[1]
}

// redisCLI runs redis-cli and returns what it prints.
func redisCLI(t *testing.T, addr string, args ...string) string {
	t.Helper()
	needDebian(t, "/usr/bin/redis-cli", "redis-tools")
	host, port, _ := strings.Cut(addr, ":")
	cmd := exec.Command("redis-cli", append([]string{"-h", host, "-p", port, "--no-auth-warning"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("redis-cli %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// wantJSON fetches a page that answers with JSON and compares it, key by key.
func (a *app) wantJSON(target string, want map[string]any) {
	a.t.Helper()
	resp, body := a.getExactly(target)
	var got map[string]any
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		a.t.Fatalf("%s: %s: %v in %s", target, resp.Status, err, body)
	}
	text, err := json.Marshal(want)
	if err != nil {
		a.t.Fatal(err)
	}
	var same map[string]any
	if err := json.Unmarshal(text, &same); err != nil {
		a.t.Fatal(err)
	}
	for key := range same {
		if !reflect.DeepEqual(got[key], same[key]) {
			a.t.Errorf("%s: %s is %v, want %v", target, key, got[key], same[key])
		}
	}
	if len(got) != len(same) {
		a.t.Errorf("%s has %d results, want %d", target, len(got), len(same))
	}
}

type list = []any

func TestPhpredis(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, toml := range map[string]string{
		"open":     "",
		"password": "password = \"geheim\"\nsocket = \"" + filepath.Join(dir, "s") + "\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			settings := strings.Replace(redisTOML(t), "enabled = true\n", "enabled = true\n"+toml, 1)
			a := startApp(t, appOptions{Root: "testdata/kv", TOML: settings})
			targets := []string{"/phpredis.php"}
			if name == "password" {
				targets = append(targets, "/phpredis.php?socket")
			}
			for _, target := range targets {
				a.wantJSON(target, map[string]any{
					"ping":       true,
					"set":        list{true, "7800ff", false},
					"options":    list{true, false, true, true, true},
					"many":       list{true, list{"1", false, "2"}, 2, 0},
					"count":      list{1, 11, 10, 1.5},
					"text":       list{2, 4, "xy", 4, "axyz", true},
					"hash":       list{1, true, map[string]string{"f": "v", "g": "1", "i": "2"}, map[string]any{"f": "v", "none": false}, 6, 1, 2, list{"g", "i"}, true},
					"multi":      list{true, 2, "2"},
					"pipeline":   list{true, "1"},
					"watch":      false,
					"scan":       300,
					"hscan":      map[string]string{"g": "6", "i": "2"},
					"wrongtype":  list{false, "WRONGTYPE Operation against a key holding the wrong kind of value"},
					"eval":       list{true, 1, 0},
					"serializer": list{true, map[string]any{"a": list{1, 2.5, nil, true}}},
					"info":       true,
				})
			}
		})
	}
}

func TestPredis(t *testing.T) {
	t.Parallel()
	needDebian(t, "/usr/share/php/Predis/autoload.php", "php-nrk-predis")
	a := startApp(t, appOptions{Root: "testdata/kv", TOML: redisTOML(t)})
	a.wantJSON("/predis.php", map[string]any{
		"set":         list{"OK", "x", nil},
		"expire":      list{"OK", true, 1, 1},
		"hash":        list{1, map[string]string{"f": "v"}, list{"v", nil}},
		"pipeline":    list{1, 6},
		"transaction": list{7, "7"},
		"error":       "WRONGTYPE",
		"scan":        4,
	})
}

// Laravel's cache, locks and rate limiter, as Debian has them.
func TestLaravelOnRedis(t *testing.T) {
	t.Parallel()
	needDebian(t, "/usr/share/php/Illuminate/Cache/autoload.php", "php-illuminate-cache")
	needDebian(t, "/usr/share/php/Illuminate/Redis/autoload.php", "php-illuminate-redis")
	a := startApp(t, appOptions{Root: "testdata/kv", TOML: redisTOML(t)})
	for _, client := range []string{"phpredis", "predis"} {
		a.wantJSON("/laravel.php?client="+client, map[string]any{
			"put":      list{true, map[string]int{"x": 1}, "default", true, false},
			"add":      list{true, false, "first"},
			"many":     list{true, map[string]any{"c": "1", "d": "two", "e": nil}},
			"count":    list{1, 6, 5},
			"forever":  list{true, "v", "v", true, nil},
			"remember": list{"made", "made"},
			"lock":     list{true, false, false, true, true, true},
			"limiter":  list{1, 2, true, 3, true},
			"flush":    list{true, nil},
		})
	}
}

// Symfony's cache, locks and sessions, as Debian has them.
func TestSymfonyOnRedis(t *testing.T) {
	t.Parallel()
	needDebian(t, "/usr/share/php/Symfony/Component/Cache/autoload.php", "php-symfony-cache")
	needDebian(t, "/usr/share/php/Symfony/Component/Lock/autoload.php", "php-symfony-lock")
	a := startApp(t, appOptions{Root: "testdata/kv", TOML: redisTOML(t)})
	for _, client := range []string{"phpredis", "predis"} {
		a.wantJSON("/symfony.php?client="+client, map[string]any{
			"miss":      false,
			"save":      true,
			"hit":       list{true, map[string]int{"x": 1}, true},
			"commit":    list{true, "deferred"},
			"contract":  list{"made", "made"},
			"delete":    list{true, false},
			"clear":     list{true, false},
			"lock":      list{true, false, true, false},
			"refresh":   list{true, false, true},
			"released":  list{true, false},
			"shared":    list{true, true},
			"exclusive": false,
			"then":      list{true, false},
			"gone":      false,
			"session":   list{"", true, "data", true, true, ""},
		})
	}
}

// The sessions of phpredis with its locks: parallel increments lose nothing.
func TestPhpredisSessions(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: redisTOML(t), Files: map[string]string{"index.php": `<?php
		ini_set('session.save_handler', 'redis');
		ini_set('session.save_path', "tcp://{$_SERVER['EPHPM_REDIS_HOST']}:{$_SERVER['EPHPM_REDIS_PORT']}");
		ini_set('redis.session.locking_enabled', '1');
		ini_set('redis.session.lock_retries', '-1');
		ini_set('redis.session.lock_wait_time', '2000');
		session_start();
		$_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1;
		echo $_SESSION['n'];`}})
	c := visitor(t)
	if body, err := visit(c, a.URL); err != nil || body != "1" {
		t.Fatalf("the first visit: %q, %v", body, err)
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, err := visit(c, a.URL); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if body, err := visit(c, a.URL); err != nil || body != "12" {
		t.Errorf("after ten parallel visits: %q, %v, want 12", body, err)
	}
}

func TestRedisCLIAndBenchmark(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: redisTOML(t), Files: map[string]string{"index.php": ""}})
	addr := a.redisAddr()
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"SET", "k", "v"}, "OK"},
		{[]string{"GET", "k"}, "v"},
		{[]string{"-3", "HSET", "h", "f", "v"}, "1"},
		{[]string{"-3", "HGETALL", "h"}, "f v"},
		{[]string{"--scan", "--pattern", "k*"}, "k"},
		{[]string{"--no-raw", "INCR", "k"}, "(error) ERR value is not an integer or out of range"},
	} {
		if got := redisCLI(t, addr, step.args...); got != step.want {
			t.Errorf("redis-cli %q: %q, want %q", step.args, got, step.want)
		}
	}
	host, port, _ := strings.Cut(addr, ":")
	out, err := exec.Command("redis-benchmark", "-h", host, "-p", port, "-n", "2000", "-P", "8", "-q",
		"-t", "ping_inline,ping_mbulk,set,get,incr,hset,mset").CombinedOutput()
	if err != nil || strings.Count(string(out), "requests per second") < 7 {
		t.Errorf("redis-benchmark: %v\n%s", err, out)
	}
}

// With a secret the clients of each site have a password of their own, and find
// their site's keys alone.
func TestEachSiteHasItsKeys(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	page := `<?php echo $_SERVER['EPHPM_REDIS_USERNAME'], ' ', $_SERVER['EPHPM_REDIS_PASSWORD'];`
	writeFiles(t, root, map[string]string{"a/index.php": page, "b/index.php": page})
	toml := strings.Replace(redisTOML(t), "[kv.redis", "[kv]\nsecret = \"s3cret\"\n[kv.redis", 1)
	for _, name := range []string{"a", "b"} {
		toml += fmt.Sprintf("[[site]]\nnames = [%q]\nroot = %q\n", name+".example", filepath.Join(root, name))
	}
	a := startApp(t, appOptions{TOML: toml})
	addr := a.redisAddr()
	as := func(site string) []string {
		_, body := a.exchange("GET / HTTP/1.1\r\nHost: " + site + "\r\nConnection: close\r\n\r\n")
		user, password, _ := strings.Cut(body, " ")
		if user != site {
			t.Errorf("user of %s is %q", site, user)
		}
		return []string{"--user", user, "--pass", password}
	}
	one, two := as("a.example"), as("b.example")
	redisCLI(t, addr, append(one, "SET", "k", "of a")...)
	if got := redisCLI(t, addr, append(two, "GET", "k")...); got != "" {
		t.Errorf("site b finds %q", got)
	}
	if got := redisCLI(t, addr, append(one, "GET", "k")...); got != "of a" {
		t.Errorf("site a finds %q", got)
	}
	if got := redisCLI(t, addr, "GET", "k"); got != "NOAUTH Authentication required." {
		t.Errorf("nobody finds %q", got)
	}
	two[1] = "a.example"
	if got := redisCLI(t, addr, append(two, "GET", "k")...); !strings.Contains(got, "WRONGPASS") {
		t.Errorf("b as a: %q", got)
	}
}

// With a prefix what is published reaches the sockets of the site.
func TestPublishReachesSockets(t *testing.T) {
	t.Parallel()
	settings := strings.Replace(redisTOML(t), "enabled = true\n", "enabled = true\nwebsocket_prefix = \"ws:\"\n", 1)
	a := startPlay(t, settings)
	addr := a.redisAddr()
	s := a.join("", "")
	s.wantRun(`return ephpm_ws_subscribe('lobby');`, `true`)
	if got := redisCLI(t, addr, "PUBLISH", "lobby", "not for sockets"); got != "0" {
		t.Errorf("PUBLISH without the prefix reached %s", got)
	}
	if got := redisCLI(t, addr, "PUBLISH", "ws:lobby", "hällo"); got != "1" {
		t.Errorf("PUBLISH reached %s, want 1", got)
	}
	if got := s.recv(); got != "hällo" {
		t.Errorf("the socket got %q", got)
	}
}
