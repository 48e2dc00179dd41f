package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// h3Echo is a site whose sockets send back what they get and write down how they
// ended.
var h3Echo = map[string]string{
	"websocket.php": `<?php
		switch ($_SERVER['WS_EVENT']) {
		case 'connect':
			if (isset($_GET['no'])) { http_response_code(403); echo 'no'; break; }
			header('X-Seen: ' . implode(' ', [$_SERVER['SERVER_PROTOCOL'], $_SERVER['REQUEST_METHOD'], $_SERVER['HTTP_HOST'], $_SERVER['HTTPS'] ?? '-', $_SERVER['REQUEST_URI']]));
			break;
		case 'message': ephpm_ws_send(file_get_contents('php://input')); break;
		case 'disconnect': if (isset($_GET['mark'])) file_put_contents($_GET['mark'], $_SERVER['WS_CLOSE_CODE'] . ' ' . $_SERVER['WS_CLOSE_CAUSE']);
		}`,
	"page.html": `<!DOCTYPE html><title>x</title><p id=got></p><script>
		const s = new WebSocket('wss://' + location.host + '/');
		s.onopen = () => s.send('hello');
		s.onmessage = e => { document.getElementById('got').textContent = e.data + ' ' + performance.getEntriesByType('navigation')[0].nextHopProtocol; };
		s.onclose = e => { document.getElementById('got').textContent = 'closed ' + e.code; };
	</script>`,
}

// openSocket opens a WebSocket over a connection of HTTP/3.
func (a *quicApp) openSocket(c *http3.ClientConn, path, protocol string) (*http3.RequestStream, *http.Response) {
	a.t.Helper()
	s, resp, err := a.tryOpenSocket(c, path, protocol)
	if err != nil {
		a.t.Fatal(err)
	}
	return s, resp
}

// tryOpenSocket is openSocket where the connection may have ended.
func (a *quicApp) tryOpenSocket(c *http3.ClientConn, path, protocol string) (*http3.RequestStream, *http.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := c.OpenRequestStream(ctx)
	if err != nil {
		return nil, nil, err
	}
	_ = s.SetDeadline(time.Now().Add(2 * patience))
	req, err := http.NewRequest(http.MethodConnect, a.URL+path, nil)
	if err != nil {
		return nil, nil, err
	}
	req.Proto = protocol
	req.Header = http.Header{"Sec-Websocket-Version": {"13"}, "Origin": {a.URL}}
	if err := s.SendRequestHeader(req); err != nil {
		return nil, nil, err
	}
	resp, err := s.ReadResponse()
	return s, resp, err
}

// clientFrame is a whole message or control frame of less than 64 KiB, masked by
// zeros.
func clientFrame(opcode byte, payload string) []byte {
	n := len(payload)
	head := []byte{0x80 | opcode, 0x80 | byte(n)}
	if n > 125 {
		head = []byte{0x80 | opcode, 0x80 | 126, byte(n >> 8), byte(n)}
	}
	return append(append(head, 0, 0, 0, 0), payload...)
}

// serverFrame is the same from the server.
func serverFrame(opcode byte, payload string) []byte {
	n := len(payload)
	if n > 125 {
		return append([]byte{0x80 | opcode, 126, byte(n >> 8), byte(n)}, payload...)
	}
	return append([]byte{0x80 | opcode, byte(n)}, payload...)
}

func wantFrame(t *testing.T, s io.Reader, opcode byte, payload string) {
	t.Helper()
	want := serverFrame(opcode, payload)
	got := make([]byte, len(want))
	if n, err := io.ReadFull(s, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got frame %.100q, %v; want %.100q", got[:n], err, want)
	}
}

func (a *quicApp) http3Conn() *http3.ClientConn {
	a.t.Helper()
	c, err := a.tryHTTP3Conn()
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// tryHTTP3Conn is http3Conn where the server may close a connection at once.
func (a *quicApp) tryHTTP3Conn() (*http3.ClientConn, error) {
	q, err := a.tryConn()
	if err != nil {
		return nil, err
	}
	transport := &http3.Transport{}
	a.t.Cleanup(func() { _ = transport.Close() })
	return transport.NewClientConn(q), nil
}

func TestSocketsOverHTTP3(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := startHTTP3(t, appOptions{Files: h3Echo, TOML: metricsOn + "[server.timeouts]\nidle = \"500ms\"\n"})
	var c *http3.ClientConn
	var s *http3.RequestStream
	var resp *http.Response
	if err := eventually(func() (err error) { // a busy machine may be idle for too long before it opens one
		if c, err = a.tryHTTP3Conn(); err == nil {
			s, resp, err = a.tryOpenSocket(c, "/chat?mark="+filepath.Join(dir, "client"), "websocket")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if want := "HTTP/3.0 GET " + a.Addr.String() + " on /chat?mark=" + filepath.Join(dir, "client"); resp.StatusCode != 200 || resp.Header.Get("X-Seen") != want {
		t.Fatalf("%s, the script saw %q, want %q", resp.Status, resp.Header.Get("X-Seen"), want)
	}
	for _, name := range []string{"Connection", "Upgrade", "Sec-Websocket-Accept"} {
		if resp.Header.Get(name) != "" {
			t.Errorf("the answer has %s: %q", name, resp.Header.Get(name))
		}
	}
	other, _ := a.openSocket(c, "/?mark="+filepath.Join(dir, "reset"), "websocket")
	for _, text := range []string{"hello", strings.Repeat("long ", 10_000)} {
		for _, s := range []*http3.RequestStream{s, other} {
			if _, err := s.Write(clientFrame(1, text)); err != nil {
				t.Fatal(err)
			}
		}
		wantFrame(t, s, 1, text)
		wantFrame(t, other, 1, text)
	}
	// Its connection stays when one that began later has been idle for too long.
	if idle, err := a.tryConn(); err == nil { // or it has been closed already
		select {
		case <-idle.Context().Done():
		case <-time.After(patience):
			t.Fatal("an idle connection stays")
		}
	}
	if _, err := s.Write(clientFrame(9, "ping")); err != nil {
		t.Fatal(err)
	}
	wantFrame(t, s, 10, "ping")
	if _, err := s.Write(clientFrame(8, "\x0f\xa1bye")); err != nil {
		t.Fatal(err)
	}
	wantFrame(t, s, 8, "\x0f\xa1")
	if rest, err := io.ReadAll(s); err != nil || len(rest) > 0 {
		t.Errorf("behind the close frame: %q, %v", rest, err)
	}
	waitFile(t, filepath.Join(dir, "client"), "4001 client")
	other.CancelWrite(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
	other.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
	waitFile(t, filepath.Join(dir, "reset"), "1006 gone")
	a.waitMetric("ephpm_http3_stripped_headers_total", 0)
}

func TestSocketsThatHTTP3Refuses(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{Files: h3Echo})
	c := a.http3Conn()
	if s, resp := a.openSocket(c, "/?no", "websocket"); resp.StatusCode != 403 {
		t.Errorf("refused by the script: %s, want 403", resp.Status)
	} else if body, err := io.ReadAll(s); err != nil || string(body) != "no" {
		t.Errorf("the script's refusal is %q, %v", body, err)
	}
	if _, resp := a.openSocket(c, "/", "connect-udp"); resp.StatusCode != 501 {
		t.Errorf("another protocol: %s, want 501", resp.Status)
	}
	off := startHTTP3(t, appOptions{
		TOML:  "[server.websocket]\nenabled = false\n",
		Files: map[string]string{"index.php": `<?php echo "a page";`},
	})
	s, resp := off.openSocket(off.http3Conn(), "/", "websocket")
	if body, err := io.ReadAll(s); resp.StatusCode != 501 || err != nil || len(body) > 0 {
		t.Errorf("a page that knows nothing of sockets: %s %q, %v; want 501", resp.Status, body, err)
	}
}

func TestStopClosesSocketsOverHTTP3(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{Files: h3Echo})
	s, _ := a.openSocket(a.http3Conn(), "/", "websocket")
	a.signal(syscall.SIGTERM)
	wantFrame(t, s, 8, "\x03\xe9")
	if _, err := s.Write(clientFrame(8, "\x03\xe9")); err != nil {
		t.Error(err)
	}
	var app *quic.ApplicationError
	if rest, err := io.ReadAll(s); err != nil && !errors.As(err, &app) || len(rest) > 0 {
		t.Errorf("behind the close frame: %q, %v", rest, err)
	}
	if status := a.waitExit(); status != 0 || strings.Contains(a.Log(), "cut the") {
		t.Errorf("exit status %d, or something was cut", status)
	}
}

func TestChromiumOpensASocketOverHTTP3(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{Files: h3Echo, TOML: metricsOn})
	origin := fmt.Sprintf("a.test:%d", a.Addr.Port)
	b := newBrowser(t,
		chromedp.Flag("disable-quic", false),
		chromedp.Flag("enable-features", "EnableWebsocketsOverHttp3"),
		chromedp.Flag("origin-to-force-quic-on", origin),
		chromedp.Flag("ignore-certificate-errors-spki-list", spki(t, filepath.Join(a.certs, "cert.pem"))),
		chromedp.Flag("host-resolver-rules", "MAP a.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	b.newProfile().open("https://"+origin+"/page.html").waitText("#got", "hello h3")
	a.waitMetric("ephpm_http3_connections_active", 2) // the browser's, and that which asks
}
