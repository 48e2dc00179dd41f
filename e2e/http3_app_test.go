package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// A quicApp is a server that speaks HTTP/3, with a client that does.
type quicApp struct {
	*app
	ca     *authority
	Addr   *net.UDPAddr
	URL    string // https://127.0.0.1:PORT of UDP
	client *http.Client
	certs  string // directory of the certificate
	t      *testing.T
}

// startHTTP3 starts a server with a certificate for a.test and 127.0.0.1.
func startHTTP3(t *testing.T, o appOptions) *quicApp {
	t.Helper()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	o.TOML += tlsIn(dir)
	a := &quicApp{app: startApp(t, o), ca: ca, certs: dir, t: t}
	a.findAddr()
	a.client = a.newClient(nil, nil)
	return a
}

// findAddr takes the UDP address from the log.
func (a *quicApp) findAddr() {
	a.t.Helper()
	_, port, err := net.SplitHostPort(a.waitLog(`msg="HTTP/3 listening" addr="?(\S+?)"? `)[1])
	if err != nil {
		a.t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		a.t.Fatal(err)
	}
	a.Addr = &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: n}
	a.URL = "https://" + a.Addr.String()
}

// newClient returns a client with a connection of its own. Both may be nil.
func (a *quicApp) newClient(c *tls.Config, q *quic.Config) *http.Client {
	if c == nil {
		c = &tls.Config{}
	}
	c.RootCAs = a.ca.Pool
	transport := &http3.Transport{TLSClientConfig: c, QUICConfig: q}
	a.t.Cleanup(func() { _ = transport.Close() })
	return &http.Client{
		Transport: transport, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// conn returns a QUIC connection that speaks no HTTP yet.
func (a *quicApp) conn() *quic.Conn {
	a.t.Helper()
	c, err := a.tryConn()
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// tryConn is conn where the server may close a connection at once.
func (a *quicApp) tryConn() (*quic.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := quic.DialAddr(ctx, a.Addr.String(), &tls.Config{RootCAs: a.ca.Pool, NextProtos: []string{http3.NextProtoH3}}, nil)
	if err == nil {
		a.t.Cleanup(func() { _ = c.CloseWithError(0, "") })
	}
	return c, err
}

// request makes a request over HTTP/3. Pairs of header are a name and a value.
func (a *quicApp) request(method, path, body string, header ...string) *http.Request {
	a.t.Helper()
	req, err := http.NewRequest(method, a.URL+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return req
}

// fetch is for any goroutine.
func (a *quicApp) fetch(req *http.Request) (*http.Response, string, error) {
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// do sends a request and returns the answer and its body.
func (a *quicApp) do(req *http.Request) (*http.Response, string) {
	a.t.Helper()
	resp, body, err := a.fetch(req)
	if err != nil {
		a.t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	return resp, body
}

func (a *quicApp) get(path string) (*http.Response, string) {
	a.t.Helper()
	return a.do(a.request("GET", path, ""))
}

// wantBody is for any goroutine.
func (a *quicApp) wantBody(path, want string) error {
	resp, body, err := a.fetch(a.request("GET", path, ""))
	if err == nil && (resp.StatusCode != 200 || body != want) {
		err = fmt.Errorf("%s: %s %q, want %q", path, resp.Status, body, want)
	}
	return err
}

// waitMetric waits until a series has a value. The server needs metricsOn.
func (a *quicApp) waitMetric(series string, want float64) {
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

// metric returns the value of a series over HTTP/3.
func (a *quicApp) metric(series string) (float64, error) {
	_, body, err := a.fetch(a.request("GET", "/metrics", ""))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, errors.New("there is no such series")
}
