package e2e

import (
	"strings"
	"testing"
)

// Whatever takes a script over memory_limit, its own data or what the server has
// to give it, ends in PHP's own error. The worker stays, and nothing is left in it.
func TestMemoryLimitIsPHPsErrorWhateverTakesTheMemory(t *testing.T) {
	t.Parallel()
	const value = `str_repeat('v', 3_000_000)`
	code := map[string]string{
		"a buffered body":              `ob_start(); while (true) echo ` + value + `;`,
		"a buffered body of crumbs":    `ob_start(); while (true) echo 'crumb';`,
		"what a buffer is made into":   `ob_start(fn ($s) => str_repeat($s, 100)); echo ` + value + `;`,
		"headers":                      `for ($i = 0; ; $i++) header("X-$i: " . str_repeat('v', 1000), false);`,
		"the last of it before it":     `for ($i = 0; $i < 900; $i++) header("X-$i: " . str_repeat('v', 1000), false); class K { static $k; } while (true) K::$k[] = str_repeat('x', 4000);`,
		"a destructor":                 `class D { function __destruct() { while (true) $this->d[] = str_repeat('x', 1000); } public $d; } $d = new D;`,
		"a shutdown function":          `register_shutdown_function(function () { while (true) $d[] = str_repeat('x', 1000); });`,
		"a value of the store":         `while (true) $all[] = ephpm_kv_get('large');`,
		"one that is too large":        `ini_set('memory_limit', '4M'); ephpm_kv_get('large'); ephpm_kv_get('huge');`,
		"the answer to a call":         `ephpm_kv_mget(array_fill(0, 20, 'large'));`,
		"answers to calls":             `while (true) $all[] = ephpm_kv_mget(['large']);`,
		"an answer of many elements":   `ini_set('memory_limit', '2M'); ephpm_kv_hgetall('hash');`,
		"the arguments of a call":      `$v = ` + value + `; ephpm_kv_mset(array_map(fn () => $v, array_flip(range(1, 20))));`,
		"a message":                    `while (true) $all[] = ephpm_ws_broadcast('nobody', str_repeat('v', count($all ??= []) * 1_000_000 + 1));`,
		"the context of a log message": `$v = ` + value + `; ephpm_log('x', 0, array_fill(0, 20, $v));`,
	}
	files := map[string]string{
		"index.php": `<?php echo getmypid(), ' ', ob_get_level(), count(headers_list()), strlen(str_repeat('x', 1 << 20));`,
		"fill.php": `<?php ini_set('memory_limit', '256M');
			ephpm_kv_set('large', ` + value + `); ephpm_kv_set('huge', str_repeat('v', 30_000_000));
			foreach (range(1, 33_000) as $i) ephpm_kv_hset('hash', "field $i", 'v');`,
	}
	names := map[string]string{}
	for name, text := range code {
		file := strings.ReplaceAll(name, " ", "-") + ".php"
		names[name], files[file] = file, "<?php "+text
	}
	a := startApp(t, appOptions{
		TOML:  "[php]\nworkers = 1\nmemory_limit = \"16M\"\n[kv]\nmemory_limit = \"128MB\"\n",
		Files: files,
	})
	a.get("/fill.php")
	_, before := a.get("/")
	for name, file := range names {
		if resp, body := a.get("/" + file); resp.StatusCode != 500 || strings.Contains(body, "Gateway") {
			t.Errorf("%s: %s %.100q, want 500", name, resp.Status, body)
		}
		a.waitLine(`level=ERROR msg="PHP message"`, `text="PHP Fatal error:  Allowed memory size of \d+ bytes exhausted \(tried to allocate \d+ bytes\)`, `script=\S+/`+file+`\b`)
		if _, after := a.get("/"); after != before {
			t.Errorf("behind %s the worker says %q, want %q", name, after, before)
		}
	}
}
