package e2e

import (
	"path/filepath"
	"regexp"
	"testing"
)

// The variables of the three events of one connection, whose upgrade has all
// that matters.
func TestServerVariablesOfEvents(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	const (
		names = `['WS_EVENT', 'WS_CONNECTION_ID', 'WS_OPCODE', 'WS_SAME_ORIGIN', 'CONTENT_TYPE', 'CONTENT_LENGTH', 'REQUEST_METHOD',
			'REQUEST_URI', 'QUERY_STRING', 'HTTP_COOKIE', 'HTTP_ORIGIN', 'HTTP_HOST', 'HTTP_SEC_WEBSOCKET_PROTOCOL',
			'HTTP_USER_AGENT', 'HTTP_X_OWN', 'HTTP_CONNECTION', 'HTTP_UPGRADE', 'HTTP_SEC_WEBSOCKET_KEY',
			'HTTP_SEC_WEBSOCKET_VERSION', 'HTTP_SEC_WEBSOCKET_EXTENSIONS', 'HTTP_CONTENT_LENGTH', 'HTTP_CONTENT_TYPE', 'HTTPS', 'REMOTE_ADDR', 'REMOTE_PORT',
			'SCRIPT_FILENAME', 'SCRIPT_NAME', 'DOCUMENT_ROOT', 'SERVER_PROTOCOL', 'WS_CLOSE_CODE', 'WS_CLOSE_REASON',
			'WS_CLOSE_CAUSE', 'WS_DURATION_MS']`
		note = `trail(array_intersect_key($_SERVER, array_flip(` + names + `)) +
			['$_GET' => $_GET['room'], '$_COOKIE' => text($_COOKIE), 'counts' => count($_POST) . count($_FILES), 'input' => file_get_contents('php://input')]);`
	)
	target := events(note, note) + "&room=12"
	w := a.connect()
	w.send(upgradeText(target, "Cookie: sid=7; theme=dark", "Origin: http://x", "Sec-WebSocket-Protocol: v1", "User-Agent: test",
		"X-Own: mine", "Sec-WebSocket-Extensions: permessage-deflate", "Content-Type: text/x-odd", "Content-Length: 2") + "hi")
	f := w.accepted()
	f.say(frameText, note)
	f.say(frameBinary, note)
	f.say(frameClose, closePayload(4321, "because"))
	lines := a.trail(5) // the last is what the disconnect code returned

	root, err := filepath.Abs("testdata/play")
	if err != nil {
		t.Fatal(err)
	}
	root, err = filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	_, port := splitAddr(t, w.LocalAddr().String())
	first := fromJSON[map[string]string](t, lines[0])
	all := map[string]string{
		"WS_CONNECTION_ID": first["WS_CONNECTION_ID"], "WS_SAME_ORIGIN": "1", "REQUEST_METHOD": "GET", "REQUEST_URI": target, "QUERY_STRING": target[2:],
		"HTTP_COOKIE": "sid=7; theme=dark", "HTTP_ORIGIN": "http://x", "HTTP_HOST": "x", "HTTP_SEC_WEBSOCKET_PROTOCOL": "v1",
		"HTTP_USER_AGENT": "test", "HTTP_X_OWN": "mine", "REMOTE_ADDR": "127.0.0.1", "REMOTE_PORT": port,
		"SCRIPT_FILENAME": root + "/websocket.php", "SCRIPT_NAME": "/websocket.php", "DOCUMENT_ROOT": root, "SERVER_PROTOCOL": "HTTP/1.1",
		"$_GET": "12", "$_COOKIE": `{"sid":"7","theme":"dark"}`, "counts": "00", "input": "",
	}
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(first["WS_CONNECTION_ID"]) {
		t.Errorf("WS_CONNECTION_ID is %q, want 32 lower-case hex digits", first["WS_CONNECTION_ID"])
	}
	for i, own := range []map[string]string{
		{"WS_EVENT": "connect", "HTTP_CONNECTION": "Upgrade", "HTTP_UPGRADE": "websocket", "HTTP_SEC_WEBSOCKET_KEY": "dGhlIHNhbXBsZSBub25jZQ==",
			"HTTP_SEC_WEBSOCKET_VERSION": "13", "HTTP_SEC_WEBSOCKET_EXTENSIONS": "permessage-deflate", "CONTENT_TYPE": "text/x-odd", "HTTP_CONTENT_TYPE": "text/x-odd", "input": "hi"},
		{"WS_EVENT": "message", "WS_OPCODE": "text", "CONTENT_TYPE": "text/plain; charset=utf-8", "input": note},
		{"WS_EVENT": "message", "WS_OPCODE": "binary", "CONTENT_TYPE": "application/octet-stream", "input": note},
		{"WS_EVENT": "disconnect", "WS_CLOSE_CODE": "4321", "WS_CLOSE_REASON": "because", "WS_CLOSE_CAUSE": "client"},
	} {
		got := fromJSON[map[string]string](t, lines[i])
		if own["WS_EVENT"] == "disconnect" {
			if !regexp.MustCompile(`^[0-9]+$`).MatchString(got["WS_DURATION_MS"]) {
				t.Errorf("WS_DURATION_MS is %q, want a number", got["WS_DURATION_MS"])
			}
			delete(got, "WS_DURATION_MS")
		}
		if own["WS_EVENT"] == "connect" {
			// What PHP sees of the body's length is the bridge's to say.
			delete(got, "CONTENT_LENGTH")
			delete(got, "HTTP_CONTENT_LENGTH")
		}
		for name, value := range all {
			if _, ok := own[name]; !ok {
				own[name] = value
			}
		}
		for name, want := range own {
			if value, ok := got[name]; !ok || value != want {
				t.Errorf("%s: %s is %q (there: %v), want %q", own["WS_EVENT"], name, value, ok, want)
			}
			delete(got, name)
		}
		for name, value := range got {
			t.Errorf("%s has %s=%q, which it must not have", own["WS_EVENT"], name, value)
		}
	}
}

func splitAddr(t *testing.T, addr string) (host, port string) {
	t.Helper()
	m := regexp.MustCompile(`^(.*):([0-9]+)$`).FindStringSubmatch(addr)
	if m == nil {
		t.Fatalf("address %q", addr)
	}
	return m[1], m[2]
}

func TestConnectionIDsDiffer(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	seen := map[string]bool{}
	for range 100 {
		seen[a.join("", "").id()] = true
	}
	if len(seen) != 100 {
		t.Errorf("100 connections have %d IDs", len(seen))
	}
}
