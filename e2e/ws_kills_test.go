package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

var (
	kills       = flag.Int("kills", 40, "workers to kill under open sockets")
	killSockets = flag.Int("kill-sockets", 200, "sockets that are open meanwhile")
)

// killFiles are events that answer a number with it, and one of fifty with a
// broadcast too.
var killFiles = map[string]string{
	"index.php": `<?php echo $_GET['i'];`,
	"websocket.php": `<?php
		if ($_SERVER['WS_EVENT'] === 'connect') ephpm_ws_subscribe('all');
		if ($_SERVER['WS_EVENT'] !== 'message') return;
		$n = file_get_contents('php://input');
		if ($n % 50 === 1) ephpm_ws_broadcast('all', "news");
		ephpm_ws_send($n);`,
}

// A talker is a socket that keeps a few messages under way.
type talker struct {
	conn     *websocket.Conn
	sent     atomic.Int64
	answered atomic.Int64 // the last number that came back
	news     atomic.Int64
	room     chan struct{}
	err      error // of the reader, valid when it has ended
}

func newTalker(s *socket) *talker { return &talker{conn: s.conn, room: make(chan struct{}, 1)} }

// read takes what comes until the socket ends.
func (k *talker) read(answers *atomic.Int64) {
	for {
		_, data, err := k.conn.Read(context.Background())
		if err != nil {
			k.err = err
			return
		}
		if string(data) == "news" {
			k.news.Add(1)
			continue
		}
		n, err := strconv.ParseInt(string(data), 10, 64)
		if err != nil || n <= k.answered.Load() {
			k.err = fmt.Errorf("%q came behind %d", data, k.answered.Load())
			return
		}
		k.answered.Store(n)
		answers.Add(1)
		select {
		case k.room <- struct{}{}:
		default:
		}
	}
}

// write sends number after number until it is told to stop: the next one when
// something came back, or after a while, for what a killed worker had is lost.
func (k *talker) write(stop <-chan struct{}) error {
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for {
		if err := k.say(); err != nil {
			return err
		}
		select {
		case <-stop:
			return nil
		case <-k.room:
		case <-again.C:
		}
	}
}

func (k *talker) say() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return k.conn.Write(ctx, websocket.MessageText, fmt.Append(nil, k.sent.Add(1)))
}

// openFiles counts the descriptors of the front.
func (a *app) openFiles() int {
	a.t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", a.PID()))
	if err != nil {
		a.t.Fatal(err)
	}
	return len(list)
}

// privateMemory is what the front has for itself, in bytes.
func (a *app) privateMemory() int {
	a.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.PID()))
	if err != nil {
		a.t.Fatal(err)
	}
	var kib int
	_, after, _ := strings.Cut(string(status), "RssAnon:")
	if _, err := fmt.Sscan(after, &kib); err != nil {
		a.t.Fatal(err)
	}
	return kib << 10
}

// Workers are killed while sockets and pages are busy. A kill costs what its
// worker ran: no socket closes, each is answered afterwards, in order, and nothing
// is left over.
func TestKilledWorkersCloseNoSocket(t *testing.T) {
	t.Parallel()
	const workers = 8
	tmp := t.TempDir()
	a := startApp(t, appOptions{
		TOML:  metricsOn + fmt.Sprintf("[php]\nworkers = %d\nmin_workers = %d\n", workers, workers),
		Env:   []string{"TMPDIR=" + tmp},
		Files: killFiles,
	})
	var answers atomic.Int64
	var readers, writers sync.WaitGroup
	talkers := make([]*talker, *killSockets)
	for i := range talkers {
		talkers[i] = newTalker(a.dial("/", nil))
	}
	a.waitWorkers(workers)
	files := a.openFiles()
	for _, k := range talkers {
		readers.Go(func() { k.read(&answers) }) // ended by the end of its socket
	}
	stop := make(chan struct{})
	for i, k := range talkers {
		writers.Go(func() {
			if err := k.write(stop); err != nil {
				t.Errorf("socket %d: write: %v", i, err)
			}
		})
	}
	for range 4 {
		writers.Go(func() { askUntil(t, a, stop) })
	}
	a.killWorkers(*kills/4, &answers)
	early := a.privateMemory()
	a.killWorkers(*kills-*kills/4, &answers)
	close(stop)
	writers.Wait()

	for i, k := range talkers {
		if err := k.say(); err != nil {
			t.Errorf("socket %d is not open any more: %v", i, err)
		}
	}
	for i, k := range talkers {
		err := eventually(func() error {
			if got, want := k.answered.Load(), k.sent.Load(); got != want {
				return fmt.Errorf("answered %d of %d", got, want)
			}
			return nil
		})
		if err != nil {
			t.Errorf("socket %d: %v", i, err)
		}
		if k.news.Load() == 0 {
			t.Errorf("socket %d got no broadcast", i)
		}
	}
	a.waitMetric("ephpm_ws_connections_active", float64(len(talkers)))
	a.waitMetric("ephpm_ws_connections_total", float64(len(talkers)))
	a.waitMetric(`ephpm_php_workers{state="busy"}`, 0)
	a.waitWorkers(workers)
	a.wantFilesOfWorkers(tmp, workers)
	late := a.privateMemory()
	for i, k := range talkers {
		if err := k.conn.Close(websocket.StatusNormalClosure, ""); err != nil {
			t.Errorf("close socket %d: %v", i, err)
		}
	}
	readers.Wait()
	for i, k := range talkers {
		if code := websocket.CloseStatus(k.err); code != websocket.StatusNormalClosure {
			t.Errorf("socket %d ended: %v", i, k.err)
		}
	}
	t.Logf("%d answers over %d kills; front has %d descriptors more, memory %d KiB, then %d KiB", answers.Load(), *kills, a.openFiles()-files, early>>10, late>>10)
	if grown := late - early; grown > 32<<20 && !raceEnabled {
		t.Errorf("the front grew by %d bytes over %d kills", grown, *kills)
	}
	err := eventually(func() error {
		if n := a.openFiles(); n > files-len(talkers)+4 {
			return fmt.Errorf("%d descriptors without sockets, %d with %d of them", n, files, len(talkers))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// askUntil asks for pages, of which a kill may cost the answer, and nothing else.
func askUntil(t *testing.T, a *app, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		resp, body, err := fetch(a.request("GET", fmt.Sprintf("/?i=%d", i), ""))
		if err != nil || resp.StatusCode != 502 && (resp.StatusCode != 200 || body != strconv.Itoa(i)) {
			t.Errorf("page %d: %v %v %q", i, err, resp, body)
			return
		}
	}
}

// killWorkers kills one worker after the other, each when there were answers since
// the last.
func (a *app) killWorkers(n int, answers *atomic.Int64) {
	a.t.Helper()
	for range n {
		before := answers.Load()
		if pids := a.workers(); len(pids) > 0 {
			_ = syscall.Kill(pids[rand.IntN(len(pids))], syscall.SIGKILL) // it may have gone
		}
		err := eventually(func() error {
			if answers.Load() < before+5 {
				return fmt.Errorf("no answers since a worker was killed")
			}
			return nil
		})
		if err != nil {
			a.t.Fatal(err)
		}
	}
}

// wantFilesOfWorkers waits until nothing is left in the directory for temporary
// files but one directory for each worker's uploads.
func (a *app) wantFilesOfWorkers(tmp string, workers int) {
	a.t.Helper()
	err := eventually(func() error {
		list, err := filepath.Glob(tmp + "/ephpm-uploads-*/*")
		if err == nil && len(list) != workers {
			err = fmt.Errorf("%d directories: %q", len(list), list)
		}
		return err
	})
	if err != nil {
		a.t.Errorf("want a directory for each of %d workers: %v", workers, err)
	}
}
