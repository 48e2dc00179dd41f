package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// form returns a multipart body and its content type. Parts are a field's name, a
// file's name, empty for a plain field, and the content.
func form(parts ...[3]string) (body, contentType string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		var part io.Writer
		if p[1] == "" {
			part, _ = w.CreateFormField(p[0]) // a buffer takes everything
		} else {
			part, _ = w.CreateFormFile(p[0], p[1])
		}
		_, _ = io.WriteString(part, p[2])
	}
	_ = w.Close()
	return b.String(), w.FormDataContentType()
}

func TestUpload(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php
		$f = $_FILES['file'];
		echo json_encode([$f['name'], $f['full_path'], $f['type'], $f['size'], $f['error'], is_uploaded_file($f['tmp_name']),
			is_uploaded_file(__FILE__), file_get_contents($f['tmp_name']), $_POST, file_get_contents('php://input')]);`}})
	hundred(t, func(i int) error {
		content := fmt.Sprintf("bar %d", i)
		body, kind := form([3]string{"i", "", fmt.Sprint(i)}, [3]string{"file", "foo.txt", content})
		return wantBody(a.request("POST", "/", body, "Content-Type", kind),
			fmt.Sprintf(`["foo.txt","foo.txt","application\/octet-stream",%d,0,true,false,"%s",{"i":"%d"},""]`, len(content), content, i))
	})
}

func TestUploadOfManyFiles(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php
		echo json_encode([$_FILES['f']['name'], array_map('file_get_contents', array_filter($_FILES['f']['tmp_name'])), $_FILES['f']['error'], $_POST]);`}})
	body, kind := form([3]string{"f[]", "one.txt", "1"}, [3]string{"f[]", "zwei é.txt", "22"}, [3]string{"f[key]", "three.txt", "333"}, [3]string{"p[x][]", "", "a b&c"})
	if err := wantBody(a.request("POST", "/", body, "Content-Type", kind),
		`[{"0":"one.txt","1":"zwei \u00e9.txt","key":"three.txt"},{"0":"1","1":"22","key":"333"},{"0":0,"1":0,"key":0},{"p":{"x":["a b&c"]}}]`); err != nil {
		t.Error(err)
	}
}

func TestUploadByCurlIsMoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// More than is kept in memory, and than curl sends without being asked for.
	content := repeat(3_000_000)
	writeFiles(t, dir, map[string]string{"source.bin": content})
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php
		$t = $_FILES['file']['tmp_name'];
		echo (int) move_uploaded_file($t, $_GET['to']), (int) file_exists($t), ' ', $_FILES['file']['name'], ' ', $_POST['note'];`}})
	out, err := exec.Command("curl", "-sS", "--max-time", maxTime, "-F", "note=by curl", "-F", "file=@"+dir+"/source.bin;type=image/png",
		a.URL+"/?to="+dir+"/moved.bin").CombinedOutput()
	if err != nil || string(out) != "10 source.bin by curl" {
		t.Errorf("curl: %v, %q", err, out)
	}
	if got, err := os.ReadFile(dir + "/moved.bin"); err != nil || string(got) != content {
		t.Errorf("the file that was moved has %d bytes, %v; want %d", len(got), err, len(content))
	}
}

func TestUploadedFileIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := startApp(t, appOptions{
		TOML:  fmt.Sprintf("[php]\nini_overrides = [[\"upload_tmp_dir\", %q]]\n", dir),
		Files: map[string]string{"index.php": `<?php echo dirname($_FILES['file']['tmp_name']); if (isset($_GET['fatal'])) missing();`},
	})
	for _, path := range []string{"/", "/?fatal"} {
		body, kind := form([3]string{"file", "foo.txt", "bar"})
		if _, got := a.do(a.request("POST", path, body, "Content-Type", kind)); !strings.HasPrefix(got, dir+"/ephpm-uploads-") {
			t.Errorf("uploaded to %q, want a directory of the worker in %q", got, dir)
		}
		wantNoFiles(t, dir)
	}
	a.Stop()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the server left %v, %v", left, err)
	}
}

// wantNoFiles waits until there are no files in a directory and below.
func wantNoFiles(t *testing.T, dir string) {
	t.Helper()
	err := eventually(func() error {
		if left := regularFiles(t, dir); len(left) > 0 {
			return fmt.Errorf("left are %q", left)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// regularFiles lists the files in a directory and below.
func regularFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has gone meanwhile
		}
		if err == nil && e.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return files
}

func TestLargeUploadIsComplete(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[server.request]\nmax_body_size = \"64MB\"\n[php]\nmemory_limit = \"16M\"\n",
		Files: map[string]string{"index.php": `<?php echo isset($_FILES['file']) ? hash_file('sha256', $_FILES['file']['tmp_name']) : hash_file('sha256', 'php://input');`},
	})
	content := repeat(40_000_000)
	body, kind := form([3]string{"file", "large.bin", content})
	if err := wantBody(a.request("POST", "/", body, "Content-Type", kind), sum(content)); err != nil {
		t.Error(err)
	}
	if err := wantBody(a.request("PUT", "/", content), sum(content)); err != nil {
		t.Error(err)
	}
}

func TestSizeOfALargeInput(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php echo $_GET['i'], ' ', strlen(file_get_contents('php://input'));`}})
	body := repeat(6_048_576)
	hundred(t, func(i int) error {
		return wantBody(a.request("POST", fmt.Sprintf("/?i=%d", i), body, "Content-Type", "text/plain"), fmt.Sprintf("%d 6048576", i))
	})
}

func TestChunkedBody(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php echo $_SERVER['CONTENT_LENGTH'], ' ', $_POST['a'] ?? 'none', ' ', hash('sha256', file_get_contents('php://input'));`}})
	for _, size := range []int{0, 1, 65_534, 65_535, 65_536, 65_537, 1_000_000} {
		body := "a=" + repeat(size)
		// A reader of unknown length is sent in chunks.
		req, err := http.NewRequest("POST", a.URL+"/", io.MultiReader(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if err := wantBody(req, fmt.Sprintf("%d %s %s", len(body), body[2:], sum(body))); err != nil {
			t.Errorf("%d bytes: %.200v", size, err)
		}
	}
}

func TestBodyOverTheLimitIs413(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	a := startApp(t, appOptions{
		TOML: "[server.request]\nmax_body_size = 100_000\n",
		Files: map[string]string{"index.php": `<?php
			if (isset($_GET['mark'])) file_put_contents($_GET['mark'], 'ran');
			echo strlen(file_get_contents('php://input')), ini_get('post_max_size'), ' ', ini_get('upload_max_filesize');`}})
	if err := wantBody(a.request("POST", "/", repeat(100_000)), "100000100000 100000"); err != nil {
		t.Error(err)
	}
	for _, body := range []io.Reader{strings.NewReader(repeat(100_001)), io.MultiReader(strings.NewReader(repeat(100_001)))} {
		req, err := http.NewRequest("POST", a.URL+"/?mark="+mark, body)
		if err != nil {
			t.Fatal(err)
		}
		if resp, _, err := fetch(req); err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("length %d: %v, %v; want 413", req.ContentLength, resp, err)
		}
	}
	// Announced, never sent: the answer does not wait for it.
	resp, _ := a.exchange("POST /?mark=" + mark + " HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n")
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("announced only: %s, want 413", resp.Status)
	}
	// A client that asks first is told before it sends.
	resp, _ = a.exchange("POST /?mark=" + mark + " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 100001\r\n\r\n")
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("with Expect: %s, want 413", resp.Status)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the script was run")
	}
}

func TestClientThatAsksFirstIsToldToContinue(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php readfile('php://input');`}})
	w := a.connect()
	w.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
	if resp, err := http.ReadResponse(w.in, nil); err != nil || resp.StatusCode != 100 {
		t.Fatalf("%v, %v; want 100", resp, err)
	}
	w.send("body")
	if _, body := w.answer(); body != "body" {
		t.Errorf("the answer is %q", body)
	}
}

func TestSlowUploadHoldsNoWorker(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  metricsOn + "[php]\nworkers = 1\nworker_backlog = 1\n", // for the one behind the last answer
		Files: map[string]string{"index.php": `<?php echo strlen(file_get_contents('php://input'));`},
	})
	var slow []*wire
	for range 20 {
		w := a.connect()
		w.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nhalf of it")
		slow = append(slow, w)
	}
	a.waitMetric("ephpm_http_requests_in_flight", 21) // with the one that asks
	if err := wantBody(a.request("GET", "/", ""), "0"); err != nil {
		t.Error(err)
	}
	for _, w := range slow {
		w.send(repeat(100_000 - len("half of it")))
		if _, body := w.answer(); body != "100000" {
			t.Errorf("a slow upload: %q", body)
		}
	}
}

func TestUploadThatStallsIs408(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	a := startApp(t, appOptions{
		TOML:  "[server.timeouts]\nidle = \"200ms\"\n",
		Files: map[string]string{"index.php": `<?php file_put_contents($_GET['mark'], 'ran');`},
	})
	for _, body := range []string{"", "half of it"} {
		w := a.connect()
		w.send("POST /?mark=" + mark + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n" + body)
		if resp, _ := w.answer(); resp.StatusCode != http.StatusRequestTimeout {
			t.Errorf("behind %q: %s, want 408", body, resp.Status)
		}
		if _, err := w.rest(); err != nil {
			t.Errorf("the connection stays open: %v", err)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the script was run with half a body")
	}
}

func TestClientThatLeavesWhileItSendsRunsNothing(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	a := startApp(t, appOptions{TOML: metricsOn, Files: map[string]string{"index.php": `<?php file_put_contents($_GET['mark'], 'ran');`}})
	w := a.connect()
	w.send("POST /?mark=" + mark + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\nhalf of it")
	a.waitMetric("ephpm_http_requests_in_flight", 2)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a.waitMetric("ephpm_http_requests_in_flight", 1)
	if _, err := os.Stat(mark); err == nil {
		t.Error("the script was run with half a body")
	}
}

func TestFileOverPHPsLimitIsTold(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[php]\nini_overrides = [[\"upload_max_filesize\", \"1K\"]]\n",
		Files: map[string]string{"index.php": `<?php echo $_FILES['file']['error'] === UPLOAD_ERR_INI_SIZE ? 'too large' : 'fits';`},
	})
	for size, want := range map[int]string{1000: "fits", 2000: "too large"} {
		body, kind := form([3]string{"file", "foo.txt", repeat(size)})
		if err := wantBody(a.request("POST", "/", body, "Content-Type", kind), want); err != nil {
			t.Error(err)
		}
	}
}
