package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	h2 "golang.org/x/net/http2"
)

// http2Page opens three sockets on the connection that brought it, and shows what
// they say.
const http2Page = `<!DOCTYPE html><title>HTTP/2</title><p id=page><?= $_SERVER['SERVER_PROTOCOL'] ?></p><p id=said></p><script>
	addEventListener('load', async () => {
		const one = i => new Promise(resolve => {
			const ws = new WebSocket('wss://' + location.host + '/room?i=' + i, ['chat', 'other']);
			const said = [];
			ws.onmessage = e => {
				said.push(e.data.length > 100 ? e.data.length : e.data);
				if (said.length === 1) { ws.send('hello ' + i); ws.send('x'.repeat(300000)); }
				if (said.length === 3) ws.send('close');
			};
			ws.onclose = e => resolve([ws.protocol, ...said, e.code, e.reason, e.wasClean].join(' '));
		});
		const all = await Promise.all([1, 2, 3].map(one));
		document.getElementById('said').textContent = all.join(', ');
	});
</script>`

// Chromium opens wss:// on its HTTP/2 connection (RFC 8441) when the server
// announces that it may.
func TestChromiumOpensSocketsOverHTTP2(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	a := startApp(t, appOptions{
		TOML: metricsOn + tlsIn(dir) + "[server.websocket]\nsubprotocols = [\"chat\"]\ncompression = \"context_takeover\"\n",
		Files: map[string]string{
			"index.php": http2Page,
			"env.php":   `<?php echo getenv('GODEBUG');`,
			"websocket.php": `<?php
				switch ($_SERVER['WS_EVENT']) {
				case 'connect':
					ephpm_ws_send("{$_SERVER['SERVER_PROTOCOL']} {$_SERVER['REQUEST_METHOD']} {$_SERVER['WS_SAME_ORIGIN']}");
					break;
				case 'message':
					$text = file_get_contents('php://input');
					$text === 'close' ? ephpm_ws_close(4000, "bye {$_GET['i']}") : ephpm_ws_send($text);
				}`,
		},
	})
	_, port, _ := strings.Cut(a.Addr, ":")
	b := newBrowser(t,
		chromedp.Flag("ignore-certificate-errors-spki-list", spki(t, filepath.Join(dir, "cert.pem"))),
		chromedp.Flag("host-resolver-rules", "MAP a.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	tab := b.newProfile().open("https://a.test:" + port + "/")
	tab.waitText("#page", "HTTP/2.0")
	var want []string
	for i := 1; i <= 3; i++ {
		want = append(want, fmt.Sprintf("chat HTTP/2.0 GET 1 hello %d 300000 4000 bye %d true", i, i))
	}
	tab.waitText("#said", strings.Join(want, ", "))
	_, body := visitWith(t, ca.client(http2), "https://"+a.Addr+"/env.php")
	if body != "" {
		t.Errorf("scripts see GODEBUG=%q, which is the server's own", body)
	}
}

// :protocol belongs to CONNECT (RFC 8441 §4), and there to what the server knows.
func TestProtocolsThatHTTP2Refuses(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: "[server]\nh2c = true\n", Files: map[string]string{
		"index.php":     `<?php echo 'a page ', implode(preg_grep('/PROTOCOL/', array_keys($_SERVER)));`,
		"websocket.php": `<?php`,
	}})
	for _, c := range []struct{ method, protocol, status string }{
		{"GET", "", "200"},
		{"GET", "websocket", "400"},
		{"POST", "websocket", "400"},
		{"GET", "connect-udp", "400"},
		{"CONNECT", "connect-udp", "501"},
		{"CONNECT", "WebSocket", "501"}, // names of protocols are compared as they are
	} {
		w := a.frames(nil)
		pairs := []string{":method", c.method, ":scheme", "http", ":path", "/", ":authority", a.Addr}
		if c.protocol != "" {
			pairs = append(pairs, ":protocol", c.protocol)
		}
		if err := w.WriteHeaders(h2.HeadersFrameParam{StreamID: 1, BlockFragment: w.fields(pairs...), EndStream: true, EndHeaders: true}); err != nil {
			t.Fatal(err)
		}
		if got := w.answer(1); got.status != c.status {
			t.Errorf("%s with :protocol %q: %v, want %s", c.method, c.protocol, got, c.status)
		}
	}
}
