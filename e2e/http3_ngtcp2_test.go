package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ngtcp2 fetches a path by ngtcp2's client, which is no relative of quic-go, and
// returns the body and what the client says. host is an address of this machine.
func (a *quicApp) ngtcp2(host, path string, args ...string) (body, said string) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	dir := a.t.TempDir()
	all := append([]string{"--exit-on-all-streams-close", "--no-quic-dump", "--sni=a.test", "--download=" + dir}, args...)
	all = append(all, host, fmt.Sprint(a.Addr.Port), fmt.Sprintf("https://a.test:%d%s", a.Addr.Port, path))
	out, err := exec.CommandContext(ctx, "gtlsclient", all...).CombinedOutput()
	if err != nil {
		a.t.Fatalf("gtlsclient %q: %v\n%s", all, err, out)
	}
	got, err := os.ReadFile(filepath.Join(dir, filepath.Base(path)))
	if err != nil {
		a.t.Fatalf("gtlsclient %q: %v\n%s", all, err, out)
	}
	return string(got), string(out)
}

func TestNgtcp2(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 20_000)
	a := startHTTP3(t, appOptions{
		Listen: "[::]:0",
		TOML:   "[server.http3]\nsockets = 3\n",
		Files: map[string]string{
			"big.php":  `<?php echo str_repeat("0123456789", 20000);`,
			"file.txt": text,
			"vars.php": `<?php echo $_SERVER['SERVER_PROTOCOL'], ' ', $_SERVER['REMOTE_ADDR'], ' ', $_SERVER['SERVER_ADDR'], ' ', $_SERVER['REQUEST_METHOD'], ' ', file_get_contents('php://input');`,
		}})
	data := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(data, []byte("posted"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "::1"} {
		want := fmt.Sprintf("HTTP/3.0 %s %s ", host, host)
		if body, _ := a.ngtcp2(host, "/vars.php"); body != want+"GET " {
			t.Errorf("got %q, want %q", body, want+"GET ")
		}
		if body, _ := a.ngtcp2(host, "/vars.php", "--http-method=POST", "--data="+data); body != want+"POST posted" {
			t.Errorf("got %q, want %q", body, want+"POST posted")
		}
	}
	// Its socket takes packets from the address that it wrote to only.
	if body, _ := a.ngtcp2("127.0.0.2", "/vars.php"); !strings.HasPrefix(body, "HTTP/3.0 127.0.0.1 127.0.0.2") && !strings.HasPrefix(body, "HTTP/3.0 127.0.0.2 127.0.0.2") {
		t.Errorf("asked at another address: %q", body)
	}
	for name, args := range map[string][]string{
		"an address that changes": {"--change-local-addr=10ms", "--delay-stream=100ms"},
		"a router that forgets":   {"--change-local-addr=10ms", "--delay-stream=100ms", "--nat-rebinding"},
		"new keys":                {"--key-update=1ms", "--delay-stream=50ms"},
		"lost packets":            {"--tx-loss=0.1", "--rx-loss=0.1"},
		"small packets":           {"--max-udp-payload-size=1200", "--no-pmtud"},
		"a small window":          {"--max-stream-data-bidi-local=1000", "--max-data=2000"},
	} {
		for _, path := range []string{"/big.php", "/file.txt"} {
			if body, said := a.ngtcp2("127.0.0.1", path, args...); body != text {
				t.Errorf("%s: %s has %d bytes, want %d\n%s", name, path, len(body), len(text), said)
			}
		}
	}
}

// early is a script that says whether its request came before the end of the
// handshake.
const early = `<?php
	if (isset($_GET['refuse']) && isset($_SERVER['HTTP_EARLY_DATA'])) { http_response_code(425); exit; }
	echo $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['HTTP_EARLY_DATA'] ?? '-', ' ', file_get_contents('php://input');`

func TestEarlyDataByNgtcp2(t *testing.T) {
	t.Parallel()
	for _, enabled := range []bool{true, false} {
		a := startHTTP3(t, appOptions{
			TOML:  fmt.Sprintf("[server.http3]\nearly_data = %v\n", enabled),
			Files: map[string]string{"early.php": early},
		})
		dir := t.TempDir()
		data := filepath.Join(dir, "data")
		if err := os.WriteFile(data, []byte("posted"), 0o600); err != nil {
			t.Fatal(err)
		}
		kept := []string{"--session-file=" + filepath.Join(dir, "session"), "--tp-file=" + filepath.Join(dir, "tp"), "--token-file=" + filepath.Join(dir, "token")}
		if body, _ := a.ngtcp2("127.0.0.1", "/early.php", kept...); body != "GET - " {
			t.Errorf("the first time: %q", body)
		}
		want := "GET - "
		if enabled {
			want = "GET 1 "
		}
		body, said := a.ngtcp2("127.0.0.1", "/early.php", kept...)
		for range 20 { // a busy server may look at the request when the handshake is complete
			if body != "GET - " || !enabled {
				break
			}
			body, said = a.ngtcp2("127.0.0.1", "/early.php", kept...)
		}
		if body != want {
			t.Errorf("the second time, early data %v: %q, want %q\n%s", enabled, body, want, said)
		}
		if body, said := a.ngtcp2("127.0.0.1", "/early.php", append(kept, "--http-method=POST", "--data="+data)...); body != "POST - posted" {
			t.Errorf("POST, early data %v: %q, want one that waited for the handshake\n%s", enabled, body, said)
		}
	}
}
