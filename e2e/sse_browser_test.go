package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// clientOfTheDocs is the client that docs/websockets.md gives to its readers.
func clientOfTheDocs(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/websockets.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text2, _ := strings.Cut(string(text), "### A client for both")
	_, text2, _ = strings.Cut(text2, "```js\n")
	code, _, found := strings.Cut(text2, "```")
	if !found || !strings.Contains(code, "class Connection") {
		t.Fatal("docs/websockets.md has no client any more")
	}
	return code
}

const browserEcho = `<?php
	switch ($_SERVER['WS_EVENT']) {
	case 'connect': ephpm_ws_subscribe('all'); ephpm_ws_send($_SERVER['WS_TRANSPORT'] ?? 'websocket'); break;
	case 'message':
		$text = file_get_contents('php://input');
		if ($text === 'restart') { ephpm_ws_close(1012); ephpm_ws_broadcast('all', 'missed'); break; }
		if ($text === 'end') { ephpm_ws_close(4000, 'bye'); break; }
		ephpm_ws_broadcast('all', $text, $_SERVER['WS_OPCODE'] === 'binary');
	}`

// The client of the documentation in a real browser: by a socket, and by events where
// there is none. It comes back after a close that asks for it, and not after a final
// one.
func TestBrowserFallsBackToEvents(t *testing.T) {
	t.Parallel()
	page := func(before string) string {
		return `<!DOCTYPE html><p id=got></p><script>` + before + clientOfTheDocs(t) + `
			const all = [];
			const c = new Connection(location.origin + '/room?x=1', data => {
				all.push(typeof data === 'string' ? data : 'bytes ' + new Uint8Array(data).join());
				document.getElementById('got').textContent = all.join(';');
			});
			const send = async () => {
				for (const data of ['one', 'two\nlines', new Uint8Array([0, 255]), 'end of it']) await c.send(data);
			};
		</script>`
	}
	a := startApp(t, appOptions{TOML: sseOn, Files: map[string]string{
		"websocket.php": browserEcho,
		"socket.html":   page(""),
		"events.html": page(`window.WebSocket = class {
			constructor() { setTimeout(() => this.onclose({ code: 1006 })); } // as where a proxy breaks sockets
		};`),
	}})
	p := newBrowser(t).newProfile()
	for name, first := range map[string]string{"socket.html": "websocket", "events.html": "sse"} {
		tab := p.open(a.URL + "/" + name)
		tab.waitText("#got", first)
		tab.wait("c.out")
		tab.wait("window.sent ??= (send(), true)") // once, however often it is asked
		tab.waitText("#got", first+";one;two\nlines;bytes 0,255;end of it")
		if first != "sse" {
			tab.do("leave", chromedp.Navigate("about:blank"))
			continue
		}
		tab.wait("window.restarted ??= (c.send('restart'), true)")
		tab.waitText("#got", first+";one;two\nlines;bytes 0,255;end of it;missed;sse") // it is back
		tab.wait("c.out")
		tab.wait("window.again ??= (c.send('again'), true)")
		tab.waitText("#got", first+";one;two\nlines;bytes 0,255;end of it;missed;sse;again")
	}
}

// An EventSource by itself: it comes back with what it missed, and stops for good when
// it must not come back.
func TestEventSourceComesBackAndStops(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: sseOn, Files: map[string]string{
		"websocket.php": browserEcho,
		"send.php":      `<?php echo ephpm_ws_broadcast('all', $_GET['text']);`,
		"page.html": `<!DOCTYPE html><p id=got></p><p id=said></p><script>
			const all = [], said = [];
			const es = new EventSource('/events');
			let key;
			es.addEventListener('connection', e => { const c = JSON.parse(e.data); key = c.key; said.push(c.resumed); });
			es.addEventListener('close', e => said.push(JSON.parse(e.data).code));
			es.onmessage = e => all.push(e.data);
			const post = body => fetch('/', { method: 'POST', body, headers: { 'WS-Connection-Key': key } });
			setInterval(() => {
				document.getElementById('got').textContent = all.join(';');
				document.getElementById('said').textContent = said.join(';');
			}, 10);
		</script>`,
	}})
	tab := newBrowser(t).newProfile().open(a.URL + "/page.html")
	tab.waitText("#got", "sse")
	a.get("/send.php?text=one")
	tab.waitText("#got", "sse;one")
	tab.wait("window.restarted ??= (post('restart'), true)")
	tab.waitText("#said", "false;1012;true")
	tab.waitText("#got", "sse;one;missed;sse")
	tab.wait("window.ended ??= (post('end'), true)")
	tab.waitText("#said", "false;1012;true;4000")
	tab.wait("es.readyState === EventSource.CLOSED")
}
