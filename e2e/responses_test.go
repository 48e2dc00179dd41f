package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// serveIndex starts a server with one script.
func serveIndex(t *testing.T, code string) *app {
	t.Helper()
	return startApp(t, appOptions{Files: map[string]string{"index.php": "<?php " + code}})
}

func TestResponseHeadersAndStatus(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `
		http_response_code(201);
		header("Foo: bar");
		header("Foo2:bar2");
		header("Invalid");
		header("X-Number: {$_GET['i']}");
		header("X-Twice: one");
		header("X-Twice: two", false);
		header("X-Replaced: one");
		header("X-Replaced: two");
		header("X-Removed: one");
		header_remove("X-Removed");
		echo "Hi";`)
	hundred(t, func(i int) error {
		resp, body, err := fetch(a.request("GET", fmt.Sprintf("/?i=%d", i), ""))
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusCreated || body != "Hi" {
			return fmt.Errorf("%s %q, want 201 \"Hi\"", resp.Status, body)
		}
		for name, want := range map[string][]string{
			"Foo":            {"bar"},
			"Foo2":           {"bar2"},
			"Invalid":        nil,
			"X-Number":       {fmt.Sprint(i)},
			"X-Twice":        {"one", "two"},
			"X-Replaced":     {"two"},
			"X-Removed":      nil,
			"Content-Type":   {"text/html; charset=UTF-8"},
			"Content-Length": {"2"},
		} {
			if got := resp.Header.Values(name); !slices.Equal(got, want) {
				return fmt.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		return nil
	})
}

func TestScriptCannotSplitTheResponse(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `
		@header("X-Bad: one\r\nX-Injected: two");
		@header("X Bad: blank in the name");
		@header("Transfer-Encoding: chunked");
		header("X-Good: 1");
		echo "body";`)
	resp, body := a.get("/")
	if resp.Header.Get("X-Good") != "1" || body != "body" || len(resp.TransferEncoding) != 0 {
		t.Errorf("%v %q, want X-Good and a plain body", resp.Header, body)
	}
	for name := range resp.Header {
		if strings.Contains(name, "Injected") || strings.Contains(name, "Bad") {
			t.Errorf("the answer has the header %q", name)
		}
	}
}

func TestStatusLines(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `header($_GET['line']); echo "body";`)
	for line, want := range map[string]int{
		"HTTP/1.1 418 I'm a teapot":     418,
		"HTTP/1.0 404":                  404,
		"HTTP/":                         200,
		"Location: /elsewhere":          302,
		"WWW-Authenticate: Basic":       401,
		"X-Anything: else":              200,
		"HTTP/1.1 299 Never heard of":   299,
		"HTTP/1.1 599 Never heard of":   599,
		"HTTP/1.1 308 Moved for good":   308,
		"HTTP/1.1 100 Continue":         500,
		"HTTP/1.1 101 Switching":        500,
		"HTTP/1.1 199 Informational":    500,
		"HTTP/1.1 600 Over the top":     500,
		"HTTP/1.1 99999999999999999 No": 500,
	} {
		req := a.request("GET", "/", "")
		req.URL.RawQuery = "line=" + strings.NewReplacer(" ", "+", "'", "%27", ":", "%3A").Replace(line)
		if resp, body := a.do(req); resp.StatusCode != want || body != "body" {
			t.Errorf("header(%q): %s %q, want %d", line, resp.Status, body, want)
		}
	}
	a.waitLog(`level=ERROR msg="script set an impossible status.*status=101`)
}

func TestStatusesOfManyRequests(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `http_response_code(200 + (int) $_GET['i']); header("X-Number: {$_GET['i']}");`)
	hundred(t, func(i int) error {
		resp, _, err := fetch(a.request("GET", fmt.Sprintf("/?i=%d", i), ""))
		if err == nil && (resp.StatusCode != 200+i || resp.Header.Get("X-Number") != fmt.Sprint(i)) {
			err = fmt.Errorf("%s, X-Number %q", resp.Status, resp.Header.Get("X-Number"))
		}
		return err
	})
}

func TestNoContentHasNoBody(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `header("HTTP/1.1 {$_GET['s']} x"); echo "body"; ob_end_flush(); flush(); echo "more";`)
	for _, status := range []int{204, 304} {
		w := a.connect()
		w.send(getText(fmt.Sprintf("/?s=%d", status)))
		// A body would be taken for the start of the second answer.
		w.send(getText(fmt.Sprintf("/?s=%d", status), "Connection: close"))
		for range 2 {
			resp, body := w.answer()
			if resp.StatusCode != status || body != "" {
				t.Errorf("%s %q, want %d without a body", resp.Status, body, status)
			}
		}
		if rest, err := w.rest(); rest != "" || err != nil {
			t.Errorf("behind a %d came %q, %v", status, rest, err)
		}
	}
	if log := a.Log(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "level=WARN") {
		t.Errorf("a body where none may be is in the log:\n%s", log)
	}
}

func TestSetCookieReachesTheClient(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `
		setcookie("a", "one two", ["expires" => 2000000000, "path" => "/p", "secure" => true, "httponly" => true, "samesite" => "Lax"]);
		setcookie("b", $_GET['i']);
		header("Set-Cookie: c=3", false);`)
	hundred(t, func(i int) error {
		resp, _, err := fetch(a.request("GET", fmt.Sprintf("/?i=%d", i), ""))
		if err != nil {
			return err
		}
		cookies := resp.Cookies()
		if len(cookies) != 3 {
			return fmt.Errorf("Set-Cookie is %q, want three", resp.Header["Set-Cookie"])
		}
		first := cookies[0]
		if first.Value != "one%20two" || first.Path != "/p" || !first.Secure || !first.HttpOnly ||
			first.SameSite != http.SameSiteLaxMode || first.Expires.Unix() != 2000000000 {
			return fmt.Errorf("the first cookie is %q", first.Raw)
		}
		if cookies[1].Value != fmt.Sprint(i) || cookies[2].Value != "3" {
			return fmt.Errorf("the other cookies are %q and %q, want %d and 3", cookies[1].Raw, cookies[2].Raw, i)
		}
		return nil
	})
}

func TestLargeResponseIsComplete(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `for ($i = 0; $i < 200; $i++) echo str_repeat(chr(65 + $i % 26), 10000);`)
	var want strings.Builder
	for i := range 200 {
		want.WriteString(strings.Repeat(string(rune('A'+i%26)), 10000))
	}
	hundred(t, func(int) error {
		_, body, err := fetch(a.request("GET", "/", ""))
		if err == nil && body != want.String() {
			err = fmt.Errorf("%d bytes, want %d, or others", len(body), want.Len())
		}
		return err
	})
}

func TestAnnouncedLengthHolds(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `header("Content-Length: 4"); echo "1234567";`)
	w := a.connect()
	w.send(getText("/") + getText("/", "Connection: close"))
	for range 2 {
		if resp, body := w.answer(); resp.StatusCode != 200 || body != "1234" {
			t.Errorf("%s %q, want what was announced and no more", resp.Status, body)
		}
	}
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `echo $_GET['i'];`)
	w := a.connect()
	for i := range 50 {
		w.send(getText(fmt.Sprintf("/?i=%d", i)))
	}
	for i := range 50 {
		if _, body := w.answer(); body != fmt.Sprint(i) {
			t.Fatalf("answer %d is %q", i, body)
		}
	}
}

func TestHTTP10ClientIsAnswered(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `echo json_encode([$_SERVER['SERVER_PROTOCOL'], isset($_SERVER['HTTP_HOST'])]); ob_end_flush(); flush(); echo "end";`)
	w := a.connect()
	w.send("GET / HTTP/1.0\r\n\r\n")
	text, err := io.ReadAll(w)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(text))), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	if string(body) != `["HTTP\/1.0",false]end` || len(resp.TransferEncoding) > 0 {
		t.Errorf("HTTP/1.0 was answered with %q", text)
	}
}

func TestEveryRequestHasAnIDOfItsOwn(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, dump("$_SERVER['REQUEST_ID']")[len("<?php "):])
	seen := make([]string, 100)
	hundred(t, func(i int) error {
		_, body, err := fetch(a.request("GET", "/", ""))
		if err == nil {
			err = json.Unmarshal([]byte(body), &seen[i])
		}
		return err
	})
	slices.Sort(seen)
	if unique := slices.Compact(slices.Clone(seen)); !reflect.DeepEqual(seen, unique) {
		t.Errorf("of 100 request ids %d are different", len(unique))
	}
}
