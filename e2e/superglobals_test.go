package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// dump is a script that prints an expression as JSON.
func dump(expression string) string {
	return `<?php echo json_encode(` + expression + `, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE);`
}

func TestGetIsOfThisRequest(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": `<?php echo "I am number {$_GET['i']}, not another.";`}})
	hundred(t, func(i int) error {
		return wantBody(a.request("GET", fmt.Sprintf("/?i=%d", i), ""), fmt.Sprintf("I am number %d, not another.", i))
	})
}

func TestServerVariables(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"s.php": dump("$_SERVER")}})
	root, err := filepath.EvalSymlinks(a.options.Root)
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(a.Addr)
	if err != nil {
		t.Fatal(err)
	}
	began := float64(time.Now().Add(-time.Second).Unix())
	hundred(t, func(i int) error {
		body := fmt.Sprintf("body %d", i)
		req := a.request("POST", fmt.Sprintf("/s.php/baz/bat?foo=a&bar=b&i=%d", i), body,
			"Content-Type", "text/plain", "X-Number", fmt.Sprint(i), "X-Twice", "one", "X-Twice", "two", "X-Empty", "")
		req.SetBasicAuth("kevin", "password")
		_, text, err := fetch(req)
		if err != nil {
			return err
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		for name, want := range map[string]string{
			"REQUEST_METHOD":     "POST",
			"REQUEST_URI":        fmt.Sprintf("/s.php/baz/bat?foo=a&bar=b&i=%d", i),
			"QUERY_STRING":       fmt.Sprintf("foo=a&bar=b&i=%d", i),
			"SCRIPT_NAME":        "/s.php",
			"SCRIPT_FILENAME":    root + "/s.php",
			"DOCUMENT_ROOT":      root,
			"DOCUMENT_URI":       "/s.php",
			"PATH_INFO":          "/baz/bat",
			"PATH_TRANSLATED":    root + "/baz/bat",
			"PHP_SELF":           "/s.php/baz/bat",
			"GATEWAY_INTERFACE":  "CGI/1.1",
			"SERVER_PROTOCOL":    "HTTP/1.1",
			"REQUEST_SCHEME":     "http",
			"SERVER_NAME":        "127.0.0.1",
			"SERVER_PORT":        port,
			"SERVER_ADDR":        "127.0.0.1",
			"HTTP_HOST":          a.Addr,
			"REMOTE_ADDR":        "127.0.0.1",
			"REMOTE_HOST":        "127.0.0.1",
			"REMOTE_IDENT":       "",
			"AUTH_TYPE":          "",
			"REMOTE_USER":        "kevin",
			"PHP_AUTH_USER":      "kevin",
			"PHP_AUTH_PW":        "password",
			"HTTP_AUTHORIZATION": req.Header.Get("Authorization"),
			"CONTENT_TYPE":       "text/plain",
			"CONTENT_LENGTH":     fmt.Sprint(len(body)),
			"HTTP_X_NUMBER":      fmt.Sprint(i),
			"HTTP_X_TWICE":       "one, two",
			"HTTP_X_EMPTY":       "",
		} {
			if value, there := got[name]; !there || value != want {
				return fmt.Errorf("%s is %v (there: %v), want %q", name, value, there, want)
			}
		}
		for _, name := range []string{"REMOTE_PORT", "REQUEST_ID", "SERVER_SOFTWARE"} {
			if got[name] == "" || got[name] == nil {
				return fmt.Errorf("%s is %v, want a value", name, got[name])
			}
		}
		if at, ok := got["REQUEST_TIME"].(float64); !ok || at < began {
			return fmt.Errorf("REQUEST_TIME is %v", got["REQUEST_TIME"])
		}
		if at, ok := got["REQUEST_TIME_FLOAT"].(float64); !ok || at < began {
			return fmt.Errorf("REQUEST_TIME_FLOAT is %v", got["REQUEST_TIME_FLOAT"])
		}
		if _, there := got["HTTPS"]; there {
			return fmt.Errorf("HTTPS is there without TLS")
		}
		return nil
	})
}

// ext/filter keeps the variables for itself, too.
func TestServerVariablesOfFilter(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[php]\nenv = { lower = \"case\", _X9 = \"nine\" }\n",
		Files: map[string]string{"s.php": dump(`[
			filter_input(INPUT_SERVER, 'HTTP_X_NUMBER'), filter_input(INPUT_SERVER, 'HTTP_X_NUMBER', FILTER_VALIDATE_INT),
			filter_input(INPUT_SERVER, 'QUERY_STRING'), $_SERVER['HTTP_X_NUMBER'],
			$_SERVER['lower'], $_SERVER['_X9']]`)}})
	hundred(t, func(i int) error {
		return wantBody(a.request("GET", fmt.Sprintf("/s.php?i=%d", i), "", "X-Number", fmt.Sprint(i)),
			fmt.Sprintf(`["%[1]d",%[1]d,"i=%[1]d","%[1]d","case","nine"]`, i))
	})
}

func TestRequestURIIsAsTheClientWroteIt(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{
		"index.php": dump("[$_SERVER['REQUEST_URI'], $_SERVER['QUERY_STRING'], $_SERVER['SERVER_NAME'], $_SERVER['SERVER_PORT']]")}})
	for target, want := range map[string]string{
		"/a%20b//c/./%c3%a9?x=%3C+%2f&&=":  `["/a%20b//c/./%c3%a9?x=%3C+%2f&&=","x=%3C+%2f&&=","x","80"]`,
		"/s?foo=a#hash":                    `["/s?foo=a#hash","foo=a#hash","x","80"]`,
		"/?":                               `["/?","","x","80"]`,
		"/??":                              `["/??","?","x","80"]`,
		"http://other.example/absolute?i=": `["/absolute?i=","i=","other.example","80"]`,
	} {
		if resp, body := a.getExactly(target); resp.StatusCode != 200 || body != want {
			t.Errorf("GET %s: %s %s, want %s", target, resp.Status, body, want)
		}
	}
}

func TestGetAndPostAreApart(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": dump("[$_GET, $_POST]")}})
	hundred(t, func(i int) error {
		return wantBody(a.request("POST", fmt.Sprintf("/?foo=bar&iG=%d&a[]=1&a[k]=2", i), fmt.Sprintf("baz=bat&i=%d&b%%5B%%5D=x+y", i),
			"Content-Type", "application/x-www-form-urlencoded"),
			fmt.Sprintf(`[{"foo":"bar","iG":"%d","a":{"0":"1","k":"2"}},{"baz":"bat","i":"%d","b":["x y"]}]`, i, i))
	})
}

func TestRequestIsOfThisRequest(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": dump("$_REQUEST")}})
	hundred(t, func(i int) error {
		return wantBody(a.request("POST", fmt.Sprintf("/?g%d=1", i), fmt.Sprintf("p%d=2", i), "Content-Type", "application/x-www-form-urlencoded"),
			fmt.Sprintf(`{"g%d":"1","p%d":"2"}`, i, i))
	})
}

func TestCookiesArrive(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": dump("$_COOKIE")}})
	hundred(t, func(i int) error {
		return wantBody(a.request("GET", "/", "", "Cookie", fmt.Sprintf("a=%d; b=two%%20words", i)),
			fmt.Sprintf(`{"a":"%d","b":"two words"}`, i))
	})
}

func TestOddCookies(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": dump("$_COOKIE")}})
	want := `{"foo_":"bar","_dot_":"val  ","PHPSESSID":"1234","twice":"first"}`
	hundred(t, func(int) error {
		w, err := a.tryConnect()
		if err != nil {
			return err
		}
		if _, err := w.Write([]byte(getText("/", "Cookie: foo =bar; ===;;==;  .dot.=val  ; ; PHPSESSID=1234", "Cookie: twice=first; twice=second", "Cookie: twice=third"))); err != nil {
			return err
		}
		resp, err := http.ReadResponse(w.in, nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body := make([]byte, len(want)+1)
		n, _ := resp.Body.Read(body) // a short answer comes in one piece
		if got := string(body[:n]); got != want {
			return fmt.Errorf("$_COOKIE is %s, want %s", got, want)
		}
		return nil
	})
}

func TestHeadersThatPHPMustNotSee(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{
		"index.php": dump("array_intersect_key($_SERVER, array_flip(['HTTP_X_FORWARDED_FOR', 'HTTP_PROXY', 'HTTP_X_GOOD']))")}})
	hundred(t, func(i int) error {
		req := a.request("GET", "/", "", "X-Good", fmt.Sprint(i))
		req.Header["X_Forwarded_For"] = []string{"evil"}
		req.Header["X.Forwarded.For"] = []string{"evil"}
		req.Header["Proxy"] = []string{"evil"}
		req.Header["pRoXY"] = []string{"evil"}
		return wantBody(req, fmt.Sprintf(`{"HTTP_X_GOOD":"%d"}`, i))
	})
}

func TestInputIsByteIdentical(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{
		"index.php": `<?php readfile('php://input'); if ($_POST) echo 'a form?'; if (file_get_contents('php://input') === '') echo 'only once?';`}})
	var every strings.Builder
	for c := range 256 {
		every.WriteByte(byte(c))
	}
	hundred(t, func(i int) error {
		body := fmt.Sprint(i) + every.String()
		return wantBody(a.request("POST", "/", body, "Content-Type", "application/octet-stream"), body)
	})
}

func TestJSONAndOtherMethodsArriveAsInput(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{
		"index.php": `<?php echo $_SERVER['REQUEST_METHOD'], ' ', json_decode(file_get_contents('php://input'))->i;`}})
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "GET", "PROPFIND"} {
		if err := wantBody(a.request(method, "/", `{"i":7}`, "Content-Type", "application/json"), method+" 7"); err != nil {
			t.Error(err)
		}
	}
}

func TestEnvironmentOfTheServerIsNotTheRequests(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		Env:   []string{"E2E_SECRET=in the environment", "HTTP_X_FORGED=1"},
		Files: map[string]string{"index.php": dump("[isset($_SERVER['E2E_SECRET']), isset($_SERVER['HTTP_X_FORGED']), getenv('E2E_SECRET')]")}})
	if _, body := a.get("/"); body != `[false,false,"in the environment"]` {
		t.Errorf("in $_SERVER, in $_SERVER, by getenv: %s", body)
	}
}
