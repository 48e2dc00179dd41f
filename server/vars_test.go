package server

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"crypto/tls"
)

func TestVariables(t *testing.T) {
	root := files(t, "s.php", "index.php")
	pool := &fakePool{}
	ts := httptest.NewServer(newTest(t, root, pool))
	defer ts.Close()
	c, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "POST /s.php/b%C3z/\xff?foo=a&x=%3E\x80#hash HTTP/1.1\r\nHost: [::1]:81\r\nAuthorization: Basic a2V2aW46cGFzc3dvcmQ=\r\n"+
		"Content-Type: text/plain\r\nContent-Length: 7\r\nProxy: evil\r\nX_Forwarded_For: evil\r\nX.Real-Ip: evil\r\nX-Forwarded-For: a\r\n"+
		"X-Forwarded-For: b\r\nCookie: a=1\r\nCookie: b=2\r\nSpecial-Chars: <%00>\r\nEmpty:\r\nConnection: close\r\n\r\nthe bod")
	if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
		t.Fatal(err)
	}
	real, _ := filepath.EvalSymlinks(root)
	want := map[string]string{
		"GATEWAY_INTERFACE": "CGI/1.1", "SERVER_PROTOCOL": "HTTP/1.1", "REQUEST_METHOD": "POST", "REQUEST_SCHEME": "http",
		"SERVER_NAME": "[::1]", "SERVER_PORT": "81", "HTTP_HOST": "[::1]:81", "SERVER_ADDR": "",
		"REMOTE_ADDR": "127.0.0.1", "REMOTE_HOST": "127.0.0.1", "REMOTE_IDENT": "", "AUTH_TYPE": "", "REMOTE_USER": "kevin",
		"HTTP_AUTHORIZATION": "Basic a2V2aW46cGFzc3dvcmQ=",
		"REQUEST_URI":        "/s.php/b%C3z/\xff?foo=a&x=%3E\x80#hash", "QUERY_STRING": "foo=a&x=%3E\x80#hash",
		"SCRIPT_NAME": "/s.php", "DOCUMENT_URI": "/s.php", "PATH_INFO": "/b\xc3z/\xff", "PHP_SELF": "/s.php/b\xc3z/\xff",
		"PATH_TRANSLATED": real + "/b\xc3z/\xff", "DOCUMENT_ROOT": real, "SCRIPT_FILENAME": real + "/s.php", "REDIRECT_STATUS": "200",
		"CONTENT_TYPE": "text/plain", "CONTENT_LENGTH": "7", "HTTP_CONTENT_TYPE": "text/plain", "HTTP_CONTENT_LENGTH": "7",
		"HTTP_X_FORWARDED_FOR": "a, b", "HTTP_COOKIE": "a=1; b=2", "HTTP_SPECIAL_CHARS": "<%00>", "HTTP_EMPTY": "", "HTTP_CONNECTION": "close",
	}
	for name, value := range want {
		if got, ok := pool.vars[name]; !ok || got != value {
			t.Errorf("%s = %q (present: %v), want %q", name, got, ok, value)
		}
	}
	for _, name := range []string{"HTTP_PROXY", "HTTP_X_REAL_IP", "HTTPS", "HTTP_X_FORWARDED_FOR_"} {
		if got, ok := pool.vars[name]; ok {
			t.Errorf("%s = %q, want it absent", name, got)
		}
	}
	if pool.body != "the bod" {
		t.Errorf("body %q", pool.body)
	}
}

func TestVariablesOfARewrittenRequest(t *testing.T) {
	pool := &fakePool{}
	s := newTest(t, files(t, "s.php"), pool, func(c *Config) {
		c.Server.Fallback = []string{"/s.php/pathinfo?$query_string"}
	})
	get(s, "/pathinfo/7?i=1")
	for name, want := range map[string]string{
		"PATH_INFO": "/pathinfo", "SCRIPT_NAME": "/s.php", "REQUEST_URI": "/pathinfo/7?i=1", "PHP_SELF": "/s.php/pathinfo",
		"QUERY_STRING": "i=1", "PATH_TRANSLATED": pool.vars["DOCUMENT_ROOT"] + "/pathinfo", "SERVER_PORT": "80",
		"CONTENT_LENGTH": "", "CONTENT_TYPE": "",
	} {
		if got, ok := pool.vars[name]; !ok || got != want {
			t.Errorf("%s = %q (present: %v), want %q", name, got, ok, want)
		}
	}
}

// A variable that the server sets cannot be configured.
func TestOwnVariablesAreKnown(t *testing.T) {
	pool := &fakePool{}
	s := newTest(t, files(t, "s.php"), pool)
	r := httptest.NewRequest("POST", "/", nil)
	r.RequestURI, r.TLS = "/s.php/x", &tls.ConnectionState{}
	s.ServeHTTP(httptest.NewRecorder(), r)
	if pool.vars["HTTPS"] == "" {
		t.Fatal("the request was not as it should be")
	}
	for name := range pool.vars {
		if !strings.HasPrefix(name, "HTTP_") && !slices.Contains(ownVars, name) {
			t.Errorf("%s is set but not among ownVars", name)
		}
	}
}
