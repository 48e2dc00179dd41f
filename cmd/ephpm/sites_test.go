package main

import (
	"os"
	"strings"
	"testing"
)

const twoSites = `
[[site]]
names = ["a.example"]
root = "a"
timeouts.request = 5

[[site]]
names = ["b.example"]
root = "b"
[site.websocket]
max_connections = 0
`

func TestSitesAreListsOfTables(t *testing.T) {
	inDir(t, twoSites)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	check := func(source string, r request) {
		t.Helper()
		c := mustLoad(t, r)
		if len(c.Sites) != 2 || c.Sites[0].Names[0] != "a.example" || !strings.HasSuffix(c.Sites[1].Root, "b") {
			t.Fatalf("%s: sites = %+v", source, c.Sites)
		}
		if a, b := c.Sites[0], c.Sites[1]; a.Timeouts.Request == nil || a.Timeouts.Request.String() != "5s" || b.Timeouts.Request != nil ||
			a.WebSocket.MaxConnections != nil || b.WebSocket.MaxConnections == nil || *b.WebSocket.MaxConnections != 0 {
			t.Errorf("%s: sites = %+v", source, c.Sites)
		}
		if c.Server.DocumentRoot != "" {
			t.Errorf("%s: document_root = %q beside sites, want none unless it is set", source, c.Server.DocumentRoot)
		}
	}
	check("tables", request{})
	if c := mustLoad(t, request{file: dir + "/ephpm.toml"}); c.Sites[0].Root != dir+"/a" {
		t.Errorf("root = %q, want it below the file's directory", c.Sites[0].Root)
	}
	const inline = `[{"names": ["a.example"], "root": "a", "timeouts": {"request": 5}},
		{"names": ["b.example"], "root": "b", "websocket": {"max_connections": 0}}]`
	inFile := strings.NewReplacer(`":`, `=`, `"names`, `names`, `"root`, `root`, `"timeouts`, `timeouts`, `"request`, `request`,
		`"websocket`, `websocket`, `"max_connections`, `max_connections`).Replace(inline)
	if err := os.WriteFile("ephpm.toml", []byte("site = "+inFile), 0o644); err != nil {
		t.Fatal(err)
	}
	check("inline tables", request{})
	if err := os.Remove("ephpm.toml"); err != nil {
		t.Fatal(err)
	}
	check("environment", request{root: "", environ: []string{"EPHPM_SITE=" + inline, "EPHPM_SERVER__DOCUMENT_ROOT="}})
}

func TestMistakesInSitesNameLineAndKey(t *testing.T) {
	for source, want := range map[string]string{
		"[[site]]\nnames = 1\n[[site]]\nroot = 2\n": "ephpm.toml:2: site[1].names: want a list; got the integer 1\n" +
			"ephpm.toml:4: site[2].root: want a string; got the integer 2",
		"[[site]]\nname = \"a\"\n":            "ephpm.toml:2: site[1].name: unknown key; did you mean names?",
		"[[site]]\n[site.tls]\nkay = \"a\"\n": "ephpm.toml:3: site[1].tls.kay: unknown key; did you mean key?",
		"[site]\nnames = []\n":                "ephpm.toml:1: site: is a list of tables; each begins with a line [[site]]",
		"site = [{ names = 1 }]\n":            "ephpm.toml:1: site: entry 1: names: want a list; got the integer 1",
		"site = [1]\n":                        "ephpm.toml:1: site: entry 1: want a table; got the integer 1",
		"[[server]]\nlisten = ''\n":           "ephpm.toml:1: server: is a table; its keys go below a line [server]",
	} {
		inDir(t, source)
		if _, _, err := load(request{}); err == nil || err.Error() != want {
			t.Errorf("%s gives\n%v\nwant\n%s", source, err, want)
		}
	}
	inDir(t, "[[site]]\nnames = ['a']\nroot = '.'\n\n[[site]]\nroot = 'x'\nnames = [\n'a/b']\n")
	_, _, err := load(request{})
	for _, want := range []string{`ephpm.toml:7: site[2].names: "a/b" is not a host name`, "ephpm.toml:6: site[2].root: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("load = %v, want %q in it", err, want)
		}
	}
}
