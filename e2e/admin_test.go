package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

func TestAdminListener(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  metricsOn + "[server.admin]\nlisten = \"127.0.0.1:0\"\npprof = true\n",
		Files: map[string]string{"index.php": `<?php echo "the site's";`},
	})
	addr := a.waitLog(`msg="admin listening" addr=(\S+)`)[1]
	ask := func(path string) (*http.Response, string) {
		t.Helper()
		resp, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(body)
	}
	for path, want := range map[string]string{
		"/_ephpm/health": `{"status":"ok"}`, "/_ephpm/ready": `{"status":"ready"}`, "/metrics": "ephpm_build_info{",
		"/debug/pprof/": "goroutine", "/debug/pprof/cmdline": "serve",
	} {
		if resp, body := ask(path); resp.StatusCode != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %s %.200q, want %q", path, resp.Status, body, want)
		}
	}
	if resp, _ := ask("/"); resp.StatusCode != 404 {
		t.Errorf("/: %s, want 404", resp.Status)
	}
	for _, path := range []string{"/metrics", "/debug/pprof/"} {
		if _, body := a.get(path); body != "the site's" {
			t.Errorf("%s on the main listener: %q, want the site's page", path, body)
		}
	}
	if _, body := a.get("/_ephpm/ready"); body != `{"status":"ready"}`+"\n" {
		t.Errorf("readiness on the main listener: %q", body)
	}
}

// Who runs the server sees what PHP does now; clients do not.
func TestRequestsThatRunAreShown(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: "[server.admin]\nlisten = \"127.0.0.1:0\"\n[php]\nworkers = 2\n", Files: holdFiles})
	addr := a.waitLog(`msg="admin listening" addr=(\S+)`)[1]
	type report struct {
		Requests []struct {
			ID, Site, Class, Method, Path, Script, State string
			Age                                          float64
			Slot, Worker                                 int
		}
		Waiting map[string]int
	}
	ask := func() report {
		t.Helper()
		resp, err := http.Get("http://" + addr + "/_ephpm/requests")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" {
			t.Fatalf("%s %v %q, %v", resp.Status, resp.Header, body, err)
		}
		return fromJSON[report](t, string(body))
	}
	if r := ask(); len(r.Requests) != 0 || r.Waiting["page"] != 0 {
		t.Errorf("before any request: %+v", r)
	}
	g, held := hold(a)
	r := ask()
	if len(r.Requests) != 1 {
		t.Fatalf("while one script runs: %+v", r)
	}
	if one := r.Requests[0]; one.ID == "" || one.Site != "default" || one.Class != "page" || one.Method != "GET" || one.Path != "/hold.php?gate="+g.path ||
		one.Script != "hold.php" || one.State != "running" || one.Age <= 0 || one.Worker == 0 {
		t.Errorf("the request is shown as %+v", one)
	}
	if _, body := a.get("/_ephpm/requests"); strings.Contains(body, "hold.php") {
		t.Errorf("clients see what runs: %q", body)
	}
	g.open()
	_, pid := held.wait()
	if pid != fmt.Sprint(r.Requests[0].Worker) {
		t.Errorf("it was run by process %s, and shown in %d", pid, r.Requests[0].Worker)
	}
	if err := eventually(func() error {
		if r := ask(); len(r.Requests) != 0 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Who runs the server sees every worker: what it did, and what it does.
func TestWorkersAreShown(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: "[server.admin]\nlisten = \"127.0.0.1:0\"\n[php]\nworkers = 3\nmin_workers = 2\n", Files: holdFiles})
	addr := a.waitLog(`msg="admin listening" addr=(\S+)`)[1]
	type member struct {
		Slot, Worker   int
		State          string
		Uptime         float64
		Served, Memory int
		Request        *struct{ Path, Script, State string }
	}
	type report struct {
		Pools []struct {
			Site     string
			Min, Max int
			Workers  []member
		}
	}
	// The workers that are up, when there are so many of them.
	ask := func(n int) (workers []member) {
		t.Helper()
		err := eventually(func() error {
			resp, err := http.Get("http://" + addr + "/_ephpm/workers")
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" {
				return fmt.Errorf("%s %v %q, %v", resp.Status, resp.Header, body, err)
			}
			r := fromJSON[report](t, string(body))
			if len(r.Pools) != 1 || r.Pools[0].Site != "" || r.Pools[0].Min != 2 || r.Pools[0].Max != 3 {
				return fmt.Errorf("pools are shown as %s", body)
			}
			workers = r.Pools[0].Workers
			for _, w := range workers {
				if w.State == "starting" || w.Memory == 0 {
					return fmt.Errorf("one starts: %s", body)
				}
			}
			if len(workers) != n {
				return fmt.Errorf("%d are shown: %s", len(workers), body)
			}
			return nil
		})
		if err != nil {
			t.Fatalf("want %d workers: %v", n, err)
		}
		return workers
	}
	for _, w := range ask(2) {
		if w.State != "idle" || w.Served != 0 || w.Memory < 1<<20 || w.Uptime <= 0 || w.Request != nil {
			t.Errorf("a worker that did nothing is shown as %+v", w)
		}
	}
	const requests = 20
	pids := map[int]int{}
	for range requests {
		_, body := a.get("/")
		pid, err := strconv.Atoi(body)
		if err != nil {
			t.Fatal(err)
		}
		pids[pid]++
	}
	g, held := hold(a)
	if err := eventually(func() error { // a request is counted when it is shut down
		served := 0
		for _, w := range ask(len(a.workers())) {
			served += w.Served
			switch {
			case w.Served != pids[w.Worker]:
				return fmt.Errorf("%+v has served %d", w, pids[w.Worker])
			case w.State == "busy" && (w.Request == nil || w.Request.Script != "hold.php" || w.Request.State != "running" || !strings.Contains(w.Request.Path, g.path)):
				return fmt.Errorf("one that runs a script is shown as %+v", w)
			}
		}
		if served != requests {
			return fmt.Errorf("%d requests are counted, want %d", served, requests)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	busy := 0
	for _, w := range ask(len(a.workers())) {
		if w.State == "busy" {
			busy = w.Worker
		}
	}
	g.open()
	if _, pid := held.wait(); pid != fmt.Sprint(busy) {
		t.Errorf("the script was run by %s, and %d is shown as busy", pid, busy)
	}
	if _, body := a.get("/_ephpm/workers"); strings.Contains(body, "pools") {
		t.Errorf("clients see the workers: %q", body)
	}
}

func TestProfilesAreOffByDefault(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: "[server.admin]\nlisten = \"127.0.0.1:0\"\n", Files: map[string]string{"a.txt": ""}})
	addr := a.waitLog(`msg="admin listening" addr=(\S+)`)[1]
	for _, path := range []string{"/debug/pprof/", "/metrics"} {
		resp, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 404 {
			t.Errorf("%s: %s, want 404", path, resp.Status)
		}
	}
}
