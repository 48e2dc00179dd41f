package e2e

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// twoSites are a.example and b.example, which take turns on the same workers.
const twoSites = `
[php]
workers = 4
[php.env]
COMMON = "of all"
BOTH = "of all"
[[site]]
names = ["a.example"]
root = "$dir/sites/a"
env = { ONLY_A = "of a", BOTH = "of a" }
ini = { variables_order = "EGPCS" }
[[site]]
names = ["b.example"]
root = "$dir/sites/b"
env = { ONLY_B = "of b" }
php_extensions = [".custom", ".php"]
`

// wantSite compares what a site answers; for any goroutine.
func (s *siteTest) wantSite(host, path, want string) error {
	req := s.request("GET", path, "")
	req.Host = host
	return wantBody(req, want)
}

// No site has a variable of another's, whatever ran in the worker before; what a
// site sets beats what all have; $_ENV is there for who asks for it.
func TestEnvironmentOfTheSiteAndNoOther(t *testing.T) {
	t.Parallel()
	page := `<?php putenv("LEFT={$_GET['i']}");
		foreach (['COMMON', 'BOTH', 'ONLY_A', 'ONLY_B'] as $n) $all[] = [getenv($n), $_SERVER[$n] ?? null, $_ENV[$n] ?? null];
		echo json_encode([...$all, getenv('LEFT')]);`
	s := startSites(t, twoSites, map[string]string{"a/index.php": page, "b/index.php": page})
	hundred(t, func(i int) error {
		if i%2 == 0 {
			return s.wantSite("a.example", fmt.Sprintf("/?i=%d", i), fmt.Sprintf(
				`[["of all","of all","of all"],["of a","of a","of a"],["of a","of a","of a"],[false,null,null],"%d"]`, i))
		}
		return s.wantSite("b.example", fmt.Sprintf("/?i=%d", i), fmt.Sprintf(
			`[["of all","of all",null],["of all","of all",null],[false,null,null],["of b","of b",null],"%d"]`, i))
	})
}

// A path is cut behind the first segment that ends as the site's scripts do.
func TestScriptsEndAsTheSiteSays(t *testing.T) {
	t.Parallel()
	page := dump("[$_SERVER['SCRIPT_NAME'], $_SERVER['PATH_INFO'], $_SERVER['PHP_SELF']]")
	s := startSites(t, twoSites+"[[site]]\nnames = [\"c.example\"]\nroot = \"$dir/sites/c\"\nphp_extensions = [\".Custom\"]\nfallback = [\"$uri\", \"=404\"]\n", map[string]string{
		"a/s.custom": page, "a/s.php": page, "a/index.php": "none",
		"b/s.custom": page, "b/s.php": page, "b/index.custom": "none", "b/dir.custom/s.php": page,
		"c/s.Custom": page, "c/s.custom": page, "c/s.php": page, "c/s.PHP": page, "c/a.txt": "text",
	})
	hundred(t, func(i int) error {
		for _, script := range []string{"/s.custom", "/s.php", "/dir.custom/s.php"} {
			for _, rest := range []string{fmt.Sprintf("/path/%d", i), fmt.Sprintf("/x.php/%d.custom", i), ""} {
				if err := s.wantSite("b.example", script+rest, fmt.Sprintf(`["%s","%s","%s"]`, script, rest, script+rest)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	s.want("a.example", "/s.custom", 200, page) // there it is a file like any other
	s.want("a.example", "/s.custom/path", 200, "none")
	s.want("c.example", "/s.Custom/x", 200, `["/s.Custom","/x","/s.Custom/x"]`)
	s.want("c.example", "/a.txt", 200, "text")
	for _, path := range []string{"/s.custom", "/s.php", "/s.PHP", "/s.php/x", "/s.CUSTOM"} {
		if resp, body := s.ask("c.example", path); resp.StatusCode != 404 || strings.Contains(body, "<?") {
			t.Errorf("%s: %s %q, want 404", path, resp.Status, body)
		}
	}
}

// A line of a script is its site's, with the level and the attributes that it gave.
func TestLogLinesAreOfTheirSite(t *testing.T) {
	t.Parallel()
	page := `<?php foreach (['DEBUG', 'INFO', 'WARN', 'ERROR'] as $level) {
			ephpm_log("$level {$_GET['i']}", constant("EPHPM_LOG_LEVEL_$level"), ['n' => (int) $_GET['i'], 's' => 'é "x"', 'a' => [1, ['k' => null]]]);
		}
		error_log("plain {$_GET['i']}"); echo $_SERVER['REQUEST_ID'];`
	s := startSites(t, "[server.logging]\nlevel = \"debug\"\nformat = \"json\"\n"+twoSites, map[string]string{"a/index.php": page, "b/index.php": page})
	ids := make([]string, 100)
	hundred(t, func(i int) error {
		req := s.request("GET", fmt.Sprintf("/?i=%d", i), "")
		req.Host = string(rune('a'+i%2)) + ".example"
		_, body, err := fetch(req)
		ids[i] = body
		return err
	})
	// Each line once, whatever the order.
	type attributes struct {
		N int
		S string
		A []any
	}
	type line struct {
		Level, Msg, Text, Site, Request string
		Context                         attributes
	}
	var got map[string]line
	err := eventually(func() error {
		got = map[string]line{}
		for text := range strings.Lines(s.Log()) {
			if l := fromJSON[line](t, text); l.Msg == "PHP message" {
				got[l.Text] = l
			}
		}
		if len(got) < 500 {
			return fmt.Errorf("%d lines of scripts", len(got))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		for _, word := range []string{"DEBUG", "INFO", "WARN", "ERROR", "plain"} {
			text := fmt.Sprintf("%s %d", word, i)
			want := line{word, "PHP message", text, string(rune('a'+i%2)) + ".example", id, attributes{i, `é "x"`, []any{1.0, map[string]any{"k": nil}}}}
			if word == "plain" {
				want.Level, want.Context = "INFO", attributes{}
			}
			if !reflect.DeepEqual(got[text], want) {
				t.Errorf("%+v, want %+v", got[text], want)
			}
		}
	}
}
