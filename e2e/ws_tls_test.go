package e2e

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/coder/websocket"
)

// echoFiles are a site whose sockets echo, and a page that opens one.
var echoFiles = map[string]string{
	"websocket.php": `<?php
		switch ($_SERVER['WS_EVENT']) {
			case 'connect': ephpm_ws_send($_SERVER['HTTPS'] . ' ' . $_SERVER['REQUEST_SCHEME'] . ' ' . $_SERVER['WS_SAME_ORIGIN']); break;
			case 'message': ephpm_ws_send(file_get_contents('php://input'), $_SERVER['WS_OPCODE'] === 'binary'); break;
			case 'disconnect': if (isset($_GET['mark'])) file_put_contents($_GET['mark'], $_SERVER['WS_CLOSE_CODE']);
		}`,
	"page.html": `<!doctype html><p id="got"></p><script>
		const s = new WebSocket("wss://" + location.host + "/");
		s.onmessage = (e) => {
			got.textContent += e.data + ";";
			if (got.textContent.split(";").length === 2) s.send("hello");
		};
	</script>`,
}

func TestWebSocketsOverTLS(t *testing.T) {
	t.Parallel()
	a, ca := startTLS(t, appOptions{Files: echoFiles})
	dir := t.TempDir()
	dial := func(mark string) *socket {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		conn, resp, err := websocket.Dial(ctx, a.URL+"/?mark="+filepath.Join(dir, mark), &websocket.DialOptions{
			HTTPClient: ca.client(http1), HTTPHeader: http.Header{"Origin": {a.URL}},
		})
		if err != nil {
			t.Fatal(err)
		}
		conn.SetReadLimit(-1)
		t.Cleanup(func() { _ = conn.CloseNow() }) // may be closed already
		return &socket{t: t, conn: conn, resp: resp}
	}
	large := strings.Repeat("0123456789", 50000)
	sockets := make([]*socket, 20)
	for i := range sockets {
		s := dial(fmt.Sprint(i))
		if got := s.recv(); got != "on https 1" {
			t.Errorf("the connect event sees %q", got)
		}
		sockets[i] = s
	}
	for i, s := range sockets {
		for _, text := range []string{fmt.Sprint("hello ", i), large} {
			s.send(text)
			if got := s.recv(); got != text {
				t.Errorf("socket %d got %d bytes back, want %d", i, len(got), len(text))
			}
		}
	}
	if err := sockets[0].conn.Close(4001, "bye"); err != nil {
		t.Errorf("the closing handshake: %v", err)
	}
	waitFile(t, filepath.Join(dir, "0"), "4001")
	ended := make(chan int, 1)
	go func() { ended <- a.Stop() }()
	if code, _, _ := sockets[1].recvClose(); code != 1001 {
		t.Errorf("on a stop a socket is closed with %d, want 1001", code)
	}
	for _, s := range sockets[2:] {
		_ = s.conn.CloseNow() // it need not wait for them
	}
	if status := <-ended; status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	waitFile(t, filepath.Join(dir, "1"), "1001")
}

// A browser loads the page over HTTP/2 and opens the socket from it.
func TestBrowserOpensASocketOverTLS(t *testing.T) {
	t.Parallel()
	a, _ := startTLS(t, appOptions{Files: echoFiles})
	page := newBrowser(t, chromedp.IgnoreCertErrors).newProfile().open(a.URL + "/page.html")
	page.waitText("#got", "on https 1;hello;")
	page.wait(`performance.getEntriesByType("navigation")[0].nextHopProtocol === "h2"`)
}
