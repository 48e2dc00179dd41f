package server

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"ephpm/phpbridge"
)

func TestMalformedRequestsNeverReachPHP(t *testing.T) {
	pool := &fakePool{}
	ts := httptest.NewServer(newTest(t, files(t, "index.php"), pool))
	defer ts.Close()
	for _, raw := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: something\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nBad Name: x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: Malicious Host\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n",
		"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /a%00 HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /a/%2e%2E/b HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /a\\..\\b HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET * HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
	} {
		c, err := net.Dial("tcp", ts.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, raw)
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || r.StatusCode != 400 {
			t.Errorf("%q: %v, %v; want 400", raw, r, err)
		}
		_ = c.Close()
	}
	if pool.calls != 0 {
		t.Errorf("PHP ran %d times, want never", pool.calls)
	}
}

func TestUpgradesRunTheWebSocketScript(t *testing.T) {
	pool := &fakePool{run: func(_ context.Context, w http.ResponseWriter, _ *phpbridge.Request) error {
		w.WriteHeader(http.StatusUnauthorized)
		return nil
	}}
	root := files(t, "index.php", "ws/socket.php")
	ts := httptest.NewServer(newTest(t, root, pool, func(c *Config) {
		c.Server.WebSocket.Enabled = true
		c.Server.WebSocketFiles = []string{"websocket.php", "ws/socket.php"}
	}))
	defer ts.Close()
	c := dial(t, ts.Listener.Addr())
	const upgrade = "GET /any/path?a=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
	fmt.Fprint(c, upgrade)
	in := bufio.NewReader(c)
	if r, err := http.ReadResponse(in, nil); err != nil || r.StatusCode != 401 {
		t.Fatalf("%+v, %v; want the script's 401", r, err)
	}
	for name, want := range map[string]string{
		"SCRIPT_NAME": "/ws/socket.php", "REQUEST_URI": "/any/path?a=1", "QUERY_STRING": "a=1", "PATH_INFO": "",
	} {
		if got := pool.vars[name]; got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	ts.Config.Handler = newTest(t, files(t, "index.php"), pool, func(c *Config) { c.Server.WebSocket.Enabled = true })
	fmt.Fprint(c, upgrade)
	if r, err := http.ReadResponse(in, nil); err != nil || r.StatusCode != 404 {
		t.Errorf("a site without a script: %+v, %v; want 404", r, err)
	}
}
