package e2e

import (
	"fmt"
	"strings"
	"testing"
)

func TestPathInfo(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{
		"index.php":      dump("[$_SERVER['SCRIPT_NAME'], $_SERVER['PATH_INFO'], $_SERVER['PHP_SELF'], $_SERVER['PATH_TRANSLATED'] ?? null]"),
		"s.php":          dump("[$_SERVER['SCRIPT_NAME'], $_SERVER['PATH_INFO'], $_SERVER['PHP_SELF'], str_replace($_SERVER['DOCUMENT_ROOT'], '', $_SERVER['PATH_TRANSLATED'] ?? 'none')]"),
		"dir.php/in.php": dump("[$_SERVER['SCRIPT_NAME'], $_SERVER['PATH_INFO'], $_SERVER['PHP_SELF'], 'x']"),
	}})
	for target, want := range map[string]string{
		"/s.php":                  `["/s.php","","/s.php","none"]`,
		"/s.php/":                 `["/s.php","/","/s.php/","/"]`,
		"/s.php/a/b":              `["/s.php","/a/b","/s.php/a/b","/a/b"]`,
		"/s.php/a//b/./c":         `["/s.php","/a//b/./c","/s.php/a//b/./c","/a//b/./c"]`,
		"/s.php/x.php/y":          `["/s.php","/x.php/y","/s.php/x.php/y","/x.php/y"]`,
		"/s.php/%C3%A9%20+?q=%41": `["/s.php","/é +","/s.php/é +","/é +"]`,
		"//s.php/a":               `["/s.php","/a","/s.php/a","/a"]`,
		"/dir.php/in.php/p":       `["/dir.php/in.php","/p","/dir.php/in.php/p","x"]`,
		"/missing.php/a":          `["/index.php","","/index.php",null]`,
		"/missing":                `["/index.php","","/index.php",null]`,
		"/index.php/en":           `["/index.php","/en","/index.php/en",` + "null]",
		"/s.phpx/a":               `["/index.php","","/index.php",null]`,
	} {
		resp, body := a.getExactly(target)
		if target == "/index.php/en" {
			body = body[:strings.LastIndex(body, ",")+1] + "null]" // where the root is, is tested elsewhere
		}
		if resp.StatusCode != 200 || body != want {
			t.Errorf("GET %s: %s %s, want %s", target, resp.Status, body, want)
		}
	}
	hundred(t, func(i int) error {
		return wantBody(a.request("GET", fmt.Sprintf("/s.php/n/%d", i), ""), fmt.Sprintf(`["/s.php","/n/%d","/s.php/n/%d","/n/%d"]`, i, i, i))
	})
}

func TestFrontController(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[server]\nindex_files = [\"s.php\"]\nfallback = [\"$uri\", \"$uri/\", \"/s.php?$query_string\"]\n",
		Files: map[string]string{"s.php": dump(`[$_SERVER['PHP_SELF'], $_SERVER['PATH_INFO'], $_SERVER['REQUEST_URI'], $_SERVER['DOCUMENT_URI'],
			$_SERVER['SCRIPT_FILENAME'] === __FILE__, $_SERVER['DOCUMENT_ROOT'] === __DIR__, $_GET]`)}})
	hundred(t, func(i int) error {
		if err := wantBody(a.request("GET", fmt.Sprintf("/en?i=%d", i), ""),
			fmt.Sprintf(`["/s.php","","/en?i=%d","/s.php",true,true,{"i":"%d"}]`, i, i)); err != nil {
			return err
		}
		return wantBody(a.request("GET", fmt.Sprintf("/s.php/en?i=%d", i), ""),
			fmt.Sprintf(`["/s.php/en","/en","/s.php/en?i=%d","/s.php",true,true,{"i":"%d"}]`, i, i))
	})
}

func TestFallbackForms(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"index.php":      `<?php echo "index ", $_SERVER['QUERY_STRING'];`,
		"app.php":        `<?php echo "app ", $_SERVER['QUERY_STRING'];`,
		"a.txt":          "file a",
		"page.html":      "page",
		"dir/index.html": "index of dir",
		"empty/a.txt":    "file in a directory",
		"404.html":       "not here",
	}
	for name, test := range map[string]struct {
		fallback string
		want     map[string]string // path to status and body
	}{
		"the default": {`["$uri", "$uri/", "/index.php?$query_string"]`, map[string]string{
			"/a.txt?q": "200 file a", "/dir/": "200 index of dir", "/x?q=1": "200 index q=1", "/x": "200 index ", "/empty/": "200 index ", "/": "200 index "}},
		"a status at the end": {`["$uri", "=404"]`, map[string]string{
			"/a.txt": "200 file a", "/x": "404 404 Not Found\n", "/dir/": "404 404 Not Found\n", "/app.php?q": "200 app q", "/app.php/x": "200 app "}},
		"another status": {`["$uri", "=410"]`, map[string]string{"/x": "410 410 Gone\n"}},
		"directories": {`["$uri", "$uri/", "=404"]`, map[string]string{
			"/dir/": "200 index of dir", "/empty/": "404 404 Not Found\n", "/": "200 index "}},
		"an extension": {`["$uri", "$uri.html", "=404"]`, map[string]string{
			"/page": "200 page", "/page.html": "200 page", "/pag": "404 404 Not Found\n"}},
		"another script": {`["/app.php"]`, map[string]string{
			"/a.txt": "200 app ", "/x?q=1": "200 app q=1", "/index.php": "200 app "}},
		"the path as a parameter": {`["$uri", "/app.php?path=$uri&$query_string"]`, map[string]string{
			"/x/y?q=1": "200 app path=%2Fx%2Fy&q=1", "/x%26z=1": "200 app path=%2Fx%26z%3D1"}},
		"no query":       {`["/app.php?"]`, map[string]string{"/x?q=1": "200 app "}},
		"a page":         {`["$uri", "/404.html"]`, map[string]string{"/x": "200 not here"}},
		"what is absent": {`["$uri", "/nothing.php"]`, map[string]string{"/x": "404 404 Not Found\n"}},
		"nothing":        {`[]`, map[string]string{"/a.txt": "404 404 Not Found\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startApp(t, appOptions{Files: files, TOML: "[server]\nfallback = " + test.fallback + "\n"})
			for target, want := range test.want {
				resp, body := a.getExactly(target)
				if got := fmt.Sprint(resp.StatusCode, " ", body); got != want {
					t.Errorf("GET %s: %q, want %q", target, got, want)
				}
			}
		})
	}
}

func TestDocumentRootOfTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"conf/ephpm.toml":   "[server]\ndocument_root = \"../public\"\n",
		"public/index.php":  `<?php echo "public";`,
		"private/index.php": `<?php echo "private";`,
	})
	a := startApp(t, appOptions{Config: dir + "/conf/ephpm.toml"})
	if _, body := a.get("/"); body != "public" {
		t.Errorf("GET /: %q, want what lies relative to the file", body)
	}
	if resp, _ := a.getExactly("/../private/index.php"); resp.StatusCode != 400 {
		t.Errorf("GET /../private/index.php: %s, want 400", resp.Status)
	}
	b := startApp(t, appOptions{Config: dir + "/conf/ephpm.toml", Root: dir + "/private"})
	if _, body := b.get("/"); body != "private" {
		t.Errorf("GET /: %q, want what -d says", body)
	}
}

// Nothing above the root, and no spelling that some reader of the path might take
// for the way up.
func TestDotDotInEverySpelling(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"secret.txt":      "secret",
		"root/a.txt":      "public",
		"root/dir/b.txt":  "public",
		"root/s.php":      dump("$_SERVER['PATH_INFO']"),
		"root/..a/b.txt":  "dots",
		"root/a../b.txt":  "dots",
		"root/x..y/b.txt": "dots",
	})
	a := startApp(t, appOptions{Root: dir + "/root", TOML: "[server]\nfallback = [\"$uri\", \"$uri/\", \"=404\"]\n[server.static]\nhidden_files = \"allow\"\n"})
	for _, target := range []string{
		"/..", "/../", "/../secret.txt", "/dir/../../secret.txt", "/dir/../a.txt", "/./../secret.txt", "//../secret.txt", "/dir/..",
		"/%2e%2e/secret.txt", "/%2E%2E/secret.txt", "/.%2e/secret.txt", "/%2e./secret.txt", "/dir/%2e%2e/%2e%2e/secret.txt",
		"/..%2fsecret.txt", "/..%2Fsecret.txt", "/%2e%2e%2fsecret.txt", "/dir%2f..%2f..%2fsecret.txt", "/a%2fb.txt",
		`/..\secret.txt`, "/..%5csecret.txt", "/..%5Csecret.txt", "/%2e%2e%5csecret.txt", `/dir\..\..\secret.txt`, `/\secret.txt`,
		"/..?x", "/../?x", "/s.php/..", "/s.php/../secret.txt", "/s.php/%2e%2e/x", "/s.php/a/../../x",
		"/a.txt%00", "/%00/../secret.txt", "/s.php%00.txt", "/a.txt%00.php", "/s.php/%00",
		"/%", "/%2", "/%zz", "/a.txt%", "/%u002e%u002e/secret.txt",
		"http://x/../secret.txt", "http://x/%2e%2e/secret.txt",
	} {
		resp, body := a.getExactly(target)
		if resp.StatusCode != 400 || strings.Contains(body, "secret") {
			t.Errorf("GET %s: %s %q, want 400", target, resp.Status, body)
		}
	}
	// Names, not ways up.
	for target, want := range map[string]string{
		"/..a/b.txt": "dots", "/a../b.txt": "dots", "/x..y/b.txt": "dots", "/s.php/..a": `"/..a"`, "/dir/./b.txt": "public",
		"/a.txt?../../secret.txt": "public", "/a.txt?x=%2e%2e%2f%00": "public",
	} {
		if resp, body := a.getExactly(target); resp.StatusCode != 200 || body != want {
			t.Errorf("GET %s: %s %q, want 200 %q", target, resp.Status, body, want)
		}
	}
	// Decoded once, these are names that do not exist.
	for _, target := range []string{"/%252e%252e/secret.txt", "/..;/secret.txt", "/%c0%ae%c0%ae/secret.txt", "/..%c0%afsecret.txt", "/%ef%bc%8e%ef%bc%8e/secret.txt", "/~/secret.txt", "/secret.txt",
		"/con", "/aux.php", "/nul.txt", "/com1", "/a.txt::$DATA", "/a.txt:x", "/a.txt.", "/a.txt%20", "/a.txt%0a", "/A.TXT", "/a.txt;x", "/a%2etxt%2e", "/%2561.txt"} {
		if resp, body := a.getExactly(target); resp.StatusCode != 404 || strings.Contains(body, "secret") {
			t.Errorf("GET %s: %s %q, want 404", target, resp.Status, body)
		}
	}
}

func TestPathsAreOnlyPaths(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php echo "started";`}})
	for _, line := range []string{"OPTIONS * HTTP/1.1", "CONNECT example.com:80 HTTP/1.1", "GET index.php HTTP/1.1", "GET ftp://x/ HTTP/1.1"} {
		resp, body := a.exchange(line + "\r\nHost: x\r\n\r\n")
		// net/http answers OPTIONS * itself.
		if strings.Contains(body, "started") || resp.StatusCode != 400 && !strings.HasPrefix(line, "OPTIONS") {
			t.Errorf("%s: %s %q, want 400", line, resp.Status, body)
		}
	}
}

func TestPHPSourceIsNeverShown(t *testing.T) {
	t.Parallel()
	const source = `<?php $secret = "SOURCE"; echo "ran";`
	a := startApp(t, appOptions{
		TOML: "[server]\nfallback = [\"$uri\", \"$uri/\", \"=404\"]\n",
		Files: map[string]string{
			"shell.php": source, "upper.PHP": source, "mixed.pHp": source, "dir/index.php": source,
			"twice.php.php": source, "odd name.php": source, ".php": source,
		}})
	for _, target := range []string{
		"/shell.php", "/shell%2ephp", "/shell.%70hp", "/shell.ph%70", "//shell.php", "/./shell.php", "/shell.php/", "/shell.php/.", "/shell.php//",
		"/shell.php?", "/shell.php?x.txt", "/shell.php/x.txt", "/shell.php/x.css", "/shell.php;x.txt", "/shell.php%3bx.txt", "/shell.php%20", "/shell.php.",
		"/shell.php%0a", "/shell.php%00", "/shell.php%00.txt", "/shell.php~", "/shell.php::$DATA", "/shell.php%3a%3a$DATA", "/SHELL.PHP", "/shell.PHP", "/Shell.php",
		"/upper.PHP", "/upper.PHP/", "/upper.PHP/x", "/upper.%50HP", "/upper.php", "/mixed.pHp", "/mixed.pHp?x", "/mixed.php", "/dir", "/dir/", "/dir/index.php", "/dir/index.php/",
		"/twice.php.php", "/twice.php", "/twice.php/.php", "/odd%20name.php", "/odd+name.php", "/.php", "/x/../shell.php", `/x\..\shell.php`, "/shell.php#x", "/shell.php%23",
		"/shell%ef%b9%92php", "/shell%ef%bc%8ephp", "/shell.%ef%bd%90hp", "/shell.p%ef%bd%88p", "/shell.%f0%9d%93%85hp", "/shell.%e2%93%9fhp",
		"/*.php", "/shell*", "/shell.ph?", "/shell.ph%3f", "http://x/shell.php", "http://x/upper.PHP",
	} {
		for _, header := range []string{"X-None: x", "Range: bytes=0-4", "Accept: text/plain", "If-None-Match: \"x\"", "X-Rewrite-URL: /shell.php"} {
			resp, body := a.getExactly(target, header)
			if strings.Contains(body, "<?") || strings.Contains(body, "SOURCE") {
				t.Errorf("GET %s with %s: %s, source is shown: %q", target, header, resp.Status, body)
			}
		}
	}
	for _, method := range []string{"HEAD", "OPTIONS", "PROPFIND", "TRACE", "PUT"} {
		for _, target := range []string{"/shell.php", "/upper.PHP"} {
			w := a.connect()
			w.send(method + " " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if text, _ := w.rest(); strings.Contains(text, "<?") || strings.Contains(text, "SOURCE") {
				t.Errorf("%s %s: source is shown: %q", method, target, text)
			}
		}
	}
}

// Look-alikes of ".php" are names like any other: neither run, nor do they end a
// script's name. The offsets are those of the path that was sent.
func TestLookalikesOfPHPAreNotPHP(t *testing.T) {
	t.Parallel()
	const code = `<?php echo "ran";`
	names := []string{"shell﹒php", "shell．php", "shell.ｐhp", "shell.pｈp", "shell.𝓅𝒽𝓅", "shell.ⓟⓗⓟ", "x.¡.txt", "shell.phⓟ", "shell.PHP", "shell.php\u200b", "shell.php5", "shell.phtml"}
	files := map[string]string{
		"ȺȺȺȺshell.php.txt.php": `<?php echo "the right one ", $_SERVER['PATH_INFO'];`,
		"index.php":             `<?php echo "index";`,
	}
	for _, name := range names {
		files["up/"+name] = code
	}
	a := startApp(t, appOptions{Files: files})
	hundred(t, func(i int) error {
		// The first ".php" that ends a segment ends the script's name.
		return wantBody(a.request("GET", fmt.Sprintf("/%%C8%%BA%%C8%%BA%%C8%%BA%%C8%%BAshell.php.txt.php/p%d", i), ""), fmt.Sprintf("the right one /p%d", i))
	})
	for _, name := range names {
		for _, rest := range []string{"", "/x", "/x.php"} {
			if resp, body := a.getExactly("/up/" + name + rest); strings.Contains(body, "ran") && !strings.Contains(body, "<?php") {
				t.Errorf("GET /up/%s%s was run: %s %q", name, rest, resp.Status, body)
			}
		}
	}
}
