package server

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ephpm/phpbridge"
)

// namesFile is a script that answers with a header and a body.
func namesFile(status int, header ...string) *fakePool {
	return &fakePool{run: func(_ context.Context, w http.ResponseWriter, _ *phpbridge.Request) error {
		for i := 0; i < len(header); i += 2 {
			w.Header().Add(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "what the script printed") // where a body may be
		_ = http.NewResponseController(w).Flush()
		return nil
	}}
}

// sender returns a server whose script answers so, and its directory of files.
func sender(t *testing.T, pool *fakePool) (s *Server, dir string) {
	t.Helper()
	dir = files(t, "in/a b.txt", "page.html", "data.bin", "sub/")
	outside := files(t, "secret.txt")
	for name, to := range map[string]string{"out.txt": outside + "/secret.txt", "ok.txt": "in/a b.txt"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return newTest(t, files(t, "index.php"), pool, func(c *Config) {
		c.Server.Sendfile.Roots = []SendfileRoot{{"/p/", outside}, {"/p/files/", dir}}
	}), dir
}

func TestScriptNamesAFile(t *testing.T) {
	for _, test := range []struct {
		header, name string // DIR stands for the directory
		want         string // the content, or empty for 404
	}{
		{"X-Accel-Redirect", "/p/files/data.bin", "content of data.bin"},
		{"X-Accel-Redirect", "/p/files/in/a%20b.txt", "content of in/a b.txt"},
		{"X-Accel-Redirect", "/p/files/in/a b.txt?x=1", "content of in/a b.txt"},
		{"X-Accel-Redirect", "/p/files/ok.txt", "content of in/a b.txt"},
		{"X-Accel-Redirect", "/p/secret.txt", "content of secret.txt"},
		{"X-Sendfile", "DIR/in/a b.txt", "content of in/a b.txt"},
		{"X-Sendfile", "DIR/in/../data.bin", "content of data.bin"},

		{"X-Accel-Redirect", "/p/files/missing", ""},
		{"X-Accel-Redirect", "/p/files/out.txt", ""},
		{"X-Accel-Redirect", "/p/files/sub", ""},
		{"X-Accel-Redirect", "/p/files/sub/", ""},
		{"X-Accel-Redirect", "/p/files/data.bin/", ""},
		{"X-Accel-Redirect", "/p/files/", ""},
		{"X-Accel-Redirect", "/p/files/../secret.txt", ""},
		{"X-Accel-Redirect", "/p/files/%2e%2e/secret.txt", ""},
		{"X-Accel-Redirect", "/p/files/a%00", ""},
		{"X-Accel-Redirect", "/p/%zz", ""},
		{"X-Accel-Redirect", "/other/data.bin", ""},
		{"X-Accel-Redirect", "data.bin", ""},
		{"X-Accel-Redirect", "DIR/data.bin", ""},
		{"X-Sendfile", "/p/files/data.bin", ""},
		{"X-Sendfile", "DIR/missing", ""},
		{"X-Sendfile", "DIR/out.txt", ""},
		{"X-Sendfile", "DIR/sub", ""},
		{"X-Sendfile", "DIR", ""},
		{"X-Sendfile", "DIR/../../etc/passwd", ""},
		{"X-Sendfile", "DIRx/data.bin", ""},
		{"X-Sendfile", "/etc/passwd", ""},
		{"X-Sendfile", "in/a b.txt", ""},
	} {
		pool := namesFile(200)
		s, dir := sender(t, pool)
		*pool = *namesFile(200, test.header, strings.Replace(test.name, "DIR", dir, 1), "Set-Cookie", "a=1")
		r := get(s, "/")
		body := text(t, r)
		if test.want == "" {
			if r.StatusCode != 404 || body != "404 Not Found\n" || r.Header.Get("Set-Cookie") != "" {
				t.Errorf("%s: %s: %d %q %v, want a plain 404", test.header, test.name, r.StatusCode, body, r.Header)
			}
		} else if r.StatusCode != 200 || body != test.want {
			t.Errorf("%s: %s: %d %q, want %q", test.header, test.name, r.StatusCode, body, test.want)
		}
		if r.Header.Get(test.header) != "" {
			t.Errorf("%s: %s reached the client", test.header, test.name)
		}
	}
}

func TestNamedFileKeepsTheScriptsHeaders(t *testing.T) {
	pool := namesFile(200, "X-Accel-Redirect", "/p/files/page.html", "Content-Type", "application/x-own", "Content-Length", "3",
		"Content-Encoding", "gzip", "Content-Disposition", "attachment", "Set-Cookie", "a=1", "Set-Cookie", "b=2",
		"Cache-Control", "private", "Etag", `"own"`, "Last-Modified", "Sat, 01 Jan 2000 00:00:00 GMT")
	s, _ := sender(t, pool)
	r := get(s, "/")
	if body := text(t, r); body != "content of page.html" || r.Header.Get("Content-Length") != "20" {
		t.Errorf("%q of length %s", body, r.Header.Get("Content-Length"))
	}
	for name, want := range map[string]string{
		"Content-Type": "application/x-own", "Content-Disposition": "attachment", "Set-Cookie": "a=1", "Cache-Control": "private",
		"Etag": `"own"`, "Last-Modified": "Sat, 01 Jan 2000 00:00:00 GMT", "Content-Encoding": "", "Accept-Ranges": "bytes",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if n := len(r.Header["Set-Cookie"]); n != 2 {
		t.Errorf("%d cookies, want 2", n)
	}
}

// What PHP says when the script says nothing is not the type of a file.
func TestTypeOfANamedFile(t *testing.T) {
	for said, want := range map[string]string{
		"":                         "application/octet-stream",
		"text/html; charset=UTF-8": "application/octet-stream",
		"text/html":                "text/html",
	} {
		header := []string{"X-Accel-Redirect", "/p/files/data.bin"}
		if said != "" {
			header = append(header, "Content-Type", said)
		}
		s, _ := sender(t, namesFile(200, header...))
		if got := get(s, "/").Header.Get("Content-Type"); got != want {
			t.Errorf("said %q: %q, want %q", said, got, want)
		}
	}
}

func TestRangesAndConditionsOfANamedFile(t *testing.T) {
	s, _ := sender(t, namesFile(200, "X-Accel-Redirect", "/p/files/data.bin", "Etag", `"e"`))
	for _, test := range []struct {
		method, name, value string
		status              int
		body                string
	}{
		{"GET", "Range", "bytes=0-6", 206, "content"},
		{"GET", "Range", "bytes=-3", 206, "bin"},
		{"GET", "Range", "bytes=100-", 416, "invalid range: failed to overlap\n"},
		{"GET", "If-None-Match", `"e"`, 304, ""},
		{"GET", "If-Match", `"other"`, 412, ""},
		{"HEAD", "X", "y", 200, ""},
		{"POST", "Range", "bytes=0-6", 200, "content of data.bin"},
		{"POST", "If-None-Match", `"e"`, 200, "content of data.bin"},
	} {
		r := httptest.NewRequest(test.method, "/", nil)
		r.Header.Set(test.name, test.value)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != test.status || w.Body.String() != test.body {
			t.Errorf("%s %s %s: %d %q, want %d %q", test.method, test.name, test.value, w.Code, w.Body, test.status, test.body)
		}
		if test.method == "HEAD" && w.Header().Get("Content-Length") != "19" {
			t.Errorf("HEAD: %v, want the file's length", w.Header())
		}
	}
}

func TestOnlyA200NamesAFile(t *testing.T) {
	for _, status := range []int{201, 204, 403, 500} {
		s, _ := sender(t, namesFile(status, "X-Sendfile", "/etc/passwd", "X-Accel-Redirect", "/p/files/data.bin", "X-Own", "1"))
		r := get(s, "/")
		if r.StatusCode != status || r.Header.Get("X-Own") != "1" || r.Header.Get("X-Sendfile")+r.Header.Get("X-Accel-Redirect") != "" {
			t.Errorf("%d: %d %v, want the script's answer without the names", status, r.StatusCode, r.Header)
		}
		if body := text(t, r); status != 204 && body != "what the script printed" {
			t.Errorf("%d: %q", status, body)
		}
	}
}

func TestNamesAreOrdinaryHeadersWithoutRoots(t *testing.T) {
	s := newTest(t, files(t, "index.php"), namesFile(200, "X-Sendfile", "/etc/hosts"))
	if r := get(s, "/"); r.Header.Get("X-Sendfile") != "/etc/hosts" || text(t, r) != "what the script printed" {
		t.Errorf("%v, want the script's answer as it is", r.Header)
	}
}

func TestConfigurationIsNeverANamedFile(t *testing.T) {
	dir := files(t, "ephpm.toml")
	s := newTest(t, files(t, "index.php"), namesFile(200, "X-Sendfile", dir+"/ephpm.toml"), func(c *Config) {
		c.File = dir + "/ephpm.toml"
		c.Server.Sendfile.Roots = []SendfileRoot{{"/p/", dir}}
	})
	if r := get(s, "/"); r.StatusCode != 404 {
		t.Errorf("%d %q, want 404", r.StatusCode, text(t, r))
	}
}

func TestDeadScriptSendsNoFile(t *testing.T) {
	pool := &fakePool{run: func(_ context.Context, w http.ResponseWriter, _ *phpbridge.Request) error {
		w.Header().Set("X-Accel-Redirect", "/p/files/data.bin")
		w.WriteHeader(200)
		return &phpbridge.CrashError{}
	}}
	s, _ := sender(t, pool)
	if r := get(s, "/"); r.StatusCode != 502 || r.Header.Get("X-Accel-Redirect") != "" {
		t.Errorf("%d %v, want 502", r.StatusCode, r.Header)
	}
}
