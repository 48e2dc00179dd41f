package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

func TestScriptsSeeHTTP3AsAnyHTTP(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{Files: map[string]string{"index.php": strings.Replace(tlsVars, "'HTTPS'", "'HTTPS', 'HTTP_COOKIE', 'REMOTE_ADDR', 'SERVER_ADDR', 'HTTP_EARLY_DATA'", 1),
		"head.php": `<?php echo "seven..";`,
		"body.php": `<?php echo $_SERVER['REQUEST_METHOD'], ' ', $_POST['a'] ?? '-', ' ', $_SERVER['CONTENT_LENGTH'];`}})
	port := fmt.Sprint(a.Addr.Port)
	req := a.request("GET", "/x?y=1", "", "Cookie", "a=1", "Cookie", "b=2")
	resp, body := a.do(req)
	want := strings.Join([]string{"HTTPS=on", "HTTP_COOKIE=a=1; b=2", "REMOTE_ADDR=127.0.0.1", "SERVER_ADDR=127.0.0.1", "HTTP_EARLY_DATA=-",
		"REQUEST_SCHEME=https", "SERVER_PORT=" + port, "SERVER_PROTOCOL=HTTP/3.0",
		"HTTP_HOST=" + a.Addr.String(), "SERVER_NAME=127.0.0.1", "REQUEST_URI=/x?y=1",
		"SSL_PROTOCOL=TLSv1.3", "SSL_CIPHER=" + tls.CipherSuiteName(resp.TLS.CipherSuite), ""}, "\n")
	if resp.Proto != "HTTP/3.0" || body != want {
		t.Errorf("over %s:\n%swant\n%s", resp.Proto, body, want)
	}
	if got := resp.Header.Get("Alt-Svc"); got != "" {
		t.Errorf("an answer over HTTP/3 tells of it: %q", got)
	}
	if _, body := a.do(a.request("POST", "/body.php", "a=b", "Content-Type", "application/x-www-form-urlencoded")); body != "POST b 3" {
		t.Errorf("a form came as %q", body)
	}
	if resp, body := a.do(a.request("HEAD", "/head.php", "")); body != "" || resp.ContentLength != 7 {
		t.Errorf("HEAD: Content-Length %d and body %q, want 7 and none", resp.ContentLength, body)
	}
	if _, body := a.get("/body.php"); body != "GET - " {
		t.Errorf("a GET has a body: %q", body)
	}
	hundred(t, func(i int) error {
		resp, body, err := a.fetch(a.request("POST", "/body.php", fmt.Sprintf("a=%d", i), "Content-Type", "application/x-www-form-urlencoded"))
		if want := fmt.Sprintf("POST %d %d", i, len(fmt.Sprintf("a=%d", i))); err == nil && body != want {
			err = fmt.Errorf("%s %q, want %q", resp.Status, body, want)
		}
		return err
	})
}

func TestAltSvcIsOnEveryAnswerOverTLS(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"index.php": `<?php http_response_code((int) ($_GET['status'] ?? 200)); echo "x";`, "file.txt": "x",
		"own.php": `<?php header('Alt-Svc: clear');`, "fatal.php": `<?php missing();`, "websocket.php": `<?php`,
	}
	a := startHTTP3(t, appOptions{Files: files})
	want := fmt.Sprintf(`h3=":%d"; ma=86400`, a.Addr.Port)
	c := a.ca.client(http1)
	for path, status := range map[string]int{
		"/": 200, "/?status=404": 404, "/?status=503": 503, "/fatal.php": 500, "/file.txt": 200, "/.hidden": 403, "/a%2fb": 400, "/_ephpm/health": 200,
	} {
		resp, _ := visitWith(t, c, a.app.tlsURL()+path)
		if got := resp.Header["Alt-Svc"]; resp.StatusCode != status || len(got) != 1 || got[0] != want {
			t.Errorf("%s: %s with Alt-Svc %q, want %d with %q", path, resp.Status, got, status, want)
		}
	}
	if resp, _ := visitWith(t, a.ca.client(http2), a.app.tlsURL()); resp.Header.Get("Alt-Svc") != want {
		t.Errorf("over HTTP/2 Alt-Svc is %q, want %q", resp.Header.Get("Alt-Svc"), want)
	}
	if resp, _ := visitWith(t, c, a.app.tlsURL()+"/own.php"); resp.Header.Get("Alt-Svc") != "clear" {
		t.Errorf("a script's own Alt-Svc became %q", resp.Header["Alt-Svc"])
	}
	req, err := http.NewRequest("GET", a.app.tlsURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 101 || resp.Header.Get("Alt-Svc") != want {
		t.Errorf("an upgrade: %s with Alt-Svc %q, want 101 with %q", resp.Status, resp.Header.Get("Alt-Svc"), want)
	}
}

func TestAltSvcSaysWhatIsConfigured(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		"alt_svc_port = 443\nalt_svc_max_age = \"1m\"\n": `h3=":443"; ma=60`,
		"alt_svc_max_age = 0\n":                          "",
	} {
		a := startHTTP3(t, appOptions{TOML: "[server.http3]\n" + config})
		if resp, _ := visitWith(t, a.ca.client(http1), a.app.tlsURL()); resp.Header.Get("Alt-Svc") != want {
			t.Errorf("%q: Alt-Svc is %q, want %q", config, resp.Header.Get("Alt-Svc"), want)
		}
	}
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	off := startApp(t, appOptions{TOML: tlsIn(dir) + "[server.http3]\nenabled = false\n"})
	if resp, _ := visitWith(t, ca.client(http1), off.tlsURL()); resp.Header.Get("Alt-Svc") != "" || strings.Contains(off.Log(), "HTTP/3") {
		t.Errorf("without HTTP/3, Alt-Svc is %q", resp.Header.Get("Alt-Svc"))
	}
}

func TestConnectionHeadersDoNotReachHTTP3(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{
		TOML: metricsOn,
		Files: map[string]string{"index.php": `<?php
			foreach (['Connection: keep-alive', 'Keep-Alive: timeout=5', 'Proxy-Connection: close', 'Transfer-Encoding: gzip', 'Upgrade: h2c', 'X-Kept: 1'] as $h) header($h);
			echo "x";`},
	})
	resp, body := a.get("/")
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"} {
		if resp.Header.Get(name) != "" {
			t.Errorf("%s: %q came through", name, resp.Header.Get(name))
		}
	}
	if body != "x" || resp.Header.Get("X-Kept") != "1" {
		t.Errorf("got %q with X-Kept %q", body, resp.Header.Get("X-Kept"))
	}
	a.waitMetric("ephpm_http3_stripped_headers_total", 4) // Transfer-Encoding gets no further than PHP over any HTTP
	// The request that asks is counted when it has been answered.
	a.waitMetric("ephpm_http3_connections_total", 1)
	a.waitMetric("ephpm_http3_connections_active", 1)
	a.waitMetric(`ephpm_http3_connection_errors_total{stage="handshake"}`, 0)
	if _, err := quic.DialAddr(context.Background(), a.Addr.String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h4"}}, nil); err == nil {
		t.Error("a protocol that nobody speaks was agreed on")
	}
	a.waitMetric(`ephpm_http3_connection_errors_total{stage="handshake"}`, 1)
	// A client that breaks the rules: the first frame of a request is no DATA.
	c := a.conn()
	s, err := c.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte{0, 1, 'x'}); err != nil {
		t.Fatal(err)
	}
	a.waitMetric(`ephpm_http3_connection_errors_total{stage="session"}`, 1)
	a.waitMetric("ephpm_http3_connections_active", 1)
}

func TestFlushStreamsOverHTTP3(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{Files: map[string]string{"index.php": unbuffered + `echo "one"; flush(); file_get_contents($_GET['gate']); echo "two";`}})
	g := newGate(t)
	resp, err := a.client.Do(a.request("GET", "/?gate="+g.path, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, 3)
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "one" {
		t.Fatalf("first part %q, %v", first, err)
	}
	g.wait()
	g.open()
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "two" {
		t.Errorf("second part %q, %v", rest, err)
	}
}

func TestEarlyHintsOverHTTP3(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{Files: map[string]string{"index.php": `<?php
		header("Link: </style.css>; rel=preload"); header("Connection: close"); headers_send(103); header_remove("Link"); echo "body";`}})
	var hints []string
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(code, " ", h.Get("Link"), h.Get("Connection")))
		return nil
	}})
	if resp, body := a.do(a.request("GET", "/", "").WithContext(ctx)); body != "body" || resp.Header.Get("Link") != "" {
		t.Errorf("got %q with Link %q", body, resp.Header.Get("Link"))
	}
	if len(hints) != 1 || hints[0] != "103 </style.css>; rel=preload" {
		t.Errorf("hints %q", hints)
	}
}

func TestAnswerIsFinishedEarlyOverHTTP3(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{Files: map[string]string{"index.php": `<?php echo "first"; fastcgi_finish_request(); file_get_contents($_GET['gate']); error_log("went on");`}})
	g := newGate(t)
	if _, body := a.get("/?gate=" + g.path); body != "first" {
		t.Errorf("got %q", body)
	}
	g.wait()
	g.open()
	a.waitLine(`text="went on"`)
}

func TestScriptEndsWhenItsHTTP3ClientHasGone(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{
		TOML:  "[php]\nworkers = 1\n",
		Files: map[string]string{"index.php": goneScript, "next.php": `<?php echo connection_status(), (int) ignore_user_abort();`},
	})
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	resp, err := a.client.Do(a.request("GET", "/?ignore=0&dir="+dir, "").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel() // resets the stream; the connection goes on
	waitFile(t, filepath.Join(dir, "end"), "aborted 1, status 1")
	if err := a.wantBody("/next.php", "00"); err != nil {
		t.Errorf("the next request: %v", err)
	}
}

// What has begun and cannot be completed is reset, so that nobody takes it for whole.
func TestBrokenAnswerIsResetOverHTTP3(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeFiles(t, root, map[string]string{
		"begun.php": unbuffered + `echo "begun"; flush(); sleep(600);`,
		"late.php":  `<?php sleep(600);`,
		"next.php":  `<?php echo "next";`,
	})
	a := startHTTP3(t, appOptions{Root: root, TOML: hangSite(root, "300ms") + "[server.timeouts]\nrequest_grace = 0\n"})
	ask := func(path string) (*http.Response, string, error) {
		req := a.request("GET", path, "")
		req.Host = "hang.test"
		return a.fetch(req)
	}
	resp, body, err := ask("/begun.php")
	for range 100 { // on a busy machine the time may be over before the answer has begun
		if resp == nil || resp.StatusCode != 504 {
			break
		}
		resp, body, err = ask("/begun.php")
	}
	var reset *http3.Error
	if !errors.As(err, &reset) || body != "begun" {
		t.Errorf("got %q, %v; want the begin and a reset", body, err)
	}
	if resp, _, err := ask("/late.php"); err != nil || resp.StatusCode != 504 {
		t.Errorf("a script that never began to answer: %v, %v; want 504", resp, err)
	}
	if err := a.wantBody("/next.php", "next"); err != nil {
		t.Errorf("the next request of the connection: %v", err)
	}
}
