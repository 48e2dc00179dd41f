package e2e

import (
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"
)

// What a client sends arrives byte by byte, also what is no text.
func TestOddBytesArriveUnchanged(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"s.php": `<?php
		foreach (['PATH_INFO', 'QUERY_STRING', 'HTTP_X_ODD', 'CONTENT_TYPE'] as $name) echo bin2hex($_SERVER[$name]), "\n";
		echo bin2hex($_SERVER['PATH_TRANSLATED']);`}})
	hundred(t, func(i int) error {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		some := func(allowed func(c byte) bool) string {
			b := make([]byte, 0, 64)
			for len(b) < 64 {
				if c := byte(r.UintN(256)); allowed(c) {
					b = append(b, c)
				}
			}
			return string(b)
		}
		path := some(func(c byte) bool { return c != 0 && c != '/' && c != '\\' && c != '.' })
		query := some(func(c byte) bool { return c > ' ' && c != 0x7f })
		value := "x" + some(func(c byte) bool { return c >= ' ' && c != 0x7f }) + "x"
		var spelled strings.Builder
		for _, c := range []byte(path) {
			if c <= ' ' || c == '%' || c == '?' || c == '#' || c == 0x7f || r.UintN(2) == 0 {
				fmt.Fprintf(&spelled, "%%%02x", c)
			} else {
				spelled.WriteByte(c)
			}
		}
		_, body := a.exchange("POST /s.php/" + spelled.String() + "?" + query + " HTTP/1.1\r\nHost: x\r\nX-Odd: " + value +
			"\r\nContent-Type: " + value + "\r\nContent-Length: 0\r\n\r\n")
		lines := strings.Split(body, "\n")
		if len(lines) != 5 {
			return fmt.Errorf("%q", body)
		}
		for n, want := range []string{"/" + path, query, value, value} {
			if lines[n] != hex.EncodeToString([]byte(want)) {
				return fmt.Errorf("line %d is %s, want %x", n, lines[n], want)
			}
		}
		if !strings.HasSuffix(lines[4], hex.EncodeToString([]byte("/"+path))) {
			return fmt.Errorf("PATH_TRANSLATED is %s, want it to end in %x", lines[4], path)
		}
		return nil
	})
}

func TestFalseLengthsAndSpecialHeaders(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"s.php": dump(`[$_SERVER['CONTENT_LENGTH'], $_SERVER['HTTP_CONTENT_LENGTH'],
		$_SERVER['HTTP_CONTENT_TYPE'], $_SERVER['HTTP_EMPTY'], $_SERVER['HTTP_SPECIAL_CHARS'], $_SERVER['QUERY_STRING'], $_SERVER['REMOTE_USER'],
		isset($_SERVER['PHP_AUTH_PW']), isset($_SERVER['HTTPS']), isset($_SERVER['SSL_PROTOCOL']), $_SERVER['GATEWAY_INTERFACE']]`)}})
	hundred(t, func(i int) error {
		_, body := a.exchange(fmt.Sprintf("POST /s.php?specialChars=%%3E\\x00%%00</>%d HTTP/1.1\r\nHost: x\r\nSpecial-Chars: <%%00>%d\r\nEmpty:\r\n"+
			"Content-Type: text/plain\r\nContent-Length: 7\r\nAuthorization: Basic dXNlcjo=\r\n\r\n1234567", i, i))
		want := fmt.Sprintf(`["7","7","text/plain","","<%%00>%d","specialChars=%%3E\\x00%%00</>%d","user",false,false,false,"CGI/1.1"]`, i, i)
		if body != want {
			return fmt.Errorf("%s, want %s", body, want)
		}
		return nil
	})
}

func TestRequestHeadersByFunction(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php
		$all = getallheaders();
		ksort($all);
		echo json_encode([$all, $all == apache_request_headers(), $all == frankenphp_request_headers()]);`}})
	hundred(t, func(i int) error {
		_, body := a.exchange(fmt.Sprintf("POST /?i=%d HTTP/1.1\r\nHost: x\r\nx-my-own: v%d\r\nCONTENT-TYPE: text/x\r\nContent-Length: 2\r\nX-Twice: a\r\nX-Twice: b\r\n"+
			"Authorization: Bearer t%d\r\nCookie: c=%d\r\n\r\nhi", i, i, i, i))
		want := fmt.Sprintf(`[{"Authorization":"Bearer t%d","Content-Length":"2","Content-Type":"text\/x","Cookie":"c=%d","Host":"x","X-My-Own":"v%d","X-Twice":"a, b"},true,true]`, i, i, i)
		if body != want {
			return fmt.Errorf("%s, want %s", body, want)
		}
		return nil
	})
}

func TestResponseHeadersByFunction(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[php]\nini_overrides = [[\"expose_php\", \"On\"]]\n",
		Files: map[string]string{"index.php": `<?php
			$i = (int) $_GET['i'];
			if ($i % 3) http_response_code($i + 200);
			header("X-Number: $i"); header("Foo3:bar3"); header("Invalid");
			echo json_encode([apache_response_headers(), apache_response_headers() == frankenphp_response_headers(), http_response_code()]);`}})
	hundred(t, func(i int) error {
		resp, body, err := fetch(a.request("GET", fmt.Sprintf("/?i=%d", i), ""))
		if err != nil {
			return err
		}
		status := 200
		if i%3 != 0 {
			status += i
		}
		if i == 4 { // 204 has no body
			if resp.StatusCode != 204 || body != "" {
				return fmt.Errorf("%s %q, want a bare 204", resp.Status, body)
			}
			return nil
		}
		php := resp.Header.Get("X-Powered-By")
		want := fmt.Sprintf(`[{"X-Powered-By":"%s","X-Number":"%d","Foo3":"bar3","Invalid":""},true,%d]`, strings.ReplaceAll(php, "/", `\/`), i, status)
		without := strings.Replace(want, `,"Invalid":""`, "", 1)
		if resp.StatusCode != status || php == "" || body != want && body != without || resp.Header.Get("Foo3") != "bar3" || resp.Header["Invalid"] != nil {
			return fmt.Errorf("%s %v %s, want %d %s", resp.Status, resp.Header, body, status, without)
		}
		return nil
	})
}

// A status that HTTP does not have is 500 and in the log, however it was set.
func TestImpossibleStatus(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{
		"line.php": `<?php header("HTTP/1.1 {$_GET['s']} Odd"); echo "body";`,
		"arg.php":  `<?php header("X-A: b", true, (int) $_GET['s']); echo "body";`,
		"func.php": `<?php http_response_code((int) $_GET['s']); echo "body";`,
	}})
	for _, status := range []string{"0", "99", "100", "101", "103", "199", "600", "999", "65736", "-200"} {
		for _, script := range []string{"line.php", "arg.php", "func.php"} {
			want := 500
			if status == "0" && script != "line.php" {
				want = 200 // it means "leave it"
			}
			if resp, body := a.get("/" + script + "?s=" + status); resp.StatusCode != want || body != "body" {
				t.Errorf("%s, status %s: %s %q, want %d", script, status, resp.Status, body, want)
			}
		}
	}
	a.waitLine(`level=ERROR msg="script set an impossible status`, `status=600`, `script=`, `request=`)
}

// An answer shorter than announced is no answer: the client must notice.
func TestAnswerShorterThanAnnounced(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{
		"index.php": `<?php header("Content-Length: 10"); echo "1234567";`,
		"next.php":  `<?php echo "fine";`,
	}})
	resp, body, err := fetch(a.request("GET", "/", ""))
	if resp == nil || resp.StatusCode != 200 || body != "1234567" || err == nil {
		t.Errorf("%v %q %v, want what there is and an error", resp, body, err)
	}
	if err := wantBody(a.request("GET", "/next.php", ""), "fine"); err != nil {
		t.Error(err)
	}
}

// What is no length is not announced.
func TestLengthThatIsNone(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php header("Content-Length: {$_GET['n']}"); if (isset($_GET['m'])) header("Content-Length: {$_GET['m']}", false); echo "1234567";`}})
	if err := wantBody(a.request("GET", "/?n=7&m=3", ""), "1234567"); err != nil {
		t.Errorf("two lengths: %v", err)
	}
	for _, length := range []string{"x", "-1", "1e3", "99999999999999999999", "7,7", "+7", "0x7"} {
		if err := wantBody(a.request("GET", "/?n="+url.QueryEscape(length), ""), "1234567"); err != nil {
			t.Errorf("Content-Length %q: %v", length, err)
		}
	}
}

// The port is there before PHP is: who comes early waits and is served.
func TestRequestsBeforePHPIsReadyAreServed(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php echo $_GET['i'];`}})
	addr := a.Addr
	a.Stop()
	early := make(chan error)
	for i := range 10 {
		go func() { early <- askEarly(addr, i) }() // ends when the server answers, or with patience
	}
	a.options.Listen = addr
	a.start()
	for range 10 {
		if err := <-early; err != nil {
			t.Error(err)
		}
	}
}

// askEarly asks as soon as somebody listens.
func askEarly(addr string, i int) error {
	var conn net.Conn
	err := eventually(func() (err error) {
		conn, err = net.DialTimeout("tcp", addr, patience)
		return err
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, getText(fmt.Sprintf("/?i=%d", i), "Connection: close")); err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if err == nil && (!strings.HasPrefix(string(answer), "HTTP/1.1 200 ") || !strings.HasSuffix(string(answer), fmt.Sprintf("\r\n\r\n%d", i))) {
		err = fmt.Errorf("%q", answer)
	}
	return err
}
