package e2e

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/coder/websocket"
)

// A socket is a WebSocket client that is not ours.
type socket struct {
	t    testing.TB
	conn *websocket.Conn
	resp *http.Response // of the handshake
}

// dial opens a WebSocket at a path. Set header for cookies, Origin and the like.
// The socket is closed when the test ends.
func (a *app) dial(path string, header http.Header) *socket {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, a.URL+path, &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		a.t.Fatalf("dial %s: %v", path, err)
	}
	conn.SetReadLimit(-1)
	a.t.Cleanup(func() { _ = conn.CloseNow() }) // may be closed already
	return &socket{t: a.t, conn: conn, resp: resp}
}

// refusal tries to open a WebSocket at a path, which must fail, and returns the
// server's answer and its body.
func (a *app) refusal(path string, header http.Header) (*http.Response, string) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, a.URL+path, &websocket.DialOptions{HTTPHeader: header})
	if err == nil {
		_ = conn.CloseNow()
		a.t.Fatalf("dial %s was accepted, want a refusal", path)
	}
	if resp == nil {
		a.t.Fatalf("dial %s: no answer: %v", path, err)
	}
	// The client keeps the first kilobyte of the body of a refusal.
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatalf("dial %s: read body: %v", path, err)
	}
	return resp, string(body)
}

// send sends a text message.
func (s *socket) send(text string) {
	s.t.Helper()
	s.sendFrame(websocket.MessageText, []byte(text))
}

// sendFrame sends a message of either kind.
func (s *socket) sendFrame(kind websocket.MessageType, data []byte) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.conn.Write(ctx, kind, data); err != nil {
		s.t.Fatalf("send: %v", err)
	}
}

// recv returns the next message, which must be text.
func (s *socket) recv() string {
	s.t.Helper()
	kind, data := s.recvFrame()
	if kind != websocket.MessageText {
		s.t.Fatalf("received %v of %d bytes, want text", kind, len(data))
	}
	return string(data)
}

// recvFrame returns the next message of either kind.
func (s *socket) recvFrame() (websocket.MessageType, []byte) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	kind, data, err := s.conn.Read(ctx)
	if err != nil {
		s.t.Fatalf("receive: %v", err)
	}
	return kind, data
}

// recvClose reads until the server closes and returns its code and reason, and
// how many messages came before.
func (s *socket) recvClose() (code int, reason string, before int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for ; ; before++ {
		_, _, err := s.conn.Read(ctx)
		if err == nil {
			continue
		}
		var ce websocket.CloseError
		if !errors.As(err, &ce) {
			s.t.Fatalf("connection ended without a close frame: %v", err)
		}
		return int(ce.Code), ce.Reason, before
	}
}

// close ends the connection from this side in good order.
func (s *socket) close() {
	s.t.Helper()
	if err := s.conn.Close(websocket.StatusNormalClosure, ""); err != nil {
		s.t.Errorf("close: %v", err)
	}
}

// dialCompressed is dial for a client that offers compression.
func (a *app) dialCompressed(path string) *socket {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, a.URL+path, &websocket.DialOptions{CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 1})
	if err != nil {
		a.t.Fatalf("dial %s: %v", path, err)
	}
	a.t.Cleanup(func() { _ = conn.CloseNow() }) // may be closed already
	return &socket{t: a.t, conn: conn, resp: resp}
}
