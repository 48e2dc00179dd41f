package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// isolationProbe tries to leave its site in the ways that open_basedir and the
// hardening are there to prevent.
const isolationProbe = `<?php
$secret = $_GET['secret'];
session_start();
$_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1;
$tmp = tempnam(sys_get_temp_dir(), 'x');
echo json_encode([
	'read' => @file_get_contents($secret) !== false,
	'include' => (@include $secret) !== false || isset($password),
	'list' => @scandir(dirname($secret)) !== false,
	'include_self' => (include __DIR__ . '/lib.php') === 'lib',
	'functions' => array_values(array_filter(['exec', 'system', 'mail', 'fsockopen', 'posix_kill', 'opcache_get_status', 'dl', 'phpinfo'], 'function_exists')),
	'session' => session_save_path(), 'tmp' => $tmp === false ? '' : dirname($tmp), 'n' => $_SESSION['n'],
], JSON_UNESCAPED_SLASHES);`

func TestSitesOfADirectoryAreIsolated(t *testing.T) {
	t.Parallel()
	s := startSites(t, sitesDirTOML+`[php]
workers = 1
ini_overrides = [["disable_functions", "phpinfo"], ["opcache.file_update_protection", "0"]]
`, map[string]string{
		"a.example/index.php": isolationProbe, "a.example/lib.php": `<?php return 'lib';`,
		"b.example/index.php": isolationProbe, "b.example/lib.php": `<?php return 'lib';`,
		"b.example/secret.php": `<?php $password = 'secret'; echo 'hidden';`,
	})
	type report struct {
		Read, Include, List, Include_self bool
		Functions                         []string
		Session, Tmp                      string
		N                                 int
	}
	secret := filepath.Join(s.dir, "sites", "b.example", "secret.php")
	s.want("b.example", "/secret.php", 200, "hidden") // OPcache has it now
	_, body := s.ask("a.example", "/?secret="+secret, "Cookie", "PHPSESSID=same")
	a := fromJSON[report](t, body)
	if a.Read || a.Include || a.List || !a.Include_self || len(a.Functions) != 0 {
		t.Errorf("from another site: %s; want nothing but its own file, and no functions", body)
	}
	_, body = s.ask("b.example", "/?secret="+secret, "Cookie", "PHPSESSID=same")
	b := fromJSON[report](t, strings.TrimPrefix(body, "hidden"))
	if !b.Read || !b.Include || !b.List {
		t.Errorf("from the site itself: %s; want all of it", body)
	}
	for _, r := range []report{a, b} {
		if !strings.HasPrefix(r.Session, s.dir+"/state/") || !strings.HasPrefix(r.Tmp, s.dir+"/state/") || r.N != 1 {
			t.Errorf("session %d in %s, temporary files in %s; want a first session, both below %s/state", r.N, r.Session, r.Tmp, s.dir)
		}
	}
	if a.Session == b.Session || a.Tmp == b.Tmp {
		t.Errorf("both sites have sessions in %s and temporary files in %s", a.Session, a.Tmp)
	}
	if _, body = s.ask("a.example", "/?secret="+secret, "Cookie", "PHPSESSID=same"); fromJSON[report](t, body).N != 2 {
		t.Errorf("the second request of a session: %s", body)
	}
}

// PHP keeps the directory for temporary files once it was asked for, and a worker has
// not yet served another site by its first request.
func TestTheFirstRequestOfAWorkerHasItsSitesTemporaryFiles(t *testing.T) {
	t.Parallel()
	s := startSites(t, sitesDirTOML+`[php]
workers = 1
worker_max_requests = 1
`, map[string]string{
		"a.example/index.php": `<?php echo dirname(tempnam(sys_get_temp_dir(), 'x'));`,
	})
	for range 2 {
		if _, dir := s.ask("a.example", "/"); !strings.HasPrefix(dir, s.dir+"/state/a.example") {
			t.Errorf("temporary files in %q, want them below %s/state", dir, s.dir)
		}
	}
}

// userProbe tells who runs it.
const userProbe = `<?php
session_start(); $_SESSION['x'] = 1; session_write_close();
$f = $_FILES['f']['tmp_name'] ?? null;
$maps = file_get_contents('/proc/self/maps');
echo json_encode([
	'uid' => posix_getuid(), 'euid' => posix_geteuid(), 'gid' => posix_getgid(), 'groups' => posix_getgroups(),
	'back' => @posix_setuid(0) || @posix_seteuid(0) || @posix_setgid(0), 'secret' => @file_get_contents($_SERVER['SECRET'] ?? '/nothing'),
	'upload' => $f ? fileowner($f) : 0, 'uploaded' => $f ? file_get_contents($f) : '', 'session' => fileowner(session_save_path() . '/sess_' . session_id()),
	'pools' => preg_match_all('/memfd:ephpm-pool[^\n]*/', $maps, $m), 'inode' => preg_match('/ (\d+) +\/memfd:ephpm-pool/', $maps, $i) ? (int)$i[1] : 0,
	'status' => preg_replace('/^.*NoNewPrivs:\s*(\d).*$/s', '$1', file_get_contents('/proc/self/status')),
	'env' => getenv('EPHPM_TEST_SECRET'), 'home' => getenv('HOME') !== false, 'ppid' => posix_getppid(),
]);`

type userReport struct {
	UID, EUID, GID     int
	Groups             []int
	Back               bool
	Secret             any
	Upload, Session    int
	Uploaded, Status   string
	Pools, Inode, PPID int
	Env                any
	Home               bool
}

const userUpload = "--b\r\nContent-Disposition: form-data; name=f; filename=a\r\n\r\nhi\r\n--b--\r\n"

// probe posts a file to the probe of a host.
func (s *siteTest) probe(host string) (r userReport) {
	s.t.Helper()
	req := s.request("POST", "/", userUpload, "Content-Type", "multipart/form-data; boundary=b")
	req.Host = host
	resp, body := s.do(req)
	if err := json.Unmarshal([]byte(body), &r); err != nil || resp.StatusCode != 200 {
		s.t.Fatalf("%s: %d %q: %v", host, resp.StatusCode, body, err)
	}
	return r
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run workers as other users")
	}
}

// A site's workers are its own user's, with no way back and no sight of others.
func TestWorkersRunAsTheSitesUser(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	s := startSites(t, `
[server]
sites_state_dir = "$dir/state"
[[site]]
names = ["a.example"]
root = "$dir/sites/a"
run_as = "54321:54321"
env = { SECRET = "$dir/sites/b/secret" }
[[site]]
names = ["b.example"]
root = "$dir/sites/b"
run_as = "54322:54322"
env = { SECRET = "$dir/sites/b/secret" }
[[site]]
names = ["c.example"]
root = "$dir/sites/c"
`, map[string]string{
		"a/index.php": userProbe, "b/index.php": userProbe, "b/secret": "of b", "c/index.php": userProbe, "a/kill.php": `<?php posix_kill((int)$_GET['pid'], 9);`,
	})
	secret := filepath.Join(s.dir, "sites", "b", "secret")
	if err := os.Chown(secret, 54322, 54322); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(secret, 0o600); err != nil {
		t.Fatal(err)
	}
	a, b, c := s.probe("a.example"), s.probe("b.example"), s.probe("c.example")
	for id, r := range map[int]userReport{54321: a, 54322: b} {
		if r.UID != id || r.EUID != id || r.GID != id || fmt.Sprint(r.Groups) != fmt.Sprintf("[%d]", id) && len(r.Groups) != 0 {
			t.Errorf("the site of user %d runs as %+v", id, r)
		}
		if r.Back || r.Status != "1" {
			t.Errorf("user %d became another, or may: %+v", id, r)
		}
		if r.Upload != id || r.Session != id || r.Uploaded != "hi" {
			t.Errorf("uploads and sessions of user %d belong to %d and %d", id, r.Upload, r.Session)
		}
		if r.Pools != 1 || r.Env != false || !r.Home {
			t.Errorf("user %d has %d pools mapped, want 1, and sees the server's environment: %v", id, r.Pools, r.Env)
		}
	}
	if a.Secret != false || b.Secret != "of b" {
		t.Errorf("a file of user 54322 alone is %v for the other site, %v for its own", a.Secret, b.Secret)
	}
	if c.UID != 0 || c.Pools != 1 {
		t.Errorf("the site without run_as runs as %+v", c)
	}
	if a.Inode == b.Inode || b.Inode == c.Inode || a.Inode == c.Inode || a.PPID == b.PPID || b.PPID == c.PPID {
		t.Errorf("sites share memory (%d, %d, %d) or a zygote (%d, %d, %d)", a.Inode, b.Inode, c.Inode, a.PPID, b.PPID, c.PPID)
	}
	s.want("a.example", fmt.Sprintf("/kill.php?pid=%d", b.PPID), 200, "")
	if again := s.probe("b.example"); again.PPID != b.PPID {
		t.Error("a script of one user ended the zygote of another's site")
	}
}

func TestDirectoriesMayRunAsTheirOwners(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	s := startSites(t, sitesDirTOML+`sites_run_as = "owner"
[server.security]
open_basedir = false
multi_tenant_hardening = false
`, map[string]string{"a.example/index.php": userProbe, "b.example/index.php": userProbe, "root.example/index.php": userProbe})
	for name, id := range map[string]int{"a.example": 54321, "b.example": 54322} {
		if err := os.Chown(filepath.Join(s.dir, "sites", name), id, id); err != nil {
			t.Fatal(err)
		}
	}
	for name, id := range map[string]int{"a.example": 54321, "b.example": 54322} {
		if r := s.probe(name); r.UID != id || r.GID != id || r.Upload != id || r.Session != id {
			t.Errorf("%s runs as %+v, want its owner %d", name, r, id)
		}
	}
	s.want("root.example", "/", 500, "")
	s.waitLog(`directory cannot be a site.*root\.example.*would run as root`)
	if strings.Contains(s.Log(), "OPcache is off") {
		t.Error("a site's own workers have no OPcache")
	}
	if found := regexp.MustCompile(`PHP started.*pool=a\.example`).FindString(s.Log()); found == "" {
		t.Error("the log does not tell of the site's own workers")
	}
}

// A site with processes of its own has settings that PHP reads at its start.
func TestProcessIsolation(t *testing.T) {
	t.Parallel()
	page := `<?php echo json_encode([ini_get('disable_functions'), ini_get('opcache.memory_consumption'), $_ENV['OWN'] ?? null, getenv('OWN'), posix_getppid()]);`
	s := startSites(t, `
[server]
sites_state_dir = "$dir/state"
[[site]]
names = ["own.example"]
root = "$dir/sites/own"
isolation = "process"
workers = 2
ini = { disable_functions = "exec", "opcache.memory_consumption" = 144, variables_order = "EGPCS" }
env = { OWN = "yes" }
[[site]]
names = ["shared.example"]
root = "$dir/sites/shared"
`, map[string]string{"own/index.php": page, "shared/index.php": page})
	_, own := s.ask("own.example", "/")
	_, shared := s.ask("shared.example", "/")
	if !strings.HasPrefix(own, `["exec","144","yes","yes",`) {
		t.Errorf("the site with its own processes has %s", own)
	}
	if strings.Contains(shared, "exec") || strings.Contains(shared, "yes") || firstOf(reverse(own), ",") == firstOf(reverse(shared), ",") {
		t.Errorf("the other site has %s, the first %s", shared, own)
	}
}

func reverse(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

// One site's slow pages leave workers to the others.
func TestASiteHasAtMostItsShareOfWorkers(t *testing.T) {
	t.Parallel()
	gates := []*gate{newGate(t), newGate(t)}
	s := startSites(t, `
[server]
sites_state_dir = "$dir/state"
metrics.enabled = true
[[site]]
names = ["slow.example"]
root = "$dir/sites/slow"
workers = 2
[[site]]
names = ["quick.example"]
root = "$dir/sites/quick"
[php]
workers = 3
min_workers = 3
worker_reserve = 1
`, map[string]string{"slow/index.php": `<?php file_get_contents($_GET['gate']); echo "done";`, "quick/index.php": `<?php echo "quick";`})
	later := func(g *gate) *late {
		req := s.request("GET", "/?gate="+g.path, "")
		req.Host = "slow.example"
		return s.later(req)
	}
	first := later(gates[0])
	gates[0].wait()
	// Of two workers pages may have one, so the second waits for the first.
	second := later(gates[1])
	s.waitMetric(`ephpm_php_backlog{class="page"}`, 1)
	for range 5 {
		s.want("quick.example", "/", 200, "quick")
	}
	gates[0].open()
	if _, body := first.wait(); body != "done" {
		t.Errorf("the first slow page: %q", body)
	}
	gates[1].wait()
	gates[1].open()
	if _, body := second.wait(); body != "done" {
		t.Errorf("the second slow page: %q", body)
	}
}

func TestRunAsNeedsRootAndAUser(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for runAs, want := range map[string]string{
		"no-such-user": `site[1].run_as: "no-such-user" is not a user of this system`,
		"root":         `site[1].run_as: user "root" is in the group of root`,
	} {
		file := filepath.Join(root, "ephpm.toml")
		writeFiles(t, root, map[string]string{"ephpm.toml": fmt.Sprintf("[[site]]\nnames = [\"a\"]\nroot = %q\nrun_as = %q\n", root, runAs)})
		if status, _, stderr := (command{Args: []string{"config", "check", "-c", file}}).run(t); status != 1 || !strings.Contains(stderr, want) {
			t.Errorf("run_as = %q: %d, %s, want %q", runAs, status, stderr, want)
		}
	}
}
