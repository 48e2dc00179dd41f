package e2e

import (
	"net/http"
	"testing"
)

// What a page of another origin may read is what it could do with a socket.
func TestOriginsOfEventStreams(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn+"allowed_origins = [\"same-origin\", \"https://app.example\"]\n")
	const listed, other = "https://app.example", "https://evil.example"
	for _, header := range [][]string{{"Origin", other}, {"Sec-Fetch-Site", "cross-site"}} {
		if s := tryListen(t, http.DefaultClient, p.URL, "/", header...); s.resp.StatusCode != http.StatusForbidden {
			t.Errorf("with %v: %s, want 403", header, s.resp.Status)
		}
	}
	allows := func(resp *http.Response, origin string) {
		t.Helper()
		want := map[string]string{listed: "true"}[origin]
		h := resp.Header
		if h.Get("Access-Control-Allow-Credentials") != want || want != "" && h.Get("Access-Control-Allow-Origin") != origin {
			t.Errorf("%s from %q: the answer has %v", resp.Request.Method, origin, h)
		}
	}
	own := p.listen("", "Sec-Fetch-Site", "same-origin")
	allows(own.resp, "")
	s := p.listen("", "Origin", listed)
	allows(s.resp, listed)
	resp, _ := s.post("return $_SERVER['WS_SAME_ORIGIN'];", "Origin", listed)
	allows(resp, listed)
	s.want(`"0"`)
	if resp, _ := s.post("return 1;", "Origin", other); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a message from another origin: %s, want 403", resp.Status)
	}
	polled := p.poll("", "Origin", listed)
	resp, _ = p.do(p.request("GET", "/?transport=poll&ws_connection_key="+polled.key+"&last_event_id=nonsense", "", "Origin", listed))
	allows(resp, listed)

	preflight := func(origin string) *http.Response {
		resp, _ := p.do(p.request("OPTIONS", "/", "", "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,ws-connection-key"))
		return resp
	}
	if resp := preflight(listed); resp.StatusCode != 204 || resp.Header.Get("Access-Control-Allow-Headers") == "" {
		t.Errorf("a preflight: %s %v", resp.Status, resp.Header)
	}
	if resp := preflight(other); resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a preflight of another origin: %s %v", resp.Status, resp.Header)
	}
}

// Without a list it is the script that decides, once for all requests.
func TestScriptAllowsOtherOrigins(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn)
	s := p.listen(`header('Access-Control-Allow-Origin: https://app.example'); ephpm_ws_send($_SERVER['WS_SAME_ORIGIN']);`, "Origin", "https://app.example")
	s.want("0")
	resp, _ := s.post("return 1;", "Origin", "https://app.example")
	for _, h := range []http.Header{s.resp.Header, resp.Header} {
		if got := h.Get("Access-Control-Allow-Origin"); got != "https://app.example" {
			t.Errorf("Access-Control-Allow-Origin is %q", got)
		}
	}
	if s := p.listen(`ephpm_ws_send($_SERVER['WS_SAME_ORIGIN']);`, "Sec-Fetch-Site", "cross-site"); s.next().data != "0" {
		t.Error("a request that another page caused is of the same origin")
	}
}
