package phpbridge

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// temporary makes a directory that is the one for temporary files of all pools
// that the test starts.
func temporary(t *testing.T) string {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return dir
}

// files lists all regular files below a directory.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			list = append(list, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

const upload = "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\nuploaded\r\n--x--\r\n"

// A worker ends while temporary files of PHP are open.
func TestAKilledScriptLeavesNoTemporaryFiles(t *testing.T) {
	dir := temporary(t)
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers = 1, 1 })
	const form, bytes = "multipart/form-data; boundary=x", "application/octet-stream"
	for name, c := range map[string]struct {
		code, contentType, body string
		signal                  syscall.Signal
	}{
		"an upload at a crash":    {`$n = filesize($_FILES["f"]["tmp_name"]);`, form, upload, syscall.SIGSEGV},
		"an upload when killed":   {`$n = filesize($_FILES["f"]["tmp_name"]);`, form, upload, syscall.SIGKILL},
		"a large body at a crash": {`$n = strlen(file_get_contents("php://input"));`, bytes, strings.Repeat("x", 100_000), syscall.SIGSEGV},
		"tmpfile when killed":     {`$n = fwrite($f = tmpfile(), "xx");`, bytes, "", syscall.SIGKILL},
		"php://temp when killed":  {`$n = fwrite($f = fopen("php://temp/maxmemory:1", "w+"), "xx");`, bytes, "", syscall.SIGKILL},
	} {
		var seen string
		var open []string
		r := post(script(t, c.code+` ephpm_ws_send("$n"); sleep(60);`), c.contentType, c.body)
		r.Host = hostFunc(func(call *Call) {
			seen, open = call.String(0), files(t, dir)
			p.kill(jobOf(p, r).state().slot(), c.signal)
		})
		if _, err := p.Serve(t.Context(), httptest.NewRecorder(), r); err == nil {
			t.Errorf("%s: Serve returned without an error", name)
		}
		if seen == "" || seen == "0" || len(open) != 1 {
			t.Errorf("%s: the script read or wrote %q bytes, its files are %q; want one", name, seen, open)
		}
		waitFor(t, "an end of the files of "+name, func() bool { return len(files(t, dir)) == 0 })
	}
	if got := body(t, run(t, p, post(script(t, `echo file_get_contents($_FILES["f"]["tmp_name"]);`), form, upload))); got != "uploaded" {
		t.Errorf("the next upload is %q", got)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("Close leaves %v, %v", left, err)
	}
}

// Files that a script has made by name are its own.
func TestAKilledScriptKeepsItsFiles(t *testing.T) {
	dir := temporary(t)
	p := testPool(t, nil)
	kept := []string{
		"phplongername", "php12345x", "other1",
		"phpPUBLC", "sub/phpABCDEF", // as long as PHP's names
		"php0123456789abcPUBLIC", "sub/php0123456789abcABCDEF", // since PHP 8.4
	}
	code := `mkdir("` + dir + `/sub"); $open = []; `
	for _, name := range kept {
		code += fmt.Sprintf(`$open[] = fopen("%s/%s", "x"); `, dir, name)
	}
	r := script(t, code+`ephpm_ws_send("now"); sleep(60);`)
	r.Host = hostFunc(func(*Call) { p.kill(jobOf(p, r).state().slot(), syscall.SIGKILL) })
	if _, err := p.Serve(t.Context(), httptest.NewRecorder(), r); err == nil {
		t.Fatal("Serve returned without an error")
	}
	for _, name := range kept {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// A server that was killed could not tidy up. The next one does, but leaves what
// another uses.
func TestUploadsOfAServerThatWasKilledAreRemoved(t *testing.T) {
	base := t.TempDir()
	used, err := newUploads(base, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer used.close()
	abandoned := filepath.Join(base, "ephpm-uploads-1")
	young := filepath.Join(base, "ephpm-uploads-2")
	for _, dir := range []string{abandoned, young} {
		if err := os.MkdirAll(filepath.Join(dir, "0-1"), 0o700); err != nil {
			t.Fatal(err)
		}
		touch(t, filepath.Join(dir, "0-1", "phpABCDEF"))
	}
	old := time.Now().Add(-time.Hour)
	for _, dir := range []string{abandoned, used.dir} {
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	second, err := newUploads(base, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer second.close()
	for dir, want := range map[string]bool{abandoned: false, young: true, used.dir: true, second.dir: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v; want it there: %v", filepath.Base(dir), err, want)
		}
	}
	if dir := used.open(3, 7); dir == "" {
		t.Error("no directory for a worker")
	}
	used.close()
	if dir := used.open(4, 1); dir != "" {
		t.Errorf("a directory %q after close", dir)
	}
}
