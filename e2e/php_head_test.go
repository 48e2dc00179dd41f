package e2e

import (
	"net/http"
	"testing"
)

func TestHeadHasTheHeadersOfGetAndNoBody(t *testing.T) {
	t.Parallel()
	a := serveIndex(t, `header("X-Method: " . $_SERVER['REQUEST_METHOD']); echo "12345";`)
	w := a.connect()
	w.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(w.in, &http.Request{Method: "HEAD"})
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.ContentLength != 5 || resp.Header.Get("X-Method") != "HEAD" {
		t.Errorf("%s, length %d, %v; want 200 and a length of 5", resp.Status, resp.ContentLength, resp.Header)
	}
	w.send(getText("/"))
	if _, body := w.answer(); body != "12345" {
		t.Errorf("the next answer on the connection is %q", body)
	}
}
