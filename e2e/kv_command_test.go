package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// kvTest runs ephpm kv against a server.
type kvTest struct {
	*testing.T
	config string
}

// run returns the status and what was printed; stdin goes to the command.
func (k kvTest) run(stdin string, args ...string) (status int, stdout, stderr string) {
	k.Helper()
	return command{Stdin: stdin, Args: append([]string{"kv", "-c", k.config}, args...)}.run(k.T)
}

// want checks what is printed by a command that succeeds.
func (k kvTest) want(stdout string, args ...string) {
	k.Helper()
	if status, got, stderr := k.run("", args...); status != 0 || got != stdout || stderr != "" {
		k.Errorf("ephpm kv %q: %d, %q, %q; want %q", args, status, got, stderr, stdout)
	}
}

// wantError checks a command that prints only an error.
func (k kvTest) wantError(text string, args ...string) {
	k.Helper()
	if status, got, stderr := k.run("", args...); status != 1 || got != "" || stderr != "error: "+text+"\n" {
		k.Errorf("ephpm kv %q: %d, %q, %q; want the error %q", args, status, got, stderr, text)
	}
}

const kvCommandPage = `<?php
if (isset($_GET['hash'])) ephpm_kv_hset('hash', 'f', 'v');
if (isset($_GET['set'])) ephpm_kv_set($_GET['set'], "from PHP\0\xff");
echo json_encode([ephpm_kv_get('k'), bin2hex(ephpm_kv_get('bin') ?? ''), ephpm_kv_ttl('ttl') > 0]);`

// The command line and PHP see the same keys.
func TestKVCommand(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	toml := "[server]\ncontrol_socket = \"" + dir + "/control\"\n"
	a := startApp(t, appOptions{TOML: toml, Files: map[string]string{"index.php": kvCommandPage}})
	writeFiles(t, dir, map[string]string{"ephpm.toml": toml})
	k := kvTest{t, dir + "/ephpm.toml"}

	k.want("PONG\n", "ping")
	k.wantError(`there is no key "k"`, "get", "k")
	k.wantError(`there is no key "k"`, "ttl", "k")
	k.want("", "set", "k", "value")
	k.want("value", "get", "k")
	k.want("-1\n", "ttl", "k")
	k.want("", "set", "k", "")
	k.want("", "get", "k")
	k.want("", "set", "k", "v")
	k.wantError(`there is a key "k" already`, "set", "k", "other", "--nx")
	k.want("", "set", "ttl", "1", "--ttl", "100000", "--nx")
	if status, stdout, stderr := k.run("", "ttl", "ttl"); status != 0 || len(stdout) < 6 || len(stdout) > 7 || stderr != "" {
		t.Errorf("the TTL: %d, %q, %q", status, stdout, stderr)
	}
	binary := "a\x00\r\n\xff" + strings.Repeat("x", 300_000)
	if status, stdout, stderr := k.run(binary, "set", "bin"); status != 0 || stdout+stderr != "" {
		t.Errorf("set from stdin: %d, %q, %q", status, stdout, stderr)
	}
	k.want(binary, "get", "bin")
	if err := wantBody(a.request("GET", "/?hash&set=php", ""), fmt.Sprintf(`["v","%x",true]`, binary)); err != nil {
		t.Error(err)
	}
	k.want("from PHP\x00\xff", "get", "php")
	k.wantError("the key holds a hash", "get", "hash")

	k.want("1\n", "incr", "n")
	k.want("-4\n", "incr", "n", "--by", "-5")
	k.wantError("the value is no whole number of 64 bits", "incr", "k")
	k.want("", "set", "--", "-dash", "--ttl")
	k.want("--ttl", "get", "--", "-dash")

	_, stdout, _ := k.run("", "keys")
	keys := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	slices.Sort(keys)
	if want := []string{"-dash", "bin", "hash", "k", "n", "php", "ttl"}; !slices.Equal(slices.Compact(keys), want) {
		t.Errorf("the keys are %q, want %q", keys, want)
	}
	k.want("php\x00", "keys", "-0", "p")
	k.want("bin\n", "keys", "*in")
	k.want("", "keys", "none*")
	k.want("2\n", "del", "k", "n", "none")
	if status, stdout, stderr := k.run("", "del", "k", "n"); status != 1 || stdout != "0\n" || stderr != "error: there is none of the keys\n" {
		t.Errorf("del of no keys: %d, %q, %q", status, stdout, stderr)
	}

	k.wantError("cannot reach the server at "+dir+`/control: it has no site "other.example", but default`, "ping", "--site", "other.example")
	a.Stop()
	k.wantError("cannot reach the server at "+dir+"/control: none is running", "get", "k")
}

// Each site has keys of its own, and one must be named.
func TestKVCommandPicksASite(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	toml := "[server]\ncontrol_socket = \"" + dir + "/control\"\n"
	s := startSites(t, toml+`
[[site]]
names = ["a.example", "www.a.example"]
root = "$dir/sites/a"
[[site]]
names = ["b.example"]
root = "$dir/sites/b"
`, map[string]string{"a/index.php": `<?php echo ephpm_kv_get('k');`, "b/index.php": `<?php echo ephpm_kv_get('k') ?? 'none';`})
	writeFiles(t, dir, map[string]string{"ephpm.toml": toml})
	k := kvTest{t, dir + "/ephpm.toml"}

	k.want("", "set", "k", "of a", "--site", "www.a.example")
	s.want("a.example", "/", 200, "of a")
	s.want("b.example", "/", 200, "none")
	k.wantError(`there is no key "k"`, "get", "k", "--site", "b.example")
	k.want("", "--site=b.example", "set", "k", "of b")
	s.want("b.example", "/", 200, "of b")
	k.want("of a", "get", "k", "--site", "a.example")
	k.wantError("cannot reach the server at "+dir+"/control: it has several sites, name one with --site: a.example, b.example", "get", "k")
}
