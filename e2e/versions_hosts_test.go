package e2e

import (
	"fmt"
	"io"
	"net/http"
	"testing"
)

// The host chooses the site, and may be refused, in all versions: HTTP/2 and HTTP/3 have
// it in :authority.
func TestVersionsChooseSitesAlike(t *testing.T) {
	t.Parallel()
	roots := map[string]string{"a.test": t.TempDir(), "*.wild.test": t.TempDir()}
	toml := "[server.request]\ntrusted_hosts = [\"a.test\", \"*.wild.test\", \"nobodys.test\"]\n"
	for name, root := range roots {
		writeFiles(t, root, map[string]string{"index.php": `<?php echo "` + name + ` ", $_SERVER['HTTP_HOST'], ' ', $_SERVER['SERVER_NAME'], ' ', $_SERVER['REQUEST_URI'];`})
		toml += fmt.Sprintf("[[site]]\nnames = [%q]\nroot = %q\n", name, root)
	}
	a := startHTTP3(t, appOptions{TOML: toml})
	for _, v := range a.versions() {
		for _, test := range []struct {
			host   string
			status int
			body   string
		}{
			{"a.test", 200, "a.test a.test a.test /x?y"},
			{"A.Test:443", 200, "a.test A.Test:443 A.Test /x?y"},
			{"b.c.wild.test", 200, "*.wild.test b.c.wild.test b.c.wild.test /x?y"},
			{"nobodys.test", 404, ""},
			{"wild.test", 421, ""},
			{"other.test", 421, ""},
			{"127.0.0.1", 421, ""},
		} {
			req, err := http.NewRequest("GET", v.url+"/x?y", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = test.host
			resp, err := v.client.Do(req)
			if err != nil {
				t.Fatalf("%s over %s: %v", test.host, v.name, err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close() // all was read, or it failed
			if err != nil || resp.ProtoMajor != v.major || resp.StatusCode != test.status || test.body != "" && string(body) != test.body {
				t.Errorf("%s over %s: %s %s %q, %v; want %d %q", test.host, v.name, resp.Proto, resp.Status, body, err, test.status, test.body)
			}
		}
	}
}
