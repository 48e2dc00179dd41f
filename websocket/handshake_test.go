package websocket

import (
	"bufio"
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func newReader(b []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(b)) }

func parse(t *testing.T, s string) *http.Request {
	t.Helper()
	r, err := http.ReadRequest(newReader([]byte(s)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestIsUpgrade(t *testing.T) {
	for edit, want := range map[[2]string]bool{
		{"", ""}:                           true,
		{"GET", "POST"}:                    false,
		{"HTTP/1.1", "HTTP/1.0"}:           false,
		{": Upgrade", ": keep-alive"}:      false,
		{": Upgrade", ": x, uPgRaDe"}:      true,
		{": websocket", ": h2c"}:           false,
		{": websocket", ": h2c,WebSocket"}: true,
		{"Connection: Upgrade", "Connection: close\r\nConnection: upgrade"}: true,
		{"Sec-WebSocket-Version: 13\r\n", ""}:                               true,
	} {
		s := handshake
		if edit[0] != "" {
			s = strings.Replace(s, edit[0], edit[1], 1)
		}
		if got := IsUpgrade(parse(t, s)); got != want {
			t.Errorf("with %q for %q: IsUpgrade = %v, want %v", edit[1], edit[0], got, want)
		}
	}
}

func TestCheckHandshakeNamesTheHeader(t *testing.T) {
	if err := CheckHandshake(parse(t, handshake)); err != nil {
		t.Errorf("good handshake: %v", err)
	}
	for _, c := range []struct{ old, new, names string }{
		{"Version: 13", "Version: 8", "Sec-WebSocket-Version"},
		{"Sec-WebSocket-Version: 13\r\n", "", "Sec-WebSocket-Version"},
		{"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "", "Sec-WebSocket-Key"},
		{"dGhlIHNhbXBsZSBub25jZQ==", "short", "Sec-WebSocket-Key"},
		{"dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZTIz", "Sec-WebSocket-Key"},
		{"Sec-WebSocket-Key: ", "Sec-WebSocket-Key: x\r\nSec-WebSocket-Key: ", "Sec-WebSocket-Key"},
		{"GET", "POST", "GET"},
	} {
		err := CheckHandshake(parse(t, strings.Replace(handshake, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("with %q: %v, want an error that names %s", c.new, err, c.names)
		}
	}
}

// acceptOver accepts r over a pipe that it closes again.
func acceptOver(c *Conn, r *http.Request) error {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	return c.Accept(&pipeWriter{ResponseRecorder: httptest.NewRecorder(), conn: near}, r, "")
}

// What CheckHandshake passes, Accept must accept.
func FuzzCheckHandshake(f *testing.F) {
	f.Add("dGhlIHNhbXBsZSBub25jZQ==", "13", "Upgrade", "websocket")
	f.Add("x", "8", "keep-alive, Upgrade", "h2c, WebSocket")
	f.Add("dGhlIHNhbXBsZSBub25jZQ=\n=", "13 ", "", "")
	f.Fuzz(func(t *testing.T, key, version, connection, upgrade string) {
		r := &http.Request{Method: "GET", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{
			"Sec-Websocket-Key": {key}, "Sec-Websocket-Version": {version},
			"Connection": {connection}, "Upgrade": {upgrade},
		}}
		if CheckHandshake(r) != nil {
			return
		}
		if err := acceptOver(newLoop(t).New(&Options{}), r); err != nil {
			t.Errorf("CheckHandshake passed what Accept refuses: %v", err)
		}
	})
}
