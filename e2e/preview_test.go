package e2e

import (
	"strings"
	"testing"
)

func TestPreviewMarksEveryAnswer(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[server]\npreview = true\n[server.request]\ntrusted_hosts = [\"x\"]\n",
		Files: map[string]string{
			"index.php": `<?php echo "page";`, "a.txt": "file", "websocket.php": `<?php`,
			"fatal.php": `<?php nothing();`,
		}})
	for text, status := range map[string]int{
		getText("/"):                            200,
		getText("/a.txt"):                       200,
		getText("/missing.txt/"):                200, // index.php
		getText("/.git"):                        403,
		getText("/fatal.php"):                   500,
		getText("/%00"):                         400,
		getText("/_ephpm/health"):               200,
		"GET / HTTP/1.1\r\nHost: other\r\n\r\n": 421,
	} {
		if resp, _ := a.exchange(text); resp.StatusCode != status || resp.Header.Get("X-Ephpm-Preview") != "1" {
			t.Errorf("%.30q: %s, X-Ephpm-Preview %q; want %d and 1", text, resp.Status, resp.Header.Get("X-Ephpm-Preview"), status)
		}
	}
	w := a.connect()
	w.send(getText("/", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="))
	head := ""
	for !strings.HasSuffix(head, "\r\n\r\n") {
		line, err := w.in.ReadString('\n')
		if err != nil {
			t.Fatalf("the answer to an upgrade: %q, %v", head, err)
		}
		head += line
	}
	if !strings.HasPrefix(head, "HTTP/1.1 101 ") || !strings.Contains(head, "X-Ephpm-Preview: 1\r\n") {
		t.Errorf("the answer to an upgrade: %q", head)
	}
	a.waitLine(`msg=preview`, `max_connections=256`, `per_ip_rate=10`, `per_site_burst=20`, `overload_policy=shed`)
}

// Of so many requests at once the last cannot be within the rate.
func TestPreviewLimitsRates(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: "server.preview = true\n", Files: map[string]string{"a.txt": "file"}})
	w := a.connect()
	w.send(strings.Repeat(getText("/a.txt"), 500))
	for i := range 500 {
		if resp, _ := w.answer(); resp.StatusCode == 429 && resp.Header.Get("Retry-After") != "" {
			if i < 50 {
				t.Errorf("429 after %d requests, want 50 at once", i)
			}
			return
		}
	}
	t.Error("500 requests at once, and none was refused")
}

// What is no site's has the server's headers as well.
func TestResponseHeadersOfAnswersWithoutASite(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: `[server.request]
trusted_hosts = ["x"]
[server.limits]
per_ip_rate = 0.001
per_ip_burst = 5
[server.response]
headers = [["X-Added", "1"]]
set_headers = [["Cache-Control", "private"]]
remove_headers = ["Retry-After"]
`,
		Files: map[string]string{"index.php": `<?php echo "page";`},
	})
	for _, test := range []struct {
		text   string
		status int
	}{
		{getText("/"), 200},
		{getText("/%00"), 400},
		{"GET / HTTP/1.1\r\nHost: other\r\n\r\n", 421},
		{"GET / HTTP/1.1\r\nHost: ..\r\n\r\n", 400},
		{getText("/_ephpm/health"), 200},
		{getText("/"), 429},
	} {
		resp, _ := a.exchange(test.text)
		if h := resp.Header; resp.StatusCode != test.status || h.Get("X-Added") != "1" || h.Get("Cache-Control") != "private" || h.Get("Retry-After") != "" {
			t.Errorf("%.40q: %s %v, want %d and the headers", test.text, resp.Status, h, test.status)
		}
	}
}
