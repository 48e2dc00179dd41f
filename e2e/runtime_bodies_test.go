package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	h2 "golang.org/x/net/http2"
)

// PHP parses uploads itself, and tells what is wrong with one by its own codes.
func TestUploadErrorsArePHPs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := startApp(t, appOptions{
		TOML: fmt.Sprintf("[php]\nini_overrides = [[\"upload_max_filesize\", \"1000\"], [\"max_file_uploads\", \"3\"], [\"upload_tmp_dir\", %q]]\n", dir),
		Files: map[string]string{"index.php": `<?php
			echo json_encode(array_map(fn ($f) => [$f['name'], $f['error'], $f['size']], $_FILES)), ' ', json_encode($_POST);`},
	})
	hundred(t, func(i int) error {
		small := repeat(i)
		body, kind := form(
			[3]string{"note", "", fmt.Sprint(i)},
			[3]string{"a", "small.txt", small},
			[3]string{"MAX_FILE_SIZE", "", "500"},
			[3]string{"b", "over_form.txt", repeat(600)},
			[3]string{"c", "over_ini.txt", repeat(2000)},
			[3]string{"d", "fourth.txt", "one too many"},
		)
		// A file input that nothing was chosen for.
		boundary := kind[strings.Index(kind, "boundary=")+len("boundary="):]
		body = "--" + boundary + "\r\nContent-Disposition: form-data; name=\"none\"; filename=\"\"\r\n\r\n\r\n" + body
		return wantBody(a.request("POST", "/", body, "Content-Type", kind), fmt.Sprintf(
			`{"none":["",4,0],"a":["small.txt",0,%d],"b":["over_form.txt",2,0],"c":["over_ini.txt",1,0]} {"note":"%d","MAX_FILE_SIZE":"500"}`, i, i))
	})
	// One whose end is missing.
	body, kind := form([3]string{"a", "cut.txt", repeat(900)})
	if err := wantBody(a.request("POST", "/", body[:500], "Content-Type", kind), `{"a":["cut.txt",3,0]} []`); err != nil {
		t.Error(err)
	}
	if left := regularFiles(t, dir); len(left) > 0 {
		t.Errorf("temporary files are left: %q", left)
	}
}

// A killed script cannot clean up. Its upload is not found by the next, and goes.
func TestUploadOfAKilledScriptIsNotTheNexts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := startApp(t, appOptions{
		TOML: "[server.timeouts]\nrequest = \"200ms\"\nrequest_grace = 0\n[php]\nworkers = 1\n" +
			fmt.Sprintf("ini_overrides = [[\"upload_tmp_dir\", %q]]\n", dir),
		Files: map[string]string{"index.php": `<?php if ($_FILES) sleep(60); echo count($_FILES), count($_POST), strlen(file_get_contents('php://input'));`},
	})
	body, kind := form([3]string{"a", "x.txt", "secret"}, [3]string{"b", "", "secret"})
	if resp, _ := a.do(a.request("POST", "/", body, "Content-Type", kind)); resp.StatusCode != 504 {
		t.Errorf("%s, want 504", resp.Status)
	}
	if err := wantBody(a.request("GET", "/", ""), "000"); err != nil {
		t.Error(err)
	}
	wantNoFiles(t, dir)
}

// Two hundred clients that send a byte a second hold none of four workers.
func TestManySlowUploadsHoldNoWorker(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  metricsOn + "[php]\nworkers = 4\nworker_backlog = 200\n",
		Files: map[string]string{"index.php": `<?php echo $_GET['i'], ' ', file_get_contents('php://input');`},
	})
	const clients, bytes = 200, 3
	wires := make([]*wire, clients)
	for i := range wires {
		wires[i] = a.connect()
		wires[i].send(fmt.Sprintf("POST /?i=%d HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", i, bytes))
	}
	a.waitMetric("ephpm_http_requests_in_flight", clients+1)
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for n := range bytes {
		start := time.Now()
		hundred(t, func(i int) error {
			return wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""), fmt.Sprintf("%d ", i))
		})
		t.Logf("beside %d slow uploads, 100 pages took %v", clients, time.Since(start))
		<-second.C
		for _, w := range wires {
			w.send(strconv.Itoa(n))
		}
	}
	for i, w := range wires {
		if _, body := w.answer(); body != fmt.Sprintf("%d 012", i) {
			t.Errorf("slow upload %d: %q", i, body)
		}
	}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A watch looks at the memory of the front and of the workers until it is ended.
type watch struct {
	stop           chan struct{}
	wg             sync.WaitGroup
	front, workers int // the most seen, in bytes of PSS without files
	err            error
}

func (a *app) watchMemory() *watch {
	w := &watch{stop: make(chan struct{})}
	w.wg.Go(func() { // until end
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			front, workers, err := a.memoryByRole()
			if err != nil && w.err == nil {
				w.err = err
			}
			w.front, w.workers = max(w.front, front), max(w.workers, workers)
			select {
			case <-tick.C:
			case <-w.stop:
				return
			}
		}
	})
	return w
}

func (w *watch) end() {
	close(w.stop)
	w.wg.Wait()
}

// memoryByRole returns the memory of the front and that of all workers, which may
// come and go.
func (a *app) memoryByRole() (front, workers int, err error) {
	for _, p := range a.processes() {
		if p.pid != a.PID() && !p.isWorker() {
			continue
		}
		rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.pid))
		if err != nil {
			if p.isWorker() {
				continue
			}
			return 0, 0, err
		}
		for line := range bytes.Lines(rollup) {
			fields := strings.Fields(string(line))
			if fields[0] != "Pss_Anon:" && fields[0] != "Pss_Shmem:" {
				continue
			}
			kib, err := strconv.Atoi(fields[1])
			if err != nil {
				return 0, 0, err
			}
			if p.isWorker() {
				workers += kib << 10
			} else {
				front += kib << 10
			}
		}
	}
	return front, workers, nil
}

// flat runs what moves two gigabytes and checks that memory does not follow.
func flat(t *testing.T, a *app, what string, run func()) {
	t.Helper()
	a.get("/warm.php")
	front, workers, err := a.memoryByRole()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	w := a.watchMemory()
	run()
	w.end()
	const mib = 1 << 20
	t.Logf("%s in %v: front %d MiB, at most %d; workers %d MiB, at most %d", what, time.Since(start).Round(time.Millisecond),
		front/mib, w.front/mib, workers/mib, w.workers/mib)
	if w.err != nil || w.front > front+32*mib || w.workers > workers+32*mib {
		t.Errorf("%s: memory followed, or %v", what, w.err)
	}
}

const twoGiB = 2 << 30

// bigFiles move two gigabytes with little memory of their own.
var bigFiles = map[string]string{
	"warm.php": `<?php echo 1;`,
	"in.php":   `<?php $n = 0; $f = fopen('php://input', 'r'); while (!feof($f)) $n += strlen(fread($f, 1 << 20)); echo $n;`,
	"file.php": `<?php echo $_FILES['f']['size'], ' ', $_FILES['f']['error'], ' ', filesize($_FILES['f']['tmp_name']);`,
	"out.php":  `<?php $mib = str_repeat("x", 1 << 20); for ($i = 0; $i < 2048; $i++) echo $mib;`,
}

func startBig(t *testing.T) *app {
	t.Helper()
	if raceEnabled {
		t.Skip("takes minutes with the race detector")
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(os.TempDir(), &disk); err != nil {
		t.Fatal(err)
	}
	if free := disk.Bavail * uint64(disk.Bsize); free < 3*twoGiB { // the front's copy and PHP's
		t.Skipf("%s has only %d MiB left", os.TempDir(), free>>20)
	}
	return startApp(t, appOptions{
		TOML:  "[server.request]\nmax_body_size = 0\n[php]\nworkers = 1\nmemory_limit = \"32M\"\nmax_execution_time = 0\n",
		Files: bigFiles,
	})
}

// patientClient waits for longer than patience: two gigabytes take a while.
var patientClient = http.Client{Timeout: 3 * time.Minute}

func TestLargeUploadsInFlatMemory(t *testing.T) {
	a := startBig(t)
	send := func(path, kind, head string, size int64, tail, want string) {
		t.Helper()
		body := io.MultiReader(strings.NewReader(head), io.LimitReader(zeros{}, size), strings.NewReader(tail))
		req, err := http.NewRequest("POST", a.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = int64(len(head)) + size + int64(len(tail))
		req.Header.Set("Content-Type", kind)
		resp, err := patientClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != want {
			t.Errorf("%s: %s %q, %v; want %s", path, resp.Status, got, err, want)
		}
	}
	flat(t, a, "512 MiB to php://input", func() { // PHP keeps a copy on disk as well
		send("/in.php", "application/octet-stream", "", twoGiB/4, "", strconv.Itoa(twoGiB/4))
	})
	flat(t, a, "2 GiB as a file", func() {
		send("/file.php", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n",
			twoGiB, "\r\n--b--\r\n", fmt.Sprintf("%d 0 %d", twoGiB, twoGiB))
	})
}

func TestLargeDownloadInFlatMemory(t *testing.T) {
	a := startBig(t)
	flat(t, a, "2 GiB down", func() {
		resp, err := patientClient.Get(a.URL + "/out.php")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if n, err := io.Copy(io.Discard, resp.Body); n != twoGiB || err != nil {
			t.Errorf("%d bytes came, %v; want %d", n, err, twoGiB)
		}
	})
}

// A body that does not come holds no worker on a stream of HTTP/2 either: its stream
// is answered, and the others of the connection go on.
func TestBodyThatStallsOverH2CIs408(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	a := startApp(t, appOptions{
		TOML: "[server]\nh2c = true\n[server.timeouts]\nidle = 2\n[php]\nworkers = 1\nworker_backlog = 1\n",
		Files: map[string]string{
			"index.php": `<?php file_put_contents($_GET['mark'], 'ran');`,
			"next.php":  `<?php echo "next ", $_GET['i'];`,
		}})
	w := a.frames(nil)
	for i, body := range []string{"", "half of it"} {
		stream := w.next
		w.next += 2
		fields := w.fields(":method", "POST", ":scheme", "http", ":path", "/?mark="+mark, ":authority", "x", "content-length", "1048576")
		if err := w.WriteHeaders(h2.HeadersFrameParam{StreamID: stream, BlockFragment: fields, EndHeaders: true}); err != nil {
			t.Fatal(err)
		}
		if err := w.WriteData(stream, false, []byte(body)); err != nil {
			t.Fatal(err)
		}
		// The only worker is free meanwhile, whoever asks.
		if err := wantBody(a.request("GET", fmt.Sprintf("/next.php?i=%d", i), ""), fmt.Sprintf("next %d", i)); err != nil {
			t.Error(err)
		}
		if answer := w.answer(stream); answer.status != "408" {
			t.Errorf("behind %q: %v, want 408", body, answer)
		}
		if answer := w.answer(w.ask(fmt.Sprintf("/next.php?i=%d", i), ":authority", "x")); answer.body != fmt.Sprintf("next %d", i) {
			t.Errorf("another stream, behind %q: %v", body, answer)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the script was run with half a body")
	}
}
