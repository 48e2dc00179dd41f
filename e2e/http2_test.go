package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// startTLS starts a server with a certificate, which speaks TLS at its address.
func startTLS(t *testing.T, o appOptions) (*app, *authority) {
	t.Helper()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	o.TOML = tlsIn(dir) + o.TOML
	a := startApp(t, o)
	a.URL = "https://" + a.Addr
	return a, ca
}

// send sends a request by a client and returns the answer and its body.
func send(c *http.Client, req *http.Request) (*http.Response, string, error) {
	resp, err := c.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// Whatever a script can see is the same, but for what is of the connection or of
// the moment.
func TestHTTP2LooksLikeHTTP1ToScripts(t *testing.T) {
	t.Parallel()
	files := map[string]string{"index.php": dump("[$_SERVER, $_GET, $_POST, $_COOKIE, getallheaders(), file_get_contents('php://input')]")}
	secure, ca := startTLS(t, appOptions{Files: files})
	plain := startApp(t, appOptions{Files: files, TOML: "[server]\nh2c = true\n"})
	for _, test := range []struct {
		app      *app
		one, two *http.Client
	}{
		{secure, ca.client(http1), ca.client(http2)},
		{plain, ca.client(http1), ca.client(h2c)},
	} {
		for _, form := range []string{"", "a=1&b[]=2&b[]=3"} {
			one, two := visible(t, test.app, test.one, form), visible(t, test.app, test.two, form)
			if one["SERVER_PROTOCOL"] != "HTTP/1.1" || two["SERVER_PROTOCOL"] != "HTTP/2.0" {
				t.Errorf("SERVER_PROTOCOL is %v and %v", one["SERVER_PROTOCOL"], two["SERVER_PROTOCOL"])
			}
			for _, name := range slices.Sorted(maps.Keys(one)) {
				switch name {
				case "SERVER_PROTOCOL", "REMOTE_PORT", "REQUEST_ID", "REQUEST_TIME", "REQUEST_TIME_FLOAT":
				default:
					if one[name] != two[name] {
						t.Errorf("%s, form %q: %s is %v over HTTP/1.1 and %v over HTTP/2", test.app.URL, form, name, one[name], two[name])
					}
				}
			}
			if len(one) != len(two) {
				t.Errorf("%d variables over HTTP/1.1, %d over HTTP/2", len(one), len(two))
			}
		}
	}
}

// visible returns what a script sees of a request, by name.
func visible(t *testing.T, a *app, c *http.Client, form string) map[string]any {
	t.Helper()
	method := "GET"
	header := []string{"Cookie", "c=1; d=2", "X-Twice", "one", "X-Twice", "two", "X-Empty", "", "Accept-Encoding", "identity", "User-Agent", "test",
		"Authorization", "Basic a2V2aW46cA==", "Proxy", "evil", "X_Under", "evil"}
	if form != "" {
		method, header = "POST", append(header, "Content-Type", "application/x-www-form-urlencoded")
	}
	_, text, err := send(c, a.request(method, "/index.php/info%20x?q=%2F&r[]=1", form, header...))
	if err != nil {
		t.Fatal(err)
	}
	var all []any
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	seen := all[0].(map[string]any)
	for i, name := range []string{"", "get", "post", "cookie", "headers", "input"} {
		if i > 0 {
			seen[name] = fmt.Sprint(all[i])
		}
	}
	return seen
}

func TestHTTP2Fields(t *testing.T) {
	t.Parallel()
	a, ca := startTLS(t, appOptions{Files: map[string]string{"index.php": `<?php
		foreach (['HTTP_HOST', 'SERVER_NAME', 'SERVER_PORT', 'HTTP_COOKIE', 'HTTP_X', 'HTTP_PROXY', 'HTTP_A_B', 'REQUEST_URI'] as $name)
			echo $name, '=', $_SERVER[$name] ?? '-', ' ';
		echo json_encode($_COOKIE);`}})
	w := a.frames(ca)
	for _, test := range []struct {
		fields []string
		want   string // part of the body, or the status of a refusal
	}{
		{[]string{":authority", "a.test:444"}, "HTTP_HOST=a.test:444 SERVER_NAME=a.test SERVER_PORT=444 "},
		{[]string{":authority", "a.test"}, "HTTP_HOST=a.test SERVER_NAME=a.test SERVER_PORT=443 "},
		{[]string{"host", "b.test"}, "HTTP_HOST=b.test SERVER_NAME=b.test "}, // no :authority
		{[]string{":authority", "a.test", "host", "a.test"}, "HTTP_HOST=a.test "},
		{[]string{":authority", "a.test", "host", "b.test"}, "400"},
		{[]string{":authority", "a b"}, "400"},
		{[]string{":authority", "a.test", "cookie", "a=1", "cookie", "b=2", "cookie", "c=3"}, `HTTP_COOKIE=a=1; b=2; c=3 HTTP_X=- HTTP_PROXY=- HTTP_A_B=- REQUEST_URI=/i?a=%2f {"a":"1","b":"2","c":"3"}`},
		{[]string{":authority", "a.test", "x", "1", "x", "2"}, "HTTP_X=1, 2 "},
		{[]string{":authority", "a.test", "proxy", "evil", "a_b", "evil"}, "HTTP_PROXY=- HTTP_A_B=- "},
	} {
		answer := w.answer(w.ask("/i?a=%2f", test.fields...))
		if !answer.ended || answer.status != test.want && !strings.Contains(answer.body, test.want) {
			t.Errorf("%q: %v, want %s", test.fields, answer, test.want)
		}
	}
	for path, want := range map[string]string{"/%2e%2e/": "400", "/a%2fb": "400", "*": "400", "/%zz": "reset", "x": "reset"} { // the latter by net/http
		answer := w.answer(w.ask(path, ":authority", "a.test"))
		if answer.status != want && (want != "reset" || answer.reset == nil) {
			t.Errorf("path %q: %v, want %s", path, answer, want)
		}
	}
}

func TestHTTP2StreamsWhatIsFlushed(t *testing.T) {
	t.Parallel()
	a, ca := startTLS(t, appOptions{
		TOML:  "[php]\nworkers = 100\n",
		Files: map[string]string{"index.php": unbuffered + `echo "He"; flush(); file_get_contents($_GET['gate']); echo "llo {$_GET['i']}";`},
	})
	client := ca.client(http2) // one connection for all of them
	gates := make([]*gate, 100)
	for i := range gates {
		gates[i] = newGate(t)
	}
	hundred(t, func(i int) error {
		resp, err := client.Get(fmt.Sprintf("%s/?i=%d&gate=%s", a.URL, i, gates[i].path))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		first := make([]byte, 2)
		if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "He" {
			return fmt.Errorf("first part %q, %v", first, err)
		}
		if err := gates[i].tryWait(); err != nil {
			return err
		}
		gates[i].open()
		if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != fmt.Sprintf("llo %d", i) {
			return fmt.Errorf("second part %q, %v", rest, err)
		}
		return nil
	})
}

func TestHTTP2EarlyHintsAndEarlyEnd(t *testing.T) {
	t.Parallel()
	a, ca := startTLS(t, appOptions{Files: map[string]string{
		"hints.php": `<?php header("Link: </a.css>; rel=preload"); headers_send(103); file_get_contents($_GET['gate']); header_remove("Link"); echo "done";`,
		"end.php":   `<?php echo "all"; fastcgi_finish_request(); file_get_contents($_GET['gate']); error_log("went on");`,
	}})
	client, g := ca.client(http2), newGate(t)
	hints := make(chan string, 1)
	trace := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			hints <- fmt.Sprint(code, " ", h.Get("Link"))
			return nil
		}})
	ended := make(chan error, 1)
	go func() { // ends with the request, which has a limit
		resp, body, err := send(client, a.request("GET", "/hints.php?gate="+g.path, "").WithContext(trace))
		if err == nil && (resp.StatusCode != 200 || body != "done" || resp.Header.Get("Link") != "") {
			err = fmt.Errorf("%s %q %v", resp.Status, body, resp.Header)
		}
		ended <- err
	}()
	g.wait()
	if got := <-hints; got != "103 </a.css>; rel=preload" {
		t.Errorf("while the script runs the client has %q", got)
	}
	g.open()
	if err := <-ended; err != nil {
		t.Error(err)
	}

	last := newGate(t)
	if resp, body, err := send(client, a.request("GET", "/end.php?gate="+last.path, "")); err != nil || body != "all" {
		t.Errorf("%v %q, %v; want the whole answer while the script runs", resp, body, err)
	}
	last.wait()
	last.open()
	a.waitLine(`text="went on"`)
}

// A reset is to a script what a closed connection is over HTTP/1.1, and nothing to
// the other streams.
func TestHTTP2ResetEndsTheScript(t *testing.T) {
	t.Parallel()
	a, ca := startTLS(t, appOptions{Files: map[string]string{
		"index.php": goneScript,
		"hold.php":  `<?php file_get_contents($_GET['gate']); echo "held";`,
	}})
	client, g := ca.client(http2), newGate(t)
	held := make(chan error, 1)
	go func() { // ends with the request, which has a limit
		_, body, err := send(client, a.request("GET", "/hold.php?gate="+g.path, ""))
		if err == nil && body != "held" {
			err = fmt.Errorf("%q", body)
		}
		held <- err
	}()
	g.wait()
	for ignore := range 2 {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		resp, err := client.Do(a.request("GET", fmt.Sprintf("/?ignore=%d&dir=%s", ignore, dir), "").WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		cancel() // sends RST_STREAM
		_ = resp.Body.Close()
		if ignore == 1 {
			waitFile(t, filepath.Join(dir, "on"), "went on")
		}
		waitFile(t, filepath.Join(dir, "end"), fmt.Sprintf("aborted 1, status %d", 1))
	}
	g.open()
	if err := <-held; err != nil {
		t.Errorf("another stream of the connection: %v", err)
	}
}

// An answer that a crash cuts short is not taken for a whole one.
func TestHTTP2CutsWhatIsNotWhole(t *testing.T) {
	t.Parallel()
	a, ca := startTLS(t, appOptions{Files: map[string]string{
		"crash.php": unbuffered + `echo "half"; flush(); posix_kill(getmypid(), SIGKILL);`,
		"fine.php":  `<?php echo "fine";`,
	}})
	w := a.frames(ca)
	if answer := w.answer(w.ask("/crash.php", ":authority", "x")); answer.reset == nil || answer.body != "half" {
		t.Errorf("the answer of a killed script: %v, want it reset", answer)
	}
	if answer := w.answer(w.ask("/fine.php", ":authority", "x")); answer.body != "fine" {
		t.Errorf("the next stream: %v", answer)
	}
}

func TestHTTP2Bodies(t *testing.T) {
	t.Parallel()
	a, ca := startTLS(t, appOptions{
		TOML: "[server.request]\nmax_body_size = \"8MB\"\n",
		Files: map[string]string{
			"index.php": `<?php header("X-Length: " . ($_SERVER['CONTENT_LENGTH'] ?? '-')); echo file_get_contents('php://input');`,
			"204.php":   `<?php http_response_code(204);`,
		}})
	client := ca.client(http2)
	large := repeat(3 << 20)
	for name, body := range map[string]io.Reader{"of a known length": strings.NewReader(large), "of unknown length": io.MultiReader(strings.NewReader(large))} {
		req, err := http.NewRequest("POST", a.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		resp, got, err := send(client, req)
		if err != nil || got != large || resp.Header.Get("X-Length") != fmt.Sprint(len(large)) {
			t.Errorf("a body %s: %d bytes came back, %v; CONTENT_LENGTH was %s", name, len(got), err, resp.Header.Get("X-Length"))
		}
	}
	resp, _, err := send(client, a.request("POST", "/", repeat(9<<20)))
	if err != nil || resp.StatusCode != 413 {
		t.Errorf("a body over the limit: %v, %v; want 413", resp, err)
	}
	if resp, _, err := send(client, a.request("HEAD", "/", "")); err != nil || resp.StatusCode != 200 {
		t.Errorf("HEAD: %v %v", resp, err)
	}
	if resp, body, err := send(client, a.request("GET", "/204.php", "")); err != nil || resp.StatusCode != 204 || body != "" {
		t.Errorf("204: %v %q %v", resp, body, err)
	}
}

func TestHTTP2FromForeignClients(t *testing.T) {
	t.Parallel()
	a, ca := startTLS(t, appOptions{Files: map[string]string{"index.php": `<?php echo $_SERVER['SERVER_PROTOCOL'], " ", strlen(file_get_contents('php://input'));`}})
	plain := startApp(t, appOptions{TOML: "[server]\nh2c = true\n", Files: map[string]string{"index.php": `<?php echo $_SERVER['SERVER_PROTOCOL'], " ", strlen(file_get_contents('php://input'));`}})
	file := filepath.Join(t.TempDir(), "body")
	writeFiles(t, filepath.Dir(file), map[string]string{"body": repeat(100000)})
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"curl", "-sS", "--http2", "--cacert", ca.File, a.URL}, "HTTP/2.0 0"},
		{[]string{"curl", "-sS", "--http2", "--cacert", ca.File, "--data-binary", "@" + file, a.URL}, "HTTP/2.0 100000"},
		{[]string{"curl", "-sS", "--http1.1", "--cacert", ca.File, "--data-binary", "@" + file, a.URL}, "HTTP/1.1 100000"},
		{[]string{"curl", "-sS", "--tls-max", "1.2", "--cacert", ca.File, a.URL}, "HTTP/2.0 0"},
		{[]string{"curl", "-sS", "--http2-prior-knowledge", "--data-binary", "@" + file, plain.URL}, "HTTP/2.0 100000"},
		{[]string{"curl", "-sS", "--http1.1", plain.URL}, "HTTP/1.1 0"},
		{[]string{"nghttp", a.URL + "/"}, "HTTP/2.0 0"},
		{[]string{"nghttp", "-d", file, a.URL + "/"}, "HTTP/2.0 100000"},
		{[]string{"nghttp", plain.URL + "/"}, "HTTP/2.0 0"},
	} {
		var stderr bytes.Buffer
		cmd := exec.Command(test.args[0], test.args[1:]...)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil || string(out) != test.want {
			t.Errorf("%s: %q, %v, want %q\n%s", strings.Join(test.args, " "), out, err, test.want, &stderr)
		}
	}
}

// Without h2c the preface of HTTP/2 is a request of a method that nobody knows.
func TestH2CIsOffByDefault(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php echo "ran";`}})
	w := a.connect()
	w.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	if answer, _ := w.rest(); strings.Contains(answer, "ran") || !strings.HasPrefix(answer, "HTTP/1.1 ") {
		t.Errorf("the preface of HTTP/2 was answered with %q", answer)
	}
}
