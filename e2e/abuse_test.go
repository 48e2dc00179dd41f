package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dialFrom opens a connection from an address of the loopback network. It is closed
// when the test ends.
func (a *app) dialFrom(source string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: patience}
	conn, err := d.Dial("tcp", a.Addr)
	if err == nil {
		a.t.Cleanup(func() { _ = conn.Close() }) // the server may have been first
	}
	return conn, err
}

// longTimeouts keep connections that are silent for as long as a test takes on a busy
// machine.
const longTimeouts = "[server.timeouts]\nheader_read = \"1h\"\nidle = \"1h\"\n"

// besiege opens n connections from sixteen addresses, each of which has a half
// request, and keeps them.
func (a *app) besiege(n int) {
	a.t.Helper()
	halves := []string{"", "GET / HT", "GET /hello.php HTTP/1.1\r\nHost: x\r\nX-Slow: ", "POST /hello.php HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx"}
	for i := range n {
		conn, err := a.dialFrom(fmt.Sprintf("127.0.0.%d", 2+i%16))
		if err != nil {
			a.t.Fatalf("connection %d: %v", i, err)
		}
		if half := halves[i%len(halves)]; half != "" {
			_, _ = io.WriteString(conn, half) // the server may have closed it for another
		}
	}
}

// halfOpen is how many clients besiege the server. Each costs this process and the
// server a descriptor.
var halfOpen = flag.Int("half-open", 4000, "half-open clients that must not stop pages")

func TestHalfOpenAndSlowClientsDoNotStopPages(t *testing.T) {
	t.Parallel()
	n := *halfOpen
	if raceEnabled {
		n = min(n, 500)
	}
	a := startApp(t, appOptions{
		TOML:  metricsOn + longTimeouts + "[php]\nworkers = 2\n",
		Files: map[string]string{"hello.php": `<?php echo "hello";`, "big.bin": repeat(4 << 20)},
	})
	a.besiege(n)
	for range 200 { // who ask for much and read nothing
		conn, err := a.dialFrom("127.0.0.99")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, getText("/big.bin")); err != nil {
			t.Fatal(err)
		}
	}
	hundred(t, func(int) error { return wantBody(a.request("GET", "/hello.php", ""), "hello") })
	err := eventually(func() error { // until it has accepted all
		open, err := a.metric("ephpm_http_connections")
		if err == nil && open < float64(n) {
			err = fmt.Errorf("it has %v connections, want the %d of this test", open, n)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAtTheLimitWhoAskedForNothingMakesRoom(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  metricsOn + longTimeouts + "[server.limits]\nmax_connections = 200\n",
		Files: map[string]string{"hello.php": `<?php echo "hello";`},
	})
	for range 300 {
		conn, err := a.dialFrom("127.0.0.2")
		if errors.Is(err, syscall.ECONNRESET) {
			continue // closed for another before connect returned
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "GET / HT") // the server may have closed it for another
	}
	// Once they are a second old, each page finds room.
	if err := eventually(func() error { return wantBody(a.request("GET", "/hello.php", ""), "hello") }); err != nil {
		t.Error(err)
	}
	err := eventually(func() error { // this finds room in the same way
		cut, err := a.metric(`ephpm_http_connections_cut_total{reason="room"}`)
		if err == nil && cut == 0 {
			t.Error("no connection made room")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestConnectionsOfOneAddressAreLimited(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	limits := longTimeouts + "[server.limits]\nper_ip_max_connections = 2\n"
	files := map[string]string{"hello.php": `<?php echo "hello";`}
	plain := startApp(t, appOptions{TOML: metricsOn + limits, Files: files})
	secure := startApp(t, appOptions{TOML: metricsOn + limits + tlsIn(dir), Files: files})
	for _, a := range []*app{plain, secure} {
		for range 2 {
			if _, err := a.dialFrom("127.0.0.2"); err != nil {
				t.Fatal(err)
			}
		}
	}
	dial := func(a *app, protocols ...string) io.ReadWriter {
		t.Helper()
		conn, err := a.dialFrom("127.0.0.2")
		if err != nil {
			t.Fatal(err)
		}
		if len(protocols) == 0 {
			return conn
		}
		return tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
	}
	for name, conn := range map[string]io.ReadWriter{"plain": dial(plain), "TLS": dial(secure, "http/1.1")} {
		if _, err := io.WriteString(conn, getText("/hello.php")); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 503 ") || !strings.Contains(string(answer), "\r\nRetry-After: 1\r\n") {
			t.Errorf("%s: %q, %v, want 503 and the end", name, answer, err)
		}
	}
	var tr http.Transport
	tr.DialTLSContext = func(context.Context, string, string) (net.Conn, error) { return dial(secure, "h2").(net.Conn), nil }
	tr.Protocols = http2
	resp, err := (&http.Client{Transport: &tr, Timeout: patience}).Get("https://" + secure.Addr + "/hello.php")
	if err != nil || resp.StatusCode != 503 || resp.ProtoMajor != 2 {
		t.Errorf("HTTP/2: %v, %v, want 503", resp, err)
	}
	if err := wantBody(plain.request("GET", "/hello.php", ""), "hello"); err != nil {
		t.Errorf("another address: %v", err)
	}
	plain.waitMetric(`ephpm_http_connections_refused_total{reason="ip_full"}`, 1)
}

func TestSocketsCountAsConnectionsOfTheirAddress(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.limits]\nper_ip_max_connections = 2\n")
	first := a.join("", "")
	a.join("", "")
	if resp, _ := a.refusal("/", nil); resp.StatusCode != 503 {
		t.Errorf("a third socket: %s, want 503", resp.Status)
	}
	first.close()
	err := eventually(func() error {
		resp, _, err := fetch(a.request("GET", "/page.php", ""))
		if err == nil && resp.StatusCode == 503 {
			err = errors.New(resp.Status)
		}
		return err
	})
	if err != nil {
		t.Errorf("when one has closed: %v", err)
	}
}

func TestRateOfOneClient(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  metricsOn + trustLoopback + "[server.limits]\nper_ip_rate = 0.001\nper_ip_burst = 3\n",
		Files: map[string]string{"hello.php": `<?php echo "hello";`, "a.txt": "text"},
	})
	ask := func(client, path string) *http.Response {
		resp, _ := a.getExactly(path, "X-Forwarded-For: "+client)
		return resp
	}
	for _, path := range []string{"/hello.php", "/a.txt", "/missing.txt/"} {
		if resp := ask("203.0.113.7", path); resp.StatusCode == 429 {
			t.Errorf("%s of the burst: %s", path, resp.Status)
		}
	}
	for _, path := range []string{"/hello.php", "/a.txt", "/_ephpm/health"} {
		wantRateRefusal(t, path, ask("203.0.113.7", path))
	}
	if resp := ask("203.0.113.8", "/hello.php"); resp.StatusCode != 200 {
		t.Errorf("another client: %s", resp.Status)
	}
	for range 5 { // the proxy's own: health checks
		if resp, _ := a.get("/_ephpm/health"); resp.StatusCode != 200 {
			t.Errorf("the proxy itself: %s", resp.Status)
		}
	}
	a.waitMetric("ephpm_rate_limited_total", 3)
}

// A site has rates of its own, for all and for each client, and other sites do not.
func TestRatesOfATableOfASite(t *testing.T) {
	t.Parallel()
	s := startSites(t, metricsOn+trustLoopback+`
[server.limits]
per_site_rate = 0.001
per_site_burst = 3
per_ip_burst = 7
[[site]]
names = ["clients.example"]
root = "$dir/sites/a"
limits.per_site_rate = 0
limits.per_ip_rate = 0.01
limits.per_ip_burst = 2
[[site]]
names = ["pages.example"]
root = "$dir/sites/a"
limits.per_site_burst = 1
limits.per_ip_rate = 0
[[site]]
names = ["server.example"]
root = "$dir/sites/a"
`, map[string]string{"a/index.php": `<?php echo "ran";`, "a/a.txt": "text"})
	ask := func(host, client, path string, want int) {
		t.Helper()
		resp, _ := s.ask(host, path, "X-Forwarded-For", client)
		if resp.StatusCode != want || want == 429 && resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s%s from %s: %s, Retry-After %q, want %d", host, path, client, resp.Status, resp.Header.Get("Retry-After"), want)
		}
	}
	for range 2 { // files count as well
		ask("clients.example", "203.0.113.7", "/a.txt", 200)
	}
	ask("clients.example", "203.0.113.7", "/", 429)
	for i := range 10 { // clients of their own
		ask("clients.example", fmt.Sprintf("203.0.113.%d", 10+i), "/", 200)
	}
	ask("pages.example", "203.0.113.7", "/", 200)
	ask("pages.example", "203.0.113.8", "/", 429)
	ask("pages.example", "203.0.113.8", "/a.txt", 200)
	for range 3 {
		ask("server.example", "203.0.113.7", "/", 200)
	}
	ask("server.example", "203.0.113.9", "/", 429)
	s.waitMetric("ephpm_rate_limited_total", 1)
	s.waitMetric("ephpm_site_rate_limited_total", 2)
}

// wantRateRefusal checks an answer to one request too many where one may come in a
// thousand seconds, some of which may have passed.
func wantRateRefusal(t *testing.T, what string, resp *http.Response) {
	t.Helper()
	after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if resp.StatusCode != 429 || err != nil || after > 1000 || after < 1000-int(patience/time.Second) {
		t.Errorf("%s over the rate: %s, Retry-After %q, want 429 and about 1000", what, resp.Status, resp.Header.Get("Retry-After"))
	}
}

func TestRateOfOneSite(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.limits]\nper_site_rate = 0.001\nper_site_burst = 2\n")
	s := a.join("", "")
	if resp, _ := a.do(a.request("POST", "/page.php", "return 1;")); resp.StatusCode != 200 {
		t.Errorf("a page of the burst: %s", resp.Status)
	}
	resp, _ := a.do(a.request("POST", "/page.php", "return 1;"))
	wantRateRefusal(t, "a page", resp)
	if resp, _ := a.refusal("/", nil); resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a socket over the rate: %s %v, want 429", resp.Status, resp.Header)
	}
	for range 5 {
		s.wantRun("return 1;", "1") // messages are not lost to the rate
	}
	if resp, _ := a.get("/metrics"); resp.StatusCode != 200 {
		t.Errorf("what runs no PHP: %s", resp.Status)
	}
	a.waitMetric("ephpm_site_rate_limited_total", 2)
	a.waitMetric(`ephpm_ws_handshake_rejected_total{reason="rate"}`, 1)
}

func TestWhoReadsTooSlowlyIsCut(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	options := appOptions{
		TOML:  metricsOn + "[server.timeouts]\nidle = \"500ms\"\n",
		Files: map[string]string{"big.bin": repeat(32 << 20)},
	}
	plain := startApp(t, options)
	options.TOML += tlsIn(dir)
	secure := startApp(t, options)
	for range 3 {
		w := plain.connect()
		w.send(getText("/big.bin"))
	}
	conn := tls.Client(secure.connect(), &tls.Config{InsecureSkipVerify: true})
	if _, err := io.WriteString(conn, getText("/big.bin")); err != nil {
		t.Fatal(err)
	}
	plain.waitMetric(`ephpm_http_connections_cut_total{reason="slow"}`, 3)
	err := eventually(func() error {
		_, body := visitWith(t, ca.client(http1), "https://"+secure.Addr+"/metrics")
		if !strings.Contains(body, `ephpm_http_connections_cut_total{reason="slow"} 1`) {
			return errors.New("the client over TLS is not cut")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A stream of HTTP/2 that nobody reads leaves its connection as it is: pings go to
// and fro on it.
func TestAStreamThatNobodyReadsIsReset(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	a := startApp(t, appOptions{
		TOML:  metricsOn + "[server.timeouts]\nidle = \"500ms\"\n" + tlsIn(dir),
		Files: map[string]string{"big.bin": repeat(32 << 20)},
	})
	resp, err := ca.client(http2).Get("https://" + a.Addr + "/big.bin")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	err = eventually(func() error {
		_, body := visitWith(t, ca.client(http1), "https://"+a.Addr+"/metrics")
		if !strings.Contains(body, "ephpm_http_requests_in_flight 1\n") { // the scrape
			return errors.New("the stream still runs")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("the answer came to its end")
	}
}

func TestWhoSendsTooSlowlyIsRefused(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  metricsOn + "[server.timeouts]\nidle = \"1s\"\n",
		Files: map[string]string{"hello.php": `<?php echo "hello";`},
	})
	w := a.connect()
	w.send("POST /hello.php HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() { // until the answer is there
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond): // that is how slow it is
				if _, err := w.Write([]byte("x")); err != nil {
					return
				}
			}
		}
	}()
	resp, err := http.ReadResponse(w.in, nil)
	close(stop)
	<-ended
	if err != nil || resp.StatusCode != http.StatusRequestTimeout {
		t.Errorf("%v, %v, want 408", resp, err)
	}
}
