package e2e

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// php runs code on a page and compares what it returns, as JSON.
func (p *play) php(code, want string) {
	p.t.Helper()
	if got := p.page(code); got != want {
		p.t.Errorf("%s\n returns %s\n want    %s", code, got, want)
	}
}

// phpInTime is php where the time limit may hit the code on a busy machine, which is
// run again then.
func (p *play) phpInTime(code, want string) {
	p.t.Helper()
	err := eventually(func() error {
		resp, body := p.do(p.request("POST", "/page.php", code))
		if resp.StatusCode == 504 {
			return errors.New(resp.Status)
		}
		if resp.StatusCode != 200 || body != want {
			p.t.Errorf("%s\n returns %s %s\n want    %s", code, resp.Status, body, want)
		}
		return nil
	})
	if err != nil {
		p.t.Errorf("%s: %v", code, err)
	}
}

func TestKVFunctions(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	for _, c := range []struct{ code, want string }{
		{`return [ephpm_kv_get('a'), ephpm_kv_set('a', '1'), ephpm_kv_get('a')];`, `[null,true,"1"]`},
		{`return [ephpm_kv_setnx('a', '2'), ephpm_kv_setnx('n', '2'), ephpm_kv_get('a'), ephpm_kv_get('n')];`, `[false,true,"1","2"]`},
		{`return [ephpm_kv_exists('a'), ephpm_kv_exists('no'), ephpm_kv_del('a', 'n', 'no'), ephpm_kv_get('a')];`, `[true,false,2,null]`},
		{`return [ephpm_kv_incr('c'), ephpm_kv_incr('c'), ephpm_kv_incr_by('c', 40), ephpm_kv_decr('c'), ephpm_kv_get('c')];`, `[1,2,42,41,"41"]`},
		{`ephpm_kv_set('x', 'text'); return [ephpm_kv_incr('x'), ephpm_kv_get('x')];`, `[false,"text"]`},
		{`ephpm_kv_set('m', (string) PHP_INT_MAX); return [ephpm_kv_incr('m'), ephpm_kv_get('m') === (string) PHP_INT_MAX];`, `[false,true]`},
		{`return [ephpm_kv_ttl('x'), ephpm_kv_ttl('no'), ephpm_kv_expire('x', 100), in_array(ephpm_kv_ttl('x'), range(50, 100), true), ephpm_kv_pttl('x') > 50000];`, `[-1,-2,true,true,true]`},
		{`return [ephpm_kv_expire('x', 0), ephpm_kv_expire('x', -5), ephpm_kv_expire('no', 5), ephpm_kv_get('x')];`, `[false,false,false,"text"]`},
		{`return [ephpm_kv_mset(['k1' => 'v1', 'k2' => 2, 7 => 'seven']), ephpm_kv_mget(['k1', 'k2', 'gone', '7'])];`,
			`[true,{"k1":"v1","k2":"2","gone":null,"7":"seven"}]`},
		{`return [ephpm_kv_getset('k1', 'new'), ephpm_kv_getset('fresh', 'f'), ephpm_kv_get('k1')];`, `["v1",null,"new"]`},
		{`return [ephpm_kv_append('k1', 'er'), ephpm_kv_append('app', 'x'), ephpm_kv_get('k1')];`, `[5,1,"newer"]`},
		{`return [ephpm_kv_hset('h', 'f', 'v'), ephpm_kv_hset('h', 'g', 'w'), ephpm_kv_hget('h', 'f'), ephpm_kv_hget('h', 'no'),
			ephpm_kv_hgetall('h'), ephpm_kv_hincrby('h', 'n', 3), ephpm_kv_hdel('h', 'f', 'no'), ephpm_kv_hgetall('none')];`,
			`[true,true,"v",null,{"f":"v","g":"w"},3,1,[]]`},
		{`return [ephpm_kv_cas('cas', null, 'a'), ephpm_kv_cas('cas', null, 'b'), ephpm_kv_cas('cas', 'a', 'b'), ephpm_kv_cas('cas', 'a', 'c'), ephpm_kv_get('cas')];`,
			`[true,false,true,false,"b"]`},
		{`$t = ephpm_kv_lock('l', 60); return [is_string($t), ephpm_kv_lock('l', 60), ephpm_kv_lock('l', 60, 0.05), ephpm_kv_unlock('forged'), ephpm_kv_unlock($t), ephpm_kv_unlock($t)];`,
			`[true,false,false,false,true,false]`},
		{`$v = ephpm_kv_wait('w', 0, 0); ephpm_kv_set('w', 'now'); $w = ephpm_kv_wait('w', $v['version'], 10000);
			return [$v, $w['value'], $w['version'] > 0, ephpm_kv_wait('w', $w['version'], 20)];`,
			`[{"version":0,"value":null},"now",true,false]`},
		{`return ephpm_kv_flush_all() && ephpm_kv_scan() === ['keys' => [], 'cursor' => 0];`, `true`},
	} {
		a.php(c.code, c.want)
	}
}

func TestKVKeepsAnyBytes(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	a.php(`$k = "a\0b\xff"; $v = random_bytes(300000) . "\0";
		ephpm_kv_set($k, $v); ephpm_kv_set("a", "other"); ephpm_kv_set("", "empty key");
		return [ephpm_kv_get($k) === $v, ephpm_kv_get("a"), ephpm_kv_get(""), ephpm_kv_mget([$k])[$k] === $v,
			ephpm_kv_getset($k, '') === $v, ephpm_kv_get($k)];`,
		`[true,"other","empty key",true,true,""]`)
	// Answers of any length come whole, over a hash as well.
	a.php(`foreach (range(1, 200) as $i) { ephpm_kv_hset('big', "f$i", str_repeat(chr($i), 5000)); }
		$all = ephpm_kv_hgetall('big'); return [count($all), $all['f77'] === str_repeat(chr(77), 5000)];`, `[200,true]`)
}

func TestKVRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[kv]\nmemory_limit = \"1MB\"\n")
	try := func(code string) string {
		return `try { ` + code + `; return 'no exception'; } catch (\Throwable $e) { return get_class($e) . ': ' . $e->getMessage(); }`
	}
	a.page(`ephpm_kv_set('text', 'x'); ephpm_kv_hset('hash', 'f', 'v'); return 1;`)
	for _, c := range []struct{ code, want string }{
		{`ephpm_kv_get('hash')`, `"Exception: ephpm_kv_get(): the key holds a hash"`},
		{`ephpm_kv_hget('text', 'f')`, `"Exception: ephpm_kv_hget(): the key holds no hash"`},
		{`ephpm_kv_set('k', 'v', -1)`, `"ValueError: ephpm_kv_set(): the TTL is out of range"`},
		{`ephpm_kv_set('k', 'v', PHP_INT_MAX)`, `"ValueError: ephpm_kv_set(): the TTL is out of range"`},
		{`ephpm_kv_set(str_repeat('k', 65536), 'v')`, `"ValueError: ephpm_kv_set(): a key may have 65535 bytes and a value 536870912"`},
		{`ephpm_kv_lock('l', 0)`, `"ValueError: ephpm_kv_lock(): $ttl must be above 0, and $wait not below"`},
		{`ephpm_kv_lock(str_repeat('k', 65536), 1)`, `"ValueError: ephpm_kv_lock(): a key may have 65535 bytes and a value 536870912"`},
		{`ephpm_kv_del(...array_fill(0, 65536, 'k'))`, `"Error: ephpm_kv_del() cannot reach the server: it has more than 65535 arguments"`},
		{`ephpm_kv_hdel('hash', ...array_fill(0, 65535, 'k'))`, `"Error: ephpm_kv_hdel() cannot reach the server: it has more than 65535 arguments"`},
		{`ephpm_kv_set('long', str_repeat('x', 500000)); ephpm_kv_mget(array_fill(0, 65535, 'long'))`,
			`"Exception: ephpm_kv_mget(): the values have more than 67108864 bytes together"`},
		{`ephpm_kv_del('long'); ephpm_kv_scan('', 0, 0)`, `"ValueError: ephpm_kv_scan(): Argument #3 ($limit) must be 1 to 10000, 0 given"`},
		{`ini_set('session.save_handler', 'ephpm'); session_id('dddd'); ephpm_kv_hset('session:dddd', 'f', 'v'); session_start()`,
			`"Exception: session_start(): the key holds a hash"`},
		{`ephpm_kv_get()`, `"ArgumentCountError: ephpm_kv_get() expects exactly 1 argument, 0 given"`},
		{`ephpm_kv_del('a', [])`, `"TypeError: ephpm_kv_del(): Argument #2 must be of type string, array given"`},
	} {
		a.php(try(c.code), c.want)
	}
	a.php(`ephpm_kv_set('kept', 'old'); return [ephpm_kv_set('kept', str_repeat('x', 2 << 20)), ephpm_kv_get('kept')];`, `[false,"old"]`)
}

// What is too long for an answer, or for a call, is not lost and breaks nothing.
func TestKVKeepsWhatIsTooLongToReturn(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[php]\nini_overrides = [[\"memory_limit\", \"400M\"]]\n")
	a.php(`$part = str_repeat('x', 40 << 20); ephpm_kv_set('long', $part); ephpm_kv_append('long', $part); unset($part);
		try { $got = ephpm_kv_getset('long', 'new'); } catch (Exception $e) { $got = $e->getMessage(); }
		return [$got, ephpm_kv_append('long', '')];`, `["ephpm_kv_getset(): the value before has more than 67108859 bytes",83886080]`)
	a.php(`ephpm_kv_del('long'); $said = []; set_error_handler(function ($_, $text) use (&$said) { $said[] = $text; return true; });
		`+sessionPage(`$_SESSION['kept'] = 1; session_write_close();
		session_start(); $_SESSION['long'] = str_repeat('x', 65 << 20); session_write_close(); unset($_SESSION);
		session_start(); return [$said[0], count($said), $_SESSION];`), `["session_write_close(): The session has more than 64 MiB",2,{"kept":1}]`)
	a.php(`$said = []; set_error_handler(function ($_, $text) use (&$said) { $said[] = $text; return true; });
		ini_set('session.save_handler', 'ephpm'); session_id('longlonglonglonglonglonglong');
		$part = str_repeat('x', 40 << 20); ephpm_kv_set('session:longlonglonglonglonglonglong', $part); ephpm_kv_append('session:longlonglonglonglonglonglong', $part);
		return [session_start(), count($said)];`, `[false,1]`)
}

// The TTL of a key ends for readers of the shared memory too.
func TestKVKeysExpire(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	a.php(`do { // a busy machine may take longer than the second
			$start = hrtime(true); ephpm_kv_set('brief', 'v', 1); $v = ephpm_kv_get('brief');
		} while ($v === null && hrtime(true) - $start >= 1e9);
		ephpm_kv_wait('brief', ephpm_kv_wait('brief', 0, 0)['version'], 60000);
		return [$v, ephpm_kv_get('brief'), ephpm_kv_ttl('brief')];`, `["v",null,-2]`)
}

// By Redis's commands a key has a TTL to the millisecond. A worker that reads the
// shared memory sees the key before that, and not from then on.
func TestKVKeysExpireToTheMillisecond(t *testing.T) {
	t.Parallel()
	a := startPlay(t, redisTOML(t))
	a.php(`$redis = new Redis(); $redis->connect($_SERVER['EPHPM_REDIS_HOST'], (int) $_SERVER['EPHPM_REDIS_PORT']);
		$now = fn() => (int) floor(microtime(true) * 1000);
		$late = $early = $seen = 0;
		for ($i = 0; $i < 30 || $seen === 0 && $i < 1000; $i++) {
			$at = $now() + 10 + $i % 7;
			$redis->rawCommand('SET', 'k', 'v', 'PXAT', $at);
			do {
				$before = $now(); $v = ephpm_kv_get('k'); $after = $now();
				$seen += $v !== null;
				$late += $v !== null && $before >= $at;
				$early += $v === null && $after < $at;
			} while ($before < $at + 3);
		}
		return [$late, $early, $seen > 0];`, `[0,0,true]`)
}

// Workers read while others write: a value is one that was stored, whole.
func TestKVReadsAreWhole(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[php]\nworkers = 4\n")
	a.page(`ephpm_kv_set('v', str_repeat('a', 1000)); return 1;`)
	var wg sync.WaitGroup
	wg.Go(func() {
		a.page(`foreach (range(1, 3000) as $i) { ephpm_kv_set('v', str_repeat(chr(97 + $i % 26), 100 + $i % 7000)); } return 1;`)
	})
	for range 2 {
		wg.Go(func() {
			a.php(`$bad = 0; $end = microtime(true) + 1;
				do { $v = ephpm_kv_get('v'); if ($v === null || $v === '' || $v !== str_repeat($v[0], strlen($v))) { $bad++; } } while (microtime(true) < $end);
				return $bad;`, `0`)
		})
	}
	wg.Wait()
}

func TestKVReadsAreCounted(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	a.page(`ephpm_kv_set('v', '1'); foreach (range(1, 500) as $i) { ephpm_kv_get('v'); } ephpm_kv_get('gone'); return 1;`)
	a.waitMetric("ephpm_kv_hits_total", 500)
	a.waitMetric("ephpm_kv_misses_total", 1)
}

// A wait holds its worker no longer than its time, and ends with its script.
func TestKVWaitEndsWithItsScript(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.timeouts]\nrequest = 1\nrequest_grace = 1\n[php]\nworkers = 1\n")
	for _, code := range []string{`ephpm_kv_wait('never', 0, 3600000);`, `ephpm_kv_lock('l', 60); ephpm_kv_lock('l', 60, 3600);`} {
		resp, _ := a.do(a.request("POST", "/page.php", code))
		if resp.StatusCode != 504 {
			t.Errorf("%s: status %d, want 504", code, resp.StatusCode)
		}
	}
	a.phpInTime(`return ephpm_kv_set('after', '1');`, `true`)
}

// A stop does not wait for what may never come: both say what they say when their
// time is over, also when a script tries again.
func TestKVWaitsEndWithTheServer(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.timeouts]\nshutdown = 600\n[php]\nworkers = 2\n")
	wait := a.later(a.request("POST", "/page.php", `return [ephpm_kv_wait('never', 0, 3600000), ephpm_kv_wait('never', 0, 3600000)];`))
	lock := a.later(a.request("POST", "/page.php", `ephpm_kv_lock('l', 600); return ephpm_kv_lock('l', 600, 3600);`))
	a.waitMetric("ephpm_kv_waiters", 1)
	a.waitMetric("ephpm_kv_locks", 2) // held, and waited for
	a.signal(syscall.SIGTERM)
	if _, body := wait.wait(); body != "[false,false]" {
		t.Errorf("ephpm_kv_wait at a stop: %s, want false", body)
	}
	if _, body := lock.wait(); body != "false" {
		t.Errorf("ephpm_kv_lock at a stop: %s, want false", body)
	}
	if status := a.waitExit(); status != 0 {
		t.Errorf("the server ended with status %d", status)
	}
}

func TestKVWaitSeesAnotherRequest(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[php]\nworkers = 2\n")
	waiting := a.later(a.request("POST", "/page.php", `return ephpm_kv_wait('news', 0, 600000)['value'];`))
	a.waitMetric("ephpm_kv_waiters", 1)
	a.page(`ephpm_kv_set('news', 'here'); return 1;`)
	if _, body := waiting.wait(); body != `"here"` {
		t.Errorf("the wait returned %s", body)
	}
}

// sessionPage runs code with a session of the store open.
func sessionPage(code string) string {
	return `ini_set('session.save_handler', 'ephpm'); ini_set('session.use_strict_mode', '0');
		session_id('0123456789abcdef0123456789'); session_start(); ` + code
}

func TestSessionsInTheStore(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[php]\nworkers = 4\n")
	a.php(sessionPage(`$_SESSION['n'] = 1; $_SESSION['bytes'] = "\0\xff"; return session_module_name();`), `"ephpm"`)
	a.php(sessionPage(`return [$_SESSION['n'], bin2hex($_SESSION['bytes'])];`), `[1,"00ff"]`)

	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { a.page(sessionPage(`$n = $_SESSION['n']; usleep(20000); $_SESSION['n'] = $n + 1; return 1;`)) })
	}
	wg.Wait()
	a.php(sessionPage(`return $_SESSION['n'];`), `11`)

	a.php(`ini_set('session.save_handler', 'ephpm'); session_id('0123456789abcdef0123456789');
		session_start(['read_and_close' => true]); $t = ephpm_kv_ttl('session:0123456789abcdef0123456789');
		return [$_SESSION['n'], $t > 0 && $t <= (int) ini_get('session.gc_maxlifetime')];`, `[11,true]`)
	a.php(sessionPage(`$old = session_id(); session_regenerate_id(true); $new = session_id(); session_write_close();
		return [$old !== $new, ephpm_kv_exists("session:$old"), ephpm_kv_exists("session:$new")];`), `[true,false,true]`)
	a.php(sessionPage(`$_SESSION['x'] = 1; session_destroy(); return ephpm_kv_exists('session:0123456789abcdef0123456789');`), `false`)
	a.php(`ini_set('session.save_handler', 'ephpm'); ini_set('session.use_strict_mode', '1');
		session_id('aaaaaaaaaaaaaaaaaaaaaaaaaa'); session_start(); return session_id() !== 'aaaaaaaaaaaaaaaaaaaaaaaaaa';`, `true`)
}

// However a request ends, the next one gets its session.
func TestSessionLockEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.timeouts]\nrequest = 2\nrequest_grace = 0\n[php]\nworkers = 2\n")
	for _, end := range []string{
		`exit;`, `throw new Exception('x');`, `posix_kill(getmypid(), 9);`, `while (true) { usleep(1000); }`,
		`fastcgi_finish_request(); return 1;`, `nowhere();`,
	} {
		resp, _ := a.do(a.request("POST", "/page.php", sessionPage(`$_SESSION['x'] = 1; `+end)))
		if resp.StatusCode == 404 {
			t.Fatalf("%s: %s", end, resp.Status)
		}
		a.phpInTime(sessionPage(`return session_status() === PHP_SESSION_ACTIVE;`), `true`)
	}
}

func TestStoreIsReachedFromEvents(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	s := a.join(`ephpm_kv_set('connected', $_SERVER['WS_CONNECTION_ID']); ephpm_ws_send((string) ephpm_kv_get('connected'));`, "")
	if got := s.recv(); len(got) != 32 || got != strings.Trim(a.page(`return ephpm_kv_get('connected');`), `"`) {
		t.Errorf("the event stored %q", fmt.Sprint(got))
	}
}

// A script on the command line has the store and the sessions of the server.
func TestCommandLineReachesTheStore(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	a := startApp(t, appOptions{
		TOML: "[server]\ncontrol_socket = \"" + dir + "/control\"\n",
		Files: map[string]string{"index.php": `<?php ini_set('session.save_handler', 'ephpm'); session_id('0123456789abcdef0123456789');
			session_start(); echo ephpm_kv_get('from'), ' ', $_SESSION['from'] ?? 'none';`},
	})
	writeFiles(t, dir, map[string]string{"ephpm.toml": "[server]\ncontrol_socket = \"control\"\n"})
	phpRun{Dir: dir, Args: []string{"-d", "session.save_handler=ephpm", "-d", "session.use_cookies=0", "-d", "session.cache_limiter=", "-r", `
		ephpm_kv_set('from', 'cron'); $big = str_repeat('x', 200000); ephpm_kv_set('big', $big);
		session_id('0123456789abcdef0123456789'); session_start(); $_SESSION['from'] = 'cron'; session_write_close();
		echo ephpm_kv_get('from'), ' ', ephpm_kv_get('big') === $big ? 'whole' : 'cut', ' ', count(ephpm_kv_mget(['from', 'no'])), "\n";`,
	}}.want(t, 0, "cron whole 2\n", "")
	if _, body := a.get("/"); body != "cron cron" {
		t.Errorf("the server has %q, want what the script stored", body)
	}
}
