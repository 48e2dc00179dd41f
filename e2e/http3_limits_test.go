package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

func TestHTTP3ClientThatStopsReadingLosesItsWorker(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{
		TOML: "[server.timeouts]\nidle = \"500ms\"\n[php]\nworkers = 1\n",
		Files: map[string]string{
			"endless.php": unbuffered + `register_shutdown_function(fn () => error_log('ended by ' . connection_status())); while (true) echo str_repeat("x", 100000);`,
			"index.php":   `<?php echo "next";`,
		}})
	var resp *http.Response
	if err := eventually(func() (err error) { // a busy machine may be idle for too long before it asks
		resp, err = a.client.Do(a.request("GET", "/endless.php", ""))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	a.waitLine(`text="ended by 1"`)
	if err := eventually(func() error {
		resp, body, err := send(a.newClient(nil, nil), a.request("GET", "/", ""))
		if err == nil && body != "next" {
			t.Errorf("the worker's next answer is %s %q", resp.Status, body)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("the answer was completed as if it were whole")
	}
}

func TestLimitsOverHTTP3(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{
		TOML:  "[server.request]\nmax_body_size = \"10KB\"\nmax_header_size = \"4KB\"\n",
		Files: map[string]string{"index.php": `<?php echo strlen(file_get_contents('php://input'));`},
	})
	if _, body := a.do(a.request("POST", "/", strings.Repeat("x", 10<<10))); body != fmt.Sprint(10<<10) {
		t.Errorf("a body of the limit: %q", body)
	}
	if resp, _ := a.do(a.request("POST", "/", strings.Repeat("x", 10<<10+1))); resp.StatusCode != 413 {
		t.Errorf("a body over the limit: %s, want 413", resp.Status)
	}
	if resp, _ := a.do(a.request("GET", "/", "", "X-Large", strings.Repeat("x", 5000))); resp.StatusCode != 431 {
		t.Errorf("a header over the limit: %s, want 431", resp.Status)
	}
}

func TestIdleLimitsOverHTTP3(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{
		TOML:  "[server.timeouts]\nidle = \"500ms\"\n",
		Files: map[string]string{"index.php": `<?php echo strlen(file_get_contents('php://input'));`},
	})
	// A body that pauses. A busy machine may be idle for too long before it asks.
	if err := eventually(func() error {
		r, w := io.Pipe()
		defer w.Close()
		req, err := http.NewRequest("POST", a.URL, r)
		if err != nil {
			t.Fatal(err)
		}
		resp, _, err := a.fetch(req)
		if err == nil && resp.StatusCode != 408 {
			t.Errorf("a body that never came: %s, want 408", resp.Status)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	// A client that opens requests and sends nothing is idle.
	open := func(c *quic.Conn) error {
		for range 10 {
			s, err := c.OpenStream()
			if err != nil {
				return err
			}
			if _, err := s.Write([]byte{1}); err != nil { // the begin of HEADERS
				return err
			}
		}
		return nil
	}
	var c *quic.Conn
	if err := eventually(func() (err error) {
		if c, err = a.tryConn(); err == nil {
			err = open(c)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Context().Done():
	case <-time.After(patience):
		t.Fatal("a connection without requests stays")
	}
	var closed *quic.ApplicationError
	if err := context.Cause(c.Context()); !errors.As(err, &closed) || closed.ErrorCode != quic.ApplicationErrorCode(http3.ErrCodeNoError) {
		t.Errorf("the idle connection ended by %v, want H3_NO_ERROR", err)
	}
}

func TestLargeBodiesOverHTTP3InFlatMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("takes minutes with the race detector")
	}
	const size, mib = 192 << 20, 1 << 20
	a := startHTTP3(t, appOptions{
		TOML: "[server.request]\nmax_body_size = 0\n[php]\nworkers = 1\nmax_execution_time = 0\n",
		Files: map[string]string{
			"in.php":  `<?php $n = 0; $f = fopen('php://input', 'r'); while (!feof($f)) $n += strlen(fread($f, 1 << 20)); echo $n;`,
			"out.php": `<?php $mib = str_repeat("x", 1 << 20); for ($i = 0; $i < 192; $i++) echo $mib;`,
		}})
	a.client.Timeout = 3 * time.Minute
	a.get("/in.php")
	front, workers, err := a.memoryByRole()
	if err != nil {
		t.Fatal(err)
	}
	w := a.watchMemory()
	up, err := http.NewRequest("POST", a.URL+"/in.php", io.LimitReader(zeros{}, size))
	if err != nil {
		t.Fatal(err)
	}
	if _, body := a.do(up); body != fmt.Sprint(size) {
		t.Errorf("%s bytes came up, want %d", body, size)
	}
	resp, err := a.client.Do(a.request("GET", "/out.php", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
		t.Errorf("%d bytes came down, %v; want %d", n, err, size)
	}
	w.end()
	t.Logf("front %d MiB, at most %d; workers %d MiB, at most %d", front/mib, w.front/mib, workers/mib, w.workers/mib)
	if w.err != nil || w.front > front+48*mib || w.workers > workers+32*mib {
		t.Errorf("memory followed, or %v", w.err)
	}
}

func TestHTTP3ConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{
		TOML:  metricsOn + "[server.limits]\nper_ip_max_connections = 2\n",
		Files: map[string]string{"index.php": `<?php echo "x";`},
	})
	a.get("/") // one
	second := a.conn()
	a.waitMetric("ephpm_http3_connections_active", 2)
	third, err := a.tryConn()
	if err == nil { // or it has been closed already
		select {
		case <-third.Context().Done():
		case <-time.After(patience):
			t.Fatal("a connection too many stays")
		}
		err = context.Cause(third.Context())
	}
	var refused *quic.TransportError
	if !errors.As(err, &refused) || refused.ErrorCode != quic.ConnectionRefused {
		t.Errorf("it ended by %v, want CONNECTION_REFUSED", err)
	}
	if err := a.wantBody("/", "x"); err != nil {
		t.Errorf("a connection within the limit: %v", err)
	}
	_ = second.CloseWithError(0, "")
	err = eventually(func() error { // there is room again
		_, body, err := send(a.newClient(nil, nil), a.request("GET", "/", ""))
		if err == nil && body != "x" {
			t.Errorf("behind one that left: %q", body)
		}
		return err
	})
	if err != nil {
		t.Errorf("behind one that left: %v", err)
	}
}

// A script may run for longer than a connection may be idle, and longer than the
// client would wait for a packet.
func TestLongScriptKeepsItsHTTP3Connection(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{
		TOML:  "[server.timeouts]\nidle = \"300ms\"\n",
		Files: map[string]string{"index.php": `<?php sleep(6); echo "done";`},
	})
	err := errors.New("not asked")
	for range 5 { // a busy machine may be idle for too long before it asks, or while it waits
		if err == nil {
			return
		}
		c := a.newClient(nil, &quic.Config{MaxIdleTimeout: 5 * time.Second}) // quic-go does not believe in less
		var body string
		if _, body, err = send(c, a.request("GET", "/", "")); err == nil && body != "done" {
			t.Errorf("got %q", body)
		}
	}
	if err != nil {
		t.Error(err)
	}
}
