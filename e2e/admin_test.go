package e2e

import (
	"io"
	"net/http"
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
