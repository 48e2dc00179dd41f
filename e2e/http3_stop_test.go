package e2e

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestSIGTERMDrainsHTTP3(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{
		TOML:  "[server.timeouts]\nshutdown = \"10m\"\n",
		Files: map[string]string{"index.php": `<?php if (isset($_GET['gate'])) file_get_contents($_GET['gate']); echo str_repeat("x", 300000);`},
	})
	want := strings.Repeat("x", 300000)
	idle := a.newClient(nil, nil)
	if _, body := visitWith(t, idle, a.URL); body != want {
		t.Fatalf("got %d bytes", len(body))
	}
	mute := a.conn() // speaks no HTTP, so it will not go by itself
	g := newGate(t)
	answer := make(chan error, 1)
	go func() { // ended by the answer or its time limit
		answer <- a.wantBody("/?gate="+g.path, want)
	}()
	g.wait()
	a.signal(syscall.SIGTERM)
	select {
	case <-mute.Context().Done(): // what is idle goes while the script runs
	case <-time.After(patience):
		t.Error("an idle connection stays")
	}
	g.open()
	if err := <-answer; err != nil {
		t.Errorf("the request that was running: %v", err)
	}
	if status := a.waitExit(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if log := a.Log(); strings.Contains(log, "cut the") || strings.Contains(log, "killed") {
		t.Error("something was cut")
	}
}

func TestStopCutsHTTP3WhenTheTimeIsOver(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{
		TOML:  "[server.timeouts]\nshutdown = \"300ms\"\n",
		Files: map[string]string{"index.php": unbuffered + `ignore_user_abort(true); echo "begun"; flush(); sleep(600);`},
	})
	resp, err := a.client.Do(a.request("GET", "/", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	a.signal(syscall.SIGTERM)
	a.waitExit()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("%q was completed as if it were whole", body)
	}
}

func TestClientsResumeAfterARestartWithAKeyFile(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"", filepath.Join(t.TempDir(), "quic.keys")} {
		a := startHTTP3(t, appOptions{
			Listen: reservedAddr(t),
			TOML:   fmt.Sprintf("[server.http3]\nlisten = \"127.0.0.1:0\"\nkey_file = %q\n", file),
			Files:  map[string]string{"index.php": `<?php echo "x";`},
		})
		cache := tls.NewLRUClientSessionCache(1)
		resumed := func() bool {
			resp, _ := visitWith(t, a.newClient(&tls.Config{ClientSessionCache: cache}, nil), a.URL)
			return resp.TLS.DidResume
		}
		if resumed() {
			t.Error("a new client resumed")
		}
		if err := eventually(func() error { // the ticket comes after the answer
			if !resumed() {
				return errors.New("it began anew")
			}
			return nil
		}); err != nil {
			t.Errorf("a client did not resume: %v", err)
		}
		a.Restart()
		a.findAddr()
		if got, want := resumed(), file != ""; got != want {
			t.Errorf("with key file %q, resumed %v, want %v", file, got, want)
		}
	}
}
