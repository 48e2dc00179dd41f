package e2e

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// http1Files print the body, what the script knows of the request, and an answer
// of unknown length.
var http1Files = map[string]string{
	"index.php": `<?php echo file_get_contents('php://input');`,
	"vars.php":  `<?php ksort($_SERVER); foreach ($_SERVER as $n => $v) if (preg_match('/TRAIL|LENGTH|HOST|ENCODING/', $n)) echo "$n=$v "; echo json_encode(getallheaders());`,
	"flush.php": unbuffered + `echo "one"; flush(); echo "two";`,
	"a.txt":     "static",
}

// eachTransport runs a test in plain text and over TLS.
func eachTransport(t *testing.T, test func(t *testing.T, connect func() *wire)) {
	t.Parallel()
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		a := startApp(t, appOptions{Files: http1Files})
		test(t, a.connect)
	})
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		a, ca := startTLS(t, appOptions{Files: http1Files})
		test(t, func() *wire { return a.connectTLS(ca) })
	})
}

func TestHTTP10KeepsTheConnectionOnRequest(t *testing.T) {
	eachTransport(t, func(t *testing.T, connect func() *wire) {
		w := connect()
		for _, path := range []string{"/a.txt", "/index.php", "/a.txt"} {
			w.send("GET " + path + " HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
			if resp, _ := w.answer(); !strings.EqualFold(resp.Header.Get("Connection"), "keep-alive") || resp.ContentLength < 0 {
				t.Errorf("%s with keep-alive: Connection %q, length %d", path, resp.Header.Get("Connection"), resp.ContentLength)
			}
		}
		w.send("GET /flush.php HTTP/1.0\r\nConnection: keep-alive\r\n\r\n") // only the end of the connection ends it
		if text, err := w.rest(); err != nil || !strings.HasSuffix(text, "\r\n\r\nonetwo") || strings.Contains(text, "chunked") {
			t.Errorf("an answer of unknown length: %q, %v", text, err)
		}
		w = connect()
		w.send("GET /a.txt HTTP/1.0\r\n\r\n" + "GET /a.txt HTTP/1.0\r\n\r\n")
		if text, _ := w.rest(); strings.Count(text, "HTTP/1.") != 1 { // what was not read may reset it
			t.Errorf("without keep-alive: %q, want one answer", text)
		}
	})
}

func TestHTTP11KeepsTheConnectionUnlessAsked(t *testing.T) {
	eachTransport(t, func(t *testing.T, connect func() *wire) {
		w := connect()
		for i := range 40 { // pipelined
			w.send(fmt.Sprintf("POST /?a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n%02d", i))
		}
		for i := range 40 {
			if _, body := w.answer(); body != fmt.Sprintf("%02d", i) {
				t.Fatalf("answer %d is %q", i, body)
			}
		}
		w.send(getText("/flush.php") + getText("/a.txt", "Connection: close"))
		if resp, body := w.answer(); body != "onetwo" || len(resp.TransferEncoding) != 1 {
			t.Errorf("an answer of unknown length: %v %q", resp.TransferEncoding, body)
		}
		if resp, body := w.answer(); body != "static" || !resp.Close {
			t.Errorf("with Connection: close: %v %q", resp.Header, body)
		}
		if rest, err := w.rest(); rest != "" || err != nil {
			t.Errorf("then %q, %v; want the end", rest, err)
		}
	})
}

// chunkedPost is a POST of "ab" with more lines of header.
func chunkedPost(header ...string) string {
	lines := append([]string{"POST /?b HTTP/1.1", "Host: x", "Transfer-Encoding: chunked"}, header...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n2\r\nab\r\n0\r\n\r\n"
}

// Over plain TCP a chunked body is one like any other.
func TestChunkedBodyKeepsItsConnection(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: http1Files})
	w := a.connect()
	w.send(chunkedPost() + chunkedPost() + getText("/a.txt") + chunkedPost()) // pipelined
	for i, want := range []string{"ab", "ab", "static", "ab"} {
		if resp, body := w.answer(); body != want || resp.Close {
			t.Fatalf("answer %d: %v %q, close: %v; want %q", i, resp.Header, body, resp.Close, want)
		}
	}
	for range 3 { // a length in a request before it is none of its own
		w.send("POST /?a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nxy")
		if _, body := w.answer(); body != "xy" {
			t.Fatalf("with a length: %q", body)
		}
		w.send(chunkedPost())
		if resp, body := w.answer(); body != "ab" || resp.Close {
			t.Fatalf("chunked behind it: %q, close: %v", body, resp.Close)
		}
	}
}

// What follows a chunked body may be a part of it for somebody in front who goes by a
// Content-Length, so nothing is run that follows one, wherever the field is. Within TLS
// the server cannot tell that there is none.
func TestChunkedBodyWithALengthEndsItsConnection(t *testing.T) {
	wantEnd := func(t *testing.T, w *wire, how string) {
		t.Helper()
		if resp, body := w.answer(); body != "ab" || !resp.Close {
			t.Errorf("%s: %v %q, want the body and Connection: close", how, resp.Header, body)
		}
		if rest, _ := w.rest(); rest != "" { // what was not read may reset it
			t.Errorf("%s: then %q, want the end", how, rest)
		}
	}
	eachTransport(t, func(t *testing.T, connect func() *wire) {
		for _, line := range []string{"Content-Length: 2", "content-length: 12", "CONTENT-LENGTH:0", "X-A: b\r\nContent-Length:\r\n 3"} {
			w := connect()
			w.send(chunkedPost(line) + getText("/a.txt"))
			wantEnd(t, w, line)

			w = connect() // behind other requests, all at once
			w.send(getText("/a.txt") + "POST /?a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nxy" + chunkedPost(line) + getText("/a.txt"))
			w.answer()
			w.answer()
			wantEnd(t, w, line+" behind others")

			w = connect() // a part of its header comes with the request before it
			text := chunkedPost(line) + getText("/a.txt")
			cut := strings.Index(text, "\r\n\r\n")
			w.send(getText("/a.txt") + text[:cut])
			w.answer()
			w.send(text[cut:])
			wantEnd(t, w, line+" in parts")
		}
	})
	t.Run("TLS without a length", func(t *testing.T) {
		t.Parallel()
		a, ca := startTLS(t, appOptions{Files: http1Files})
		w := a.connectTLS(ca)
		w.send(chunkedPost() + getText("/a.txt"))
		wantEnd(t, w, "TLS")
	})
}

// A field may be folded, and lines may end with a line feed alone (RFC 9112 §2.2, §5.2);
// the script sees it as it would be on one line.
func TestOldLinesAreReadAsOne(t *testing.T) {
	eachTransport(t, func(t *testing.T, connect func() *wire) {
		for _, header := range []string{
			"Host: x\r\nX-Host: a\r\n b\r\n\r\n",
			"Host: x\r\nX-Host:\r\n\t  a\r\n\tb\r\n\r\n",
			"Host: x\r\nX-Host: a  \r\n   b  \r\n\r\n",
			"Host: x\nX-Host: a b\n\n",
			"Host: x\nX-Host: a b\r\n\n",
		} {
			w := connect()
			w.send("GET /vars.php HTTP/1.1\r\n" + header + getText("/a.txt"))
			if _, body := w.answer(); !strings.Contains(body, "HTTP_X_HOST=a b ") {
				t.Errorf("%q: %s", header, body)
			}
			if _, body := w.answer(); body != "static" {
				t.Errorf("the request behind %q: %q", header, body)
			}
		}
	})
}

// TRACE would show a script's caller what he may not see; nginx refuses it, too.
func TestTRACEIsRefused(t *testing.T) {
	eachTransport(t, func(t *testing.T, connect func() *wire) {
		for path, allow := range map[string]string{
			"/": "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS", "/vars.php/x": "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS", "/a.txt": "GET, HEAD, OPTIONS",
		} {
			w := connect()
			w.send("TRACE " + path + " HTTP/1.1\r\nHost: x\r\nCookie: secret\r\n\r\n" + getText("/a.txt"))
			resp, body := w.answer()
			if resp.StatusCode != 405 || resp.Header.Get("Allow") != allow || strings.Contains(body, "secret") {
				t.Errorf("TRACE %s: %s, Allow %q, %q; want 405", path, resp.Status, resp.Header.Get("Allow"), body)
			}
			if _, body := w.answer(); body != "static" {
				t.Errorf("the request behind TRACE %s: %q", path, body)
			}
		}
	})
}

// Trailers end the body of their request and are nothing to the script, whatever
// they are called.
func TestRequestTrailersAreDropped(t *testing.T) {
	eachTransport(t, func(t *testing.T, connect func() *wire) {
		for _, trailer := range []string{"X-Trail: 1", "Content-Length: 5", "Host: evil", "Transfer-Encoding: identity", "X-Trail: 1\r\nX-Trail2: 2"} {
			w := connect()
			w.send("POST /vars.php HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: X-Trail\r\n\r\n4\r\nbody\r\n0\r\n" + trailer + "\r\n\r\n")
			resp, body := w.answer()
			if resp.StatusCode == 400 { // a forbidden one
				continue
			}
			if want := `CONTENT_LENGTH=4 HTTP_HOST=x REMOTE_HOST=127.0.0.1 {"Host":"x"`; !strings.HasPrefix(body, want) || strings.Contains(body, "Trail2") || strings.Contains(body, "evil") {
				t.Errorf("%q: %s %s", trailer, resp.Status, body)
			}
		}
	})
}

// HEAD has the header of GET, and nothing behind it.
func TestHEADHasNoBody(t *testing.T) {
	eachTransport(t, func(t *testing.T, connect func() *wire) {
		w := connect()
		for path, length := range map[string]string{"/a.txt": "6", "/vars.php": "", "/flush.php": "", "/missing.txt/": ""} {
			w.send("HEAD " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" + getText("/a.txt"))
			head, got := "", ""
			for {
				line, err := w.in.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if value, ok := strings.CutPrefix(line, "Content-Length: "); ok {
					got = strings.TrimSpace(value)
				}
				if head += line; line == "\r\n" {
					break
				}
			}
			if length != "" && got != length {
				t.Errorf("HEAD %s: Content-Length %q, want %s", path, got, length)
			}
			if _, body := w.answer(); body != "static" {
				t.Fatalf("the request behind HEAD %s (%q): %q", path, head, body)
			}
		}
	})
}

func TestHTTP1FromCurl(t *testing.T) {
	t.Parallel()
	a, ca := startTLS(t, appOptions{Files: http1Files})
	file := filepath.Join(t.TempDir(), "body")
	writeFiles(t, filepath.Dir(file), map[string]string{"body": repeat(2 << 20)})
	for _, test := range []struct {
		args []string
		want string // is in what curl prints, -v included
	}{
		{[]string{"--http1.0", a.URL + "/a.txt"}, "static"},
		{[]string{"--http1.1", a.URL + "/a.txt", a.URL + "/a.txt"}, "Re-using existing connection"},
		{[]string{"--http1.1", "-I", a.URL + "/a.txt"}, "Content-Length: 6"},
		{[]string{"--http1.1", "-H", "Expect: 100-continue", "--data-binary", "@" + file, "-o", "/dev/null", a.URL}, "HTTP/1.1 100 Continue"},
		{[]string{"--http1.1", "-H", "Transfer-Encoding: chunked", "--data-binary", "@" + file, "-o", "/dev/null", "-w", "%{size_download}", a.URL}, "2097152"},
	} {
		var out bytes.Buffer
		cmd := exec.Command("curl", append([]string{"-v", "-sS", "--max-time", maxTime, "--cacert", ca.File}, test.args...)...)
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil || !strings.Contains(out.String(), test.want) {
			t.Errorf("curl %s: %v, want %q in\n%.2000s", strings.Join(test.args, " "), err, test.want, &out)
		}
	}
}
