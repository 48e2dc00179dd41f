package e2e

//lint:file-ignore SA1019 http.Transport refuses the :protocol of an extended CONNECT, http2.Transport sends it

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	h2 "golang.org/x/net/http2"
)

// transports are what sockets come over.
var transports = []string{"plain", "TLS", "HTTP/2", "HTTP/3"}

// An everyHTTP is a server on all transports. All sockets over HTTP/2 share one
// connection, those over HTTP/3 another.
type everyHTTP struct {
	*app
	ca     *authority
	tls    string // address
	two    *h2.Transport
	quic   *quicApp
	opened context.Context // ends with the test

	mu    sync.Mutex // guards the following
	three *http3.ClientConn
}

func startEveryHTTP(t *testing.T, o appOptions) *everyHTTP {
	t.Helper()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	o.TOML = tlsIn(dir) + "listen = \"127.0.0.1:0\"\n" + o.TOML
	q := &quicApp{app: startApp(t, o), ca: ca, certs: dir, t: t}
	q.findAddr()
	e := &everyHTTP{app: q.app, ca: ca, tls: strings.TrimPrefix(q.tlsURL(), "https://"), quic: q, opened: t.Context()}
	e.two = &h2.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool}, StrictMaxConcurrentStreams: true}
	t.Cleanup(e.two.CloseIdleConnections)
	return e
}

// dial opens one more socket; header are lines.
func (e *everyHTTP) dial(t *testing.T, over string, header ...string) *frames {
	t.Helper()
	switch over {
	case "plain":
		return e.on(t).dialWire("/", header...)
	case "TLS":
		a := e.on(t)
		a.Addr = e.tls
		w := a.connectTLS(e.ca)
		w.send(upgradeText("/", header...))
		return w.accepted()
	}
	resp, conn := e.extendedConnect(t, over, "/", header)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("extended CONNECT over %s: %s", over, resp.Status)
	}
	return &frames{wire: &wire{t: t, Conn: conn, in: bufio.NewReader(conn)}, resp: resp}
}

// extendedConnect asks for a socket over HTTP/2 or HTTP/3.
func (e *everyHTTP) extendedConnect(t *testing.T, over, path string, header []string) (*http.Response, *streamConn) {
	t.Helper()
	if over == "HTTP/2" {
		return e.connectHTTP2(t, path, header)
	}
	return e.connectHTTP3(t, path, header)
}

// connectRequest is an extended CONNECT (RFC 8441 §4).
func (e *everyHTTP) connectRequest(t *testing.T, path string, header []string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodConnect, "https://"+e.tls+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Sec-WebSocket-Version", "13")
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	return req
}

func (e *everyHTTP) connectHTTP2(t *testing.T, path string, header []string) (*http.Response, *streamConn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(e.opened, 3*patience)
	t.Cleanup(cancel)
	body, w := io.Pipe()
	req := e.connectRequest(t, path, header, body)
	req.Header[":protocol"] = []string{"websocket"} // as the Transport has it
	resp, err := e.two.RoundTrip(req.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	return resp, &streamConn{r: resp.Body, w: w, end: cancel}
}

// openStream opens a stream of HTTP/3, on a new connection when the server has closed
// the one before as idle.
func (e *everyHTTP) openStream(t *testing.T) *http3.RequestStream {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	ctx, cancel := context.WithTimeout(e.opened, 3*patience)
	defer cancel()
	for again := range 2 {
		if e.three == nil {
			e.three = e.quic.http3Conn()
		}
		s, err := e.three.OpenRequestStream(ctx)
		if err == nil {
			return s
		}
		if e.three = nil; again == 1 {
			t.Fatal(err)
		}
	}
	return nil
}

func (e *everyHTTP) connectHTTP3(t *testing.T, path string, header []string) (*http.Response, *streamConn) {
	t.Helper()
	s := e.openStream(t)
	if err := s.SetDeadline(time.Now().Add(3 * patience)); err != nil {
		t.Fatal(err)
	}
	req := e.connectRequest(t, path, header, nil)
	req.Proto = "websocket"
	if err := s.SendRequestHeader(req); err != nil {
		t.Fatal(err)
	}
	resp, err := s.ReadResponse()
	if err != nil {
		t.Fatal(err)
	}
	end := func() {
		s.CancelWrite(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
		s.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
	}
	t.Cleanup(end)
	return resp, &streamConn{r: s, w: s, end: end}
}

// A streamConn is a stream of HTTP/2 or HTTP/3.
type streamConn struct {
	net.Conn // there is none: for what nobody calls
	r        io.Reader
	w        io.WriteCloser
	end      func()
	writing  sync.Mutex // TCP takes writes of several goroutines, a stream does not
}

func (c *streamConn) Read(p []byte) (int, error) { return c.r.Read(p) }

func (c *streamConn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.w.Write(p)
}

// Close resets the stream.
func (c *streamConn) Close() error {
	c.end()
	return nil
}
