package phpbridge

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// oneWorker makes every request of a pool run in the same process.
func oneWorker(o *Options) {
	o.MinWorkers, o.MaxWorkers, o.Reserve = 1, 1, 1
	o.INI = append(o.INI, INI{"display_errors", "1"}, INI{"html_errors", "0"})
}

func TestSettingsOfARequestEndWithIt(t *testing.T) {
	p := testPool(t, oneWorker)
	r := script(t, `echo ini_get("memory_limit"), " ", ini_get("precision"), " ", ini_get("open_basedir"), " ", sys_get_temp_dir(), " ", getmypid();
		ini_set("precision", 5);`)
	before := body(t, run(t, p, r))
	dir := filepath.Dir(r.Script)
	r.INI = Vars(nil).Add("memory_limit", "77M").Add("precision", "9").Add("open_basedir", dir).Add("sys_temp_dir", dir).
		Add("no.such.setting", "1")
	pid := before[strings.LastIndexByte(before, ' ')+1:]
	for range 2 {
		if got, want := body(t, run(t, p, r)), fmt.Sprintf("77M 9 %s %s %s", dir, dir, pid); got != want {
			t.Errorf("with settings of its own the request printed %q, want %q", got, want)
		}
	}
	r.INI = nil
	if got := body(t, run(t, p, r)); got != before {
		t.Errorf("the next request printed %q, want %q as before", got, before)
	}
}

func TestEnvironmentOfARequestEndsWithIt(t *testing.T) {
	p := testPool(t, func(o *Options) {
		oneWorker(o)
		o.Env = map[string]string{"SHARED": "pool", "BOTH": "pool"}
		o.INI = append(o.INI, INI{"variables_order", "EGPCS"})
	})
	r := script(t, `foreach (["SHARED", "BOTH", "OWN"] as $n)
		echo json_encode([getenv($n), getenv()[$n] ?? null, $_SERVER[$n] ?? null, $_ENV[$n] ?? null, shell_exec("printf %s \"\$$n\"")]);
		putenv("OWN=changed"); putenv("BOTH");`)
	all := func(v string) string { return fmt.Sprintf(`[%[1]q,%[1]q,%[1]q,%[1]q,%[1]q]`, v) }
	without := all("pool") + all("pool") + `[false,null,null,null,null]`
	for _, test := range []struct {
		env  Vars
		want string
	}{
		{nil, without},
		{Vars(nil).Add("OWN", "site").Add("BOTH", "site"), all("pool") + all("site") + all("site")},
		{nil, without},
		{Vars(nil).Add("OWN", "other"), all("pool") + all("pool") + all("other")},
	} {
		r.Env = test.env
		if got := body(t, run(t, p, r)); got != test.want {
			t.Errorf("with %q the script saw\n%s, want\n%s", test.env, got, test.want)
		}
	}
}

func TestPostMaxSizeMayBeARequestsOwn(t *testing.T) {
	p := testPool(t, func(o *Options) {
		oneWorker(o)
		o.INI = append(o.INI, INI{"post_max_size", "100"})
	})
	form := func(ini Vars) string {
		r := script(t, `echo strlen($_POST["a"] ?? "");`)
		r.INI = ini
		return body(t, run(t, p, post(r, "application/x-www-form-urlencoded", "a="+strings.Repeat("x", 1000))))
	}
	if got := form(Vars(nil).Add("post_max_size", "2000")); got != "1000" {
		t.Errorf("a form under the request's own limit has %q bytes, want 1000", got)
	}
	if got := form(nil); !strings.HasSuffix(got, "0") || strings.HasSuffix(got, "1000") {
		t.Errorf("a form over the pool's limit: %q", got)
	}
}

// OPcache would hand out what another site has compiled without asking.
func TestOpenBasedirHoldsForCompiledScripts(t *testing.T) {
	p := testPool(t, func(o *Options) {
		oneWorker(o)
		o.INI = append(o.INI, INI{"opcache.file_update_protection", "0"}) // it would not keep a file this young
	})
	secret := script(t, `$password = "secret"; function leaked() {}; return "secret";`)
	run(t, p, secret) // now it is compiled
	name := secret.Script
	dir, base := filepath.Dir(name), filepath.Base(name)
	for _, how := range []string{
		`include "` + name + `"`,
		`include_once "` + name + `"`,
		`require "` + name + `"`,
		`require_once "` + name + `"`,
		`include "file://` + name + `"`,
		`include "FILE://` + name + `"`,
		`include "` + dir + `/./` + base + `"`,
		`include "../` + filepath.Base(dir) + `/` + base + `"`,
		`set_include_path("` + dir + `"); include "` + base + `"`,
		`set_include_path("` + dir + `"); include_once "` + base + `"`,
		`set_include_path("file://` + dir + `"); include "` + base + `"`,
		`symlink("` + name + `", "link.php"); include "link.php"`,
	} {
		r := script(t, `try { `+how+`; } catch (Error $e) { echo $e->getMessage(); }
			echo isset($password) || function_exists("leaked") ? " LEAKED" : " kept";`)
		r.INI = Vars(nil).Add("open_basedir", filepath.Dir(r.Script))
		if got := body(t, run(t, p, r)); !strings.HasSuffix(got, " kept") || !strings.Contains(got, "Failed open") {
			t.Errorf("%s: %q, want it refused", how, got)
		}
		r.INI = nil // a script may include what no open_basedir keeps it from
		if strings.HasPrefix(how, "include \"/") {
			if got := body(t, run(t, p, r)); !strings.HasSuffix(got, " LEAKED") {
				t.Errorf("%s without open_basedir: %q, want it included", how, got)
			}
		}
	}
}

func TestTenantsHaveTheirOwnUploads(t *testing.T) {
	p := testPool(t, oneWorker)
	upload := func(tenant uint32, basedir bool) string {
		r := script(t, `echo dirname($_FILES["f"]["tmp_name"]), " ", file_get_contents($_FILES["f"]["tmp_name"]), " ",
			substr(sprintf("%o", fileperms(dirname($_FILES["f"]["tmp_name"]))), -3);`)
		r.Tenant = tenant
		if basedir {
			r.INI = Vars(nil).Add("open_basedir", filepath.Dir(r.Script))
		}
		post(r, "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=f; filename=a\r\n\r\nhi\r\n--b--\r\n")
		return body(t, run(t, p, r))
	}
	one, two, shared := upload(1, true), upload(2, false), upload(0, false)
	for name, got := range map[string]string{"one": one, "two": two, "none": shared} {
		if !strings.HasSuffix(got, " hi 700") {
			t.Errorf("upload of tenant %s: %q", name, got)
		}
	}
	if one == two || filepath.Dir(one) != filepath.Dir(two) || filepath.Dir(one) != strings.TrimSuffix(shared, " hi 700") {
		t.Errorf("uploads are in %q, %q and %q, want two directories below the last", one, two, shared)
	}
	if again := upload(1, true); again != one {
		t.Errorf("the next upload of tenant 1 is in %q, want %q", again, one)
	}
}

func TestDisabledFunctionsAreAddedToThoseOfINI(t *testing.T) {
	p := testPool(t, func(o *Options) {
		oneWorker(o)
		o.INI = append(o.INI, INI{"disable_functions", "phpinfo,passthru"})
		o.DisableFunctions = []string{"exec", "no_such_function", "passthru"}
	})
	r := script(t, `foreach (["phpinfo", "passthru", "exec", "strlen"] as $f) echo function_exists($f) ? "+" : "-"; echo ini_get("disable_functions");`)
	if got := body(t, run(t, p, r)); got != "---+phpinfo,passthru,exec,no_such_function,passthru" {
		t.Errorf("functions are %q", got)
	}
	if got := body(t, run(t, p, script(t, `try { exec("id"); } catch (Error $e) { echo $e->getMessage(); }`))); got != "Call to undefined function exec()" {
		t.Errorf("exec() says %q", got)
	}
}

func TestAPoolRunsAsItsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run workers as another user")
	}
	t.Setenv("EPHPM_SECRET", "of the server")
	uploads := t.TempDir()
	for dir := uploads; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(uploads, "secret")
	if err := os.WriteFile(secret, []byte("root's"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := testPool(t, func(o *Options) {
		oneWorker(o)
		o.User = &User{Name: "tenant", Home: "/nonexistent", UID: 54321, GID: 54322, Groups: []uint32{54323}}
		o.UploadDir = uploads
		o.Env = map[string]string{"OWN": "1"}
	})
	r := script(t, `$f = $_FILES["f"]["tmp_name"];
		preg_match_all('/^(?:Uid|Gid|Groups|CapPrm|NoNewPrivs):.*?(?= *$)/m', file_get_contents("/proc/self/status"), $lines);
		echo preg_replace('/\s+/', " ", implode(" ", $lines[0])), " ",
			json_encode([function_exists("posix_setuid") && @posix_setuid(0), @file_get_contents($_SERVER["SECRET"]),
			getenv("EPHPM_SECRET"), getenv("USER"), getenv("OWN"), fileowner($f), filegroup($f), file_get_contents($f), @mkdir(dirname($f, 2) . "/x")]);`)
	if err := os.Chmod(filepath.Dir(filepath.Dir(r.Script)), 0o755); err != nil {
		t.Fatal(err)
	}
	r.Vars = r.Vars.Add("SECRET", secret)
	post(r, "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=f; filename=a\r\n\r\nhi\r\n--b--\r\n")
	want := "Uid: 54321 54321 54321 54321 Gid: 54322 54322 54322 54322 Groups: 54323 CapPrm: 0000000000000000 NoNewPrivs: 1 " +
		`[false,false,false,"tenant","1",54321,54322,"hi",false]`
	if got := body(t, run(t, p, r)); got != want {
		t.Errorf("the script printed\n%s, want\n%s", got, want)
	}
}
