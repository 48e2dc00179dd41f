package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// hundred calls f a hundred times at once, with 0 to 99, and reports its errors:
// what belongs to one request must not be seen in another.
func hundred(t *testing.T, f func(i int) error) {
	t.Helper()
	errs := make([]error, 100)
	together := len(errs)
	if *under != "" {
		together = 2 * fewWorkers // more would only wait for each other's limits
	}
	room := make(chan struct{}, together)
	var wg sync.WaitGroup
	for i := range errs {
		room <- struct{}{}
		wg.Go(func() {
			errs[i] = f(i)
			<-room
		})
	}
	wg.Wait()
	failed := 0
	for i, err := range errs {
		if err == nil {
			continue
		}
		if failed++; failed <= 3 {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if failed > 3 {
		t.Errorf("%d of 100 requests failed", failed)
	}
}

// wantBody fetches and compares the body, and the status with 200.
func wantBody(req *http.Request, want string) error {
	resp, body, err := fetch(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || body != want {
		return fmt.Errorf("%s %s: %s %q, want 200 %q", req.Method, req.URL.RequestURI(), resp.Status, body, want)
	}
	return nil
}

// getUnless is get for what a busy machine may refuse with a status: 503 when no
// worker came free in time, 504 when a script was over its limit. It asks again then.
func (a *app) getUnless(busy int, path string) (*http.Response, string) {
	a.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		resp, body := a.get(path)
		if resp.StatusCode != busy || time.Now().After(deadline) {
			return resp, body
		}
	}
}

// wantBodyUnless is wantBody of a page, as getUnless asks for it.
func (a *app) wantBodyUnless(busy int, path, want string) {
	a.t.Helper()
	if resp, body := a.getUnless(busy, path); resp.StatusCode != http.StatusOK || body != want {
		a.t.Errorf("%s: %s %q, want 200 %q", path, resp.Status, body, want)
	}
}

// A wire is a TCP connection to a server, for what no HTTP client would send and
// to see what it really answers.
type wire struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

// connect opens a connection. It is closed when the test ends.
func (a *app) connect() *wire {
	a.t.Helper()
	w, err := a.tryConnect()
	if err != nil {
		a.t.Fatal(err)
	}
	return w
}

// tryConnect is connect for any goroutine.
func (a *app) tryConnect() (*wire, error) {
	conn, err := net.DialTimeout("tcp", a.Addr, patience)
	if err != nil {
		return nil, err
	}
	a.t.Cleanup(func() { _ = conn.Close() }) // may be closed already
	return newWire(a.t, conn), nil
}

// newWire makes a wire of a connection. No read and no write on it takes longer
// than patience.
func newWire(t testing.TB, conn net.Conn) *wire {
	conn = &patientConn{Conn: conn}
	return &wire{t: t, Conn: conn, in: bufio.NewReader(conn)}
}

// A patientConn gives each read and each write as long as patience, unless it has
// been given a deadline.
type patientConn struct {
	net.Conn
	ownWrite bool // SetWriteDeadline was called
}

func (c *patientConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *patientConn) Write(p []byte) (int, error) {
	if !c.ownWrite {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

func (c *patientConn) SetWriteDeadline(t time.Time) error {
	c.ownWrite = true
	return c.Conn.SetWriteDeadline(t)
}

// NetConn returns the connection that is patient.
func (c *patientConn) NetConn() net.Conn { return c.Conn }

// tcp returns the TCP connection below a wire.
func (w *wire) tcp() *net.TCPConn {
	w.t.Helper()
	for c := w.Conn; ; {
		if tcp, ok := c.(*net.TCPConn); ok {
			return tcp
		}
		above, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			w.t.Fatalf("%T is not on TCP", c)
		}
		c = above.NetConn()
	}
}

// send writes bytes as they are.
func (w *wire) send(text string) {
	w.t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		w.t.Fatalf("send: %v", err)
	}
}

// answer reads one whole answer to a GET.
func (w *wire) answer() (*http.Response, string) {
	w.t.Helper()
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		w.t.Fatalf("no answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatalf("read body: %v", err)
	}
	return resp, string(body)
}

// rest reads until the server closes the connection. A reset is an error.
func (w *wire) rest() (string, error) {
	text, err := io.ReadAll(w.in)
	return string(text), err
}

// exchange sends bytes on a connection of their own and returns the answer.
func (a *app) exchange(text string) (*http.Response, string) {
	a.t.Helper()
	w := a.connect()
	_, _ = io.WriteString(w, text) // the server may answer, and close, before it has read all
	return w.answer()
}

// getExactly asks for a request target that no client may clean. Lines of header
// are added as they are.
func (a *app) getExactly(target string, header ...string) (*http.Response, string) {
	a.t.Helper()
	return a.exchange(getText(target, header...))
}

// getText is a GET as it goes over the wire.
func getText(target string, header ...string) string {
	lines := append([]string{"GET " + target + " HTTP/1.1", "Host: x"}, header...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// metric returns the value of a series, such as ephpm_php_backlog{class="page"}.
// The server needs metricsOn.
func (a *app) metric(series string) (float64, error) {
	_, body, err := fetch(a.request("GET", "/metrics", ""))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("no series %s", series)
}

const metricsOn = "[server.metrics]\nenabled = true\n"

// waitMetric waits until a series has a value.
func (a *app) waitMetric(series string, want float64) {
	a.t.Helper()
	err := eventually(func() error {
		got, err := a.metric(series)
		if err == nil && got != want {
			err = fmt.Errorf("it is %v", got)
		}
		return err
	})
	if err != nil {
		a.t.Fatalf("%s was never %v: %v", series, want, err)
	}
}

// A late is an answer that is on its way.
type late struct {
	t    testing.TB
	done chan struct{} // closed when the following is there
	resp *http.Response
	body string
	err  error
}

// later sends a request and does not wait for the answer.
func (a *app) later(req *http.Request) *late {
	l := &late{t: a.t, done: make(chan struct{})}
	go func() { // ends with the request, which has the limit of the test that it waits for
		defer close(l.done)
		l.resp, l.body, l.err = fetchWithin(hangAfter, req)
	}()
	return l
}

// there reports whether the answer is there.
func (l *late) there() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// wait returns the answer.
func (l *late) wait() (*http.Response, string) {
	l.t.Helper()
	<-l.done
	if l.err != nil {
		l.t.Fatal(l.err)
	}
	return l.resp, l.body
}

// firstOf returns what comes before sep in text.
func firstOf(text, sep string) string {
	first, _, _ := strings.Cut(text, sep)
	return first
}

// repeat returns n bytes that are not all the same.
func repeat(n int) string {
	return string(bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n])
}
