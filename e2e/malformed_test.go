package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// statusOf sends bytes and returns the status of the answer, 0 for none at all. The
// connection must be closed then.
func statusOf(t *testing.T, a *app, text string) int {
	t.Helper()
	w := a.connect()
	_, _ = w.Write([]byte(text)) // the server may close before it has read all
	answer, err := w.rest()      // a reset is an end too
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%.60q: still open after %v", text, patience)
	}
	status := 0
	if answer != "" {
		if _, err := fmt.Sscanf(answer, "HTTP/1.1 %d", &status); err != nil {
			t.Errorf("%.60q: %q is no answer", text, answer)
		}
	}
	return status
}

func wantStatus(t *testing.T, a *app, text string, want int) {
	t.Helper()
	if got := statusOf(t, a, text); got != want {
		t.Errorf("%.60q: %d, want %d", text, got, want)
	}
}

// A header that does not come to its end in time ends its connection.
func TestHeadersThatNeverEnd(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[server.timeouts]\nheader_read = \"500ms\"\n",
		Files: map[string]string{"index.php": `<?php echo "ran";`},
	})
	wantStatus(t, a, "GET / HTTP/1.1\r\nHost: x\r\n", 0)
	err := eventually(func() error { // on a busy machine the time may be over before the server has read anything
		if got := statusOf(t, a, "GET / HT"); got != 400 {
			if got != 0 {
				t.Errorf("half a request line: %d, want 400", got)
			}
			return fmt.Errorf("half a request line: %d, want 400", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	a := startApp(t, appOptions{
		TOML: "[server.timeouts]\nheader_read = 0\n",
		Files: map[string]string{
			"index.php": `<?php file_put_contents('` + mark + `', $_SERVER['REQUEST_URI'] . "\n", FILE_APPEND);`,
			"fine.php":  `<?php echo "fine";`,
		}})
	for text, want := range map[string]int{
		"GET\r\n\r\n":                                                                          400,
		"GET /\r\n\r\n":                                                                        400,
		"GET / HTTP\r\n\r\n":                                                                   400,
		"GET / HTTP/1\r\n\r\n":                                                                 400,
		"GET / HTTP/3.7\r\nHost: x\r\n\r\n":                                                    505,
		"GET / HTTP/1.1\r\n\r\n":                                                               400, // no Host
		"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n":                                         400,
		"GET / HTTP/1.1\r\nHost: a b\r\n\r\n":                                                  400,
		"GET / HTTP/1.1\r\nHost: x/y\r\n\r\n":                                                  400,
		"G T / HTTP/1.1\r\nHost: x\r\n\r\n":                                                    400,
		"GET  / HTTP/1.1\r\nHost: x\r\n\r\n":                                                   400,
		"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n":                                                 400,
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n":                                 400, // TLS
		"GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n":                                                400,
		"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n":                                                400,
		"GET /?\x00 HTTP/1.1\r\nHost: x\r\n\r\n":                                               400,
		"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n":                                        400,
		"GET / HTTP/1.1\r\nHost: x\r\nX Y: 1\r\n\r\n":                                          400,
		"GET / HTTP/1.1\r\nHost: x\r\nX : 1\r\n\r\n":                                           400,
		"GET / HTTP/1.1\r\nHost: x\r\n: 1\r\n\r\n":                                             400,
		"GET / HTTP/1.1\r\nHost: x\r\n X: folded\r\n\r\n":                                      400,
		"GET / HTTP/1.1\r\nHost: x\r\nX: \x00\r\n\r\n":                                         400,
		"GET / HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n":                                         400,
		"GET / HTTP/1.1\r\nHost: x\r\nX: " + repeat(100_000) + "\r\n\r\n":                      431,
		"GET /?" + repeat(100_000) + " HTTP/1.1\r\nHost: x\r\n\r\n":                            431,
		"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n":                              400,
		"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: something\r\n\r\n":                       400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 2\r\n\r\nab":                         400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab":       400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n":           400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n":                        501,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n":         400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n":           400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n": 400,
		"GET /%00 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":                            400,
		"GET /% HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":                              400,

		// Request lines.
		" / HTTP/1.1\r\nHost: x\r\n\r\n":                               400,
		"GET/ HTTP/1.1\r\nHost: x\r\n\r\n":                             400,
		"GET /HTTP/1.1\r\nHost: x\r\n\r\n":                             400,
		"GET\t/\tHTTP/1.1\r\nHost: x\r\n\r\n":                          400,
		"GET / HTTP/1.1 \r\nHost: x\r\n\r\n":                           400,
		"GET / http/1.1\r\nHost: x\r\n\r\n":                            400,
		"GET / HTTP/1.1x\r\nHost: x\r\n\r\n":                           400,
		"GET / HTTP/01.1\r\nHost: x\r\n\r\n":                           400,
		"GET / HTTP/-1.1\r\nHost: x\r\n\r\n":                           400,
		"GET / HTTP/0.9\r\nHost: x\r\n\r\n":                            505,
		"GET / HTTQ/1.1\r\nHost: x\r\n\r\n":                            400,
		"G(T / HTTP/1.1\r\nHost: x\r\n\r\n":                            400,
		"GET\x00 / HTTP/1.1\r\nHost: x\r\n\r\n":                        400,
		"\xc3\xa9 / HTTP/1.1\r\nHost: x\r\n\r\n":                       400,
		"GET \\ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":      400,
		"GET x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":       400,
		"GET ?x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":      400,
		"PUT * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":       400,
		"GET http:// HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n": 400,
		"GET http://[::1/ HTTP/1.1\r\nHost: x\r\n\r\n":                 400,
		"GET http://x:y/ HTTP/1.1\r\nHost: x\r\n\r\n":                  400,
		"GET /%c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":     400,
		"\r\n\r\n\r\nGET / HT\r\n\r\n":                                 400,
		"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n":                             400,

		"GET /\rx HTTP/1.1\r\nHost: x\r\n\r\n":                                     400,
		"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n":                                    400,
		"\nGET / HTTP/1.1\r\nHost: x\r\n\r\n":                                      400,
		"\xef\xbb\xbfGET / HTTP/1.1\r\nHost: x\r\n\r\n":                            400,
		repeat(100_000) + " / HTTP/1.1\r\nHost: x\r\n\r\n":                         431,
		"GET / HTTP/1.10\r\nHost: x\r\n\r\n":                                       400,
		"GET / HTTP/2.0\r\nHost: x\r\n\r\n":                                        505,
		"GET x:80 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":                400,
		"CONNECT / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":               400,
		"CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\nConnection: close\r\n\r\n":         400,
		"CONNECT http://x/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":       400,
		"GET http://a:b@x/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":       400,
		"GET http://y@x/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":         400,
		"GET http://y\\@x/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":       400,
		"GET http:///x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":           400,
		"GET http:/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":             400,
		"GET http:x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":              400,
		"GET http://x%00y/ HTTP/1.1\r\nHost: x\r\n\r\n":                            400,
		"GET file:///etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":  400,
		"GET javascript:alert(1) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n": 400,
		"GET /?a\tb HTTP/1.1\r\nHost: x\r\n\r\n":                                   400,
		"GET /?a\x0bb HTTP/1.1\r\nHost: x\r\n\r\n":                                 400,
		"GET /?a\x7fb HTTP/1.1\r\nHost: x\r\n\r\n":                                 400,
		"GET /%2e%2e%5cx HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":         400,
		"GET /x%5c..%5cy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":         400,
		"GET /index.php%00.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":   400,
		"OPTIONS *x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":              400,

		// Header fields.
		"GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: y\r\n", 20_000) + "\r\n": 431,
		"GET / HTTP/1.1\r\nHost: x\r\n" + repeat(100_000) + ": y\r\n\r\n":             431,
		"GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\x00\r\n\r\n":                         400,
		"GET / HTTP/1.1\r\nHost: x\r\nX: a\nb\r\n\r\n":                                400,
		"GET / HTTP/1.1\r\nHost: x\rX: y\r\n\r\n":                                     400,
		"GET / HTTP/1.1\r\nHost: x\r\nX\xef\xbc\x9a y\r\n\r\n":                        400,
		"GET / HTTP/1.1\r\nHost: x\r\nExpect: a miracle\r\nConnection: close\r\n\r\n": 417,
		"GET / HTTP/1.1\r\nHost: x\r\n:authority: y\r\n\r\n":                          400,
		"GET / HTTP/1.1\r\nHost: x\r\n:\r\n\r\n":                                      400,
		"GET / HTTP/1.1\r\nHost: x\r\nX\r\n\r\n":                                      400,
		"GET / HTTP/1.1\r\nHost: x\r\nX\t: 1\r\n\r\n":                                 400,
		"GET / HTTP/1.1\r\nHost: x\r\nX\x00Y: 1\r\n\r\n":                              400,
		"GET / HTTP/1.1\r\nHost: x\r\nX(Y): 1\r\n\r\n":                                400,
		"GET / HTTP/1.1\r\nHost: x\r\nX\xc3: 1\r\n\r\n":                               400,
		"GET / HTTP/1.1\r\nHost: x\r\nX: a\x7fb\r\n\r\n":                              400,
		"GET / HTTP/1.1\r\nHost: x\r\nX: a\x0bb\r\n\r\n":                              400,
		"GET / HTTP/1.1\r\n Host: x\r\n\r\n":                                          400,

		// Hosts.
		"GET / HTTP/1.1\r\nHost: x\x00y\r\n\r\n":                                   400,
		"GET / HTTP/1.1\r\nHost: x@y\r\nConnection: close\r\n\r\n":                 400,
		"GET / HTTP/1.1\r\nHost: ../x\r\n\r\n":                                     400,
		"GET / HTTP/1.1\r\nHost: ..\r\nConnection: close\r\n\r\n":                  400,
		"GET / HTTP/1.1\r\nHost: x..y\r\nConnection: close\r\n\r\n":                400,
		"GET / HTTP/1.1\r\nHost: [::1\r\nConnection: close\r\n\r\n":                400,
		"GET / HTTP/1.1\r\nHost: x:99999999\r\nConnection: close\r\n\r\n":          400,
		"GET / HTTP/1.1\r\nHost: x:y\r\nConnection: close\r\n\r\n":                 400,
		"GET / HTTP/1.1\r\nHost: %2e%2e\r\nConnection: close\r\n\r\n":              400,
		"GET / HTTP/1.1\r\nHost: x#y\r\n\r\n":                                      400,
		"GET / HTTP/1.1\r\nHost: " + repeat(300) + "\r\nConnection: close\r\n\r\n": 400,

		"GET / HTTP/1.1\r\nHost: x\ty\r\n\r\n":                                  400,
		"GET / HTTP/1.1\r\nHost: x,y\r\nConnection: close\r\n\r\n":              400,
		"GET / HTTP/1.1\r\nHost: x\r\nHost: \r\n\r\n":                           400,
		"GET / HTTP/1.1\r\nhost: x\r\nHOST: x\r\n\r\n":                          400,
		"GET / HTTP/1.1\r\nHost: x\r\n\tfolded\r\n\r\n":                         400,
		"GET / HTTP/1.1\r\nHost: x:80:80\r\nConnection: close\r\n\r\n":          400,
		"GET / HTTP/1.1\r\nHost: :80\r\nConnection: close\r\n\r\n":              400,
		"GET / HTTP/1.1\r\nHost: x..\r\nConnection: close\r\n\r\n":              400,
		"GET / HTTP/1.1\r\nHost: .\r\nConnection: close\r\n\r\n":                400,
		"GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\nConnection: close\r\n\r\n": 400,
		"GET / HTTP/1.1\r\nHost: http://x/\r\n\r\n":                             400,
		"GET / HTTP/1.1\r\nHost: \xc3\xa4.test\r\nConnection: close\r\n\r\n":    400,

		// Bodies.
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1,1\r\n\r\na":                                                                         400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1e0\r\n\r\na":                                                                         400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \xc2\xb9\r\n\r\na":                                                                    400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775808\r\n\r\na":                                                         400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 01\r\n\r\na":                                                     400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n":                                                                  501,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \r\n\r\n":                                                                          501,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n":                                                      501,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n":                                                      501,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":                            501,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n 1\r\na\r\n0\r\n\r\n":                                               400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;x\na\r\n0\r\n\r\n":                                                400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n":                                                  400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\na\n0\n\n":                                                        400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("0", 24) + "1\r\na\r\n":                          400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1_0\r\na":                                                           400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\x001\r\na":                                                         400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+repeat(3000)+"\r\na\r\n", 30) + "0\r\n\r\n": 400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\na":                                                                          400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x1\r\n\r\na":                                                                         400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1 1\r\n\r\na":                                                                         400,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \r\n\r\na":                                                                            400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n":                                                 501,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n":                                                    501,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n":                                                      400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n":                                              400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\na\r\n0\r\n\r\n":                                               400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\r\na\r\n0\r\n\r\n":                                                 400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\na":                                             400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n":                                              400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;" + repeat(100_000) + "\r\na\r\n0\r\n\r\n":                        400,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nno colon\r\n\r\n":                                    400,
	} {
		wantStatus(t, a, text, want)
	}
	if ran, err := os.ReadFile(mark); err == nil {
		t.Errorf("PHP was started for %q", ran)
	}
	if err := wantBody(a.request("GET", "/fine.php", ""), "fine"); err != nil {
		t.Error(err)
	}
}
