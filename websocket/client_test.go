package websocket

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const handshake = "GET /chat HTTP/1.1\r\nHost: example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

type handler = func(context.Context, Message) error

func ignore(context.Context, Message) error { return nil }

// A client speaks raw frames, so that it can break every rule.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

// newLoop returns a Loop that is closed, and must be empty, when the test ends.
func newLoop(t testing.TB) *Loop {
	t.Helper()
	l := NewLoop()
	t.Cleanup(l.Close)
	return l
}

// A fakeHandler is a Handler from functions.
type fakeHandler struct {
	message handler
	closed  chan Closed
}

func (h fakeHandler) Message(m Message) error { return h.message(context.Background(), m) }
func (h fakeHandler) Closing()                {}
func (h fakeHandler) Closed(c Closed)         { h.closed <- c }

// start starts c and returns where its end is told.
func start(c *Conn, h handler) <-chan Closed {
	closed := make(chan Closed, 1)
	c.Start(fakeHandler{h, closed})
	return closed
}

// open serves one connection over loopback TCP. The Conn is handed over before
// its Accept by setup, which may be nil.
func open(t *testing.T, o Options, setup func(*Conn), h func(*Conn) handler) (*client, *Conn, <-chan Closed) {
	t.Helper()
	return openOn(t, newLoop(t), o, setup, h)
}

func openOn(t *testing.T, loop *Loop, o Options, setup func(*Conn), h func(*Conn) handler) (*client, *Conn, <-chan Closed) {
	t.Helper()
	conns, done := make(chan *Conn, 1), make(chan (<-chan Closed), 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := loop.New(&o)
		if setup != nil {
			setup(c)
		}
		conns <- c
		if err := c.Accept(w, r, ""); err != nil {
			t.Error(err)
			return
		}
		done <- start(c, h(c))
	}))
	t.Cleanup(s.Close)
	tcp, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	_ = tcp.SetDeadline(time.Now().Add(time.Minute))
	cl := &client{t: t, Conn: tcp, r: bufio.NewReader(tcp)}
	cl.write([]byte(handshake))
	cl.expect101()
	return cl, <-conns, <-done
}

// piped serves one connection over net.Pipe, for synctest.
func piped(t *testing.T, o Options, h func(*Conn) handler) (*client, *Conn, <-chan Closed) {
	t.Helper()
	return pipedAs(t, o, func(c net.Conn) net.Conn { return c }, h)
}

// pipedAs is piped with the server's end in wrap.
func pipedAs(t *testing.T, o Options, wrap func(net.Conn) net.Conn, h func(*Conn) handler) (*client, *Conn, <-chan Closed) {
	t.Helper()
	near, far := net.Pipe()
	cl := &client{t: t, Conn: near, r: bufio.NewReader(near)}
	c := newLoop(t).New(&o)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(handshake)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Accept(&pipeWriter{ResponseRecorder: httptest.NewRecorder(), conn: wrap(far)}, r, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Cut(CauseGone) })
	return cl, c, start(c, h(c))
}

type pipeWriter struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (w *pipeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.conn, bufio.NewReadWriter(bufio.NewReader(w.conn), bufio.NewWriter(w.conn)), nil
}

func (c *client) write(b []byte) {
	c.t.Helper()
	if _, err := c.Conn.Write(b); err != nil {
		c.t.Fatalf("client write: %v", err)
	}
}

func (c *client) expect101() http.Header {
	c.t.Helper()
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		c.t.Fatalf("status %d, want 101", resp.StatusCode)
	}
	return resp.Header
}

// masked is one client frame; first holds FIN, RSV and opcode.
func masked(first byte, payload []byte) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, maskBit|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, maskBit|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, maskBit|127), uint64(n))
	}
	key := [4]byte{1, 2, 3, 4}
	b = append(b, key[:]...)
	for i, x := range payload {
		b = append(b, x^key[i%4])
	}
	return b
}

func text(s string) []byte { return masked(fin|opText, []byte(s)) }

func closing(code int, reason string) []byte {
	return masked(fin|opClose, append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...))
}

// next reads one server frame.
func (c *client) next() (op byte, payload []byte, err error) {
	var h [2]byte
	if _, err = io.ReadFull(c.r, h[:]); err != nil {
		return 0, nil, err
	}
	n := uint64(h[1])
	switch n {
	case 126:
		var l [2]byte
		_, err = io.ReadFull(c.r, l[:])
		n = uint64(binary.BigEndian.Uint16(l[:]))
	case 127:
		var l [8]byte
		_, err = io.ReadFull(c.r, l[:])
		n = binary.BigEndian.Uint64(l[:])
	}
	if err != nil {
		return 0, nil, err
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(c.r, payload)
	return h[0] & opcodeBits, payload, err
}

// want reads one frame and compares it; a close payload is "1000 reason".
func (c *client) want(op byte, payload string) {
	c.t.Helper()
	gotOp, got, err := c.next()
	if err != nil {
		c.t.Fatalf("reading a frame: %v, want opcode %d %q", err, op, payload)
	}
	if gotOp == opClose && len(got) >= 2 {
		got = fmt.Appendf(nil, "%d %s", binary.BigEndian.Uint16(got), got[2:])
	}
	if gotOp != op || string(got) != payload {
		c.t.Fatalf("got opcode %d %.60q, want opcode %d %.60q", gotOp, got, op, payload)
	}
}

func (c *client) wantEOF() {
	c.t.Helper()
	if b, err := c.r.ReadByte(); err != io.EOF {
		c.t.Fatalf("got byte %#x, error %v, want a clean end of file", b, err)
	}
}
