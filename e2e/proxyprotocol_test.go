package e2e

import (
	"crypto/tls"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const proxyProtocol = "[server]\nproxy_protocol = true\n" + trustLoopback

// proxyV2 is a header of version 2 for TCP over IPv4, from 203.0.113.7:4660 to
// 192.0.2.80:443.
const proxyV2 = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xcb\x00\x71\x07\xc0\x00\x02\x50\x12\x34\x01\xbb"

const whoAsks = `<?php echo $_SERVER['REMOTE_ADDR'], ' ', $_SERVER['REMOTE_PORT'], ' ', $_SERVER['SERVER_ADDR'], ' ', $_SERVER['HTTPS'] ?? '-';`

func TestProxyProtocol(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: proxyProtocol, Files: map[string]string{"index.php": whoAsks}})
	for name, test := range map[string]struct{ header, want string }{
		"version 1":       {"PROXY TCP4 203.0.113.7 192.0.2.80 4660 443\r\n", "203.0.113.7 4660 192.0.2.80 -"},
		"version 1, IPv6": {"PROXY TCP6 2001:db8::7 2001:db8::80 4660 443\r\n", "2001:db8::7 4660 2001:db8::80 -"},
		"version 2":       {proxyV2, "203.0.113.7 4660 192.0.2.80 -"},
	} {
		w := a.connect()
		w.send(test.header)
		for range 2 { // it counts for the whole connection
			w.send(getText("/", "X-Forwarded-For: 1.1.1.1")) // which its client cannot change
			if _, body := w.answer(); body != test.want {
				t.Errorf("%s: %q, want %q", name, body, test.want)
			}
		}
	}
	w := a.connect()
	w.send("PROXY UNKNOWN\r\n" + getText("/"))
	if _, body := w.answer(); !strings.HasPrefix(body, "127.0.0.1 ") {
		t.Errorf("unknown: %q, want the proxy", body)
	}
	for _, bad := range []string{getText("/"), "PROXY TCP4 x\r\n" + getText("/"), strings.Repeat("\x00", 200)} {
		w := a.connect()
		w.send(bad)
		if text, _ := w.rest(); text != "" { // closed or reset
			t.Errorf("%.20q: %q, want the connection closed", bad, text)
		}
	}
	out, err := exec.Command("curl", "-sS", "--max-time", maxTime, "--haproxy-protocol", a.URL).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "127.0.0.1 ") {
		t.Errorf("curl: %q, %v", out, err)
	}
}

func TestProxyProtocolComesBeforeTLS(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	ca.issue(dir, "a.test")
	a := startApp(t, appOptions{TOML: proxyProtocol + tlsIn(dir), Files: map[string]string{"index.php": whoAsks}})
	w := a.connect()
	w.send(proxyV2)
	conn := tls.Client(w, &tls.Config{InsecureSkipVerify: true})
	if _, err := io.WriteString(conn, getText("/", "Connection: close")); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || !strings.Contains(string(answer), "203.0.113.7 4660 192.0.2.80 on") {
		t.Errorf("%q, %v", answer, err)
	}
}

func TestOthersNeedNoProxyHeaderAndAreNotBelieved(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[server]\nproxy_protocol = true\n[server.security]\ntrusted_proxies = [\"192.0.2.1\"]\n",
		Files: map[string]string{"index.php": whoAsks},
	})
	if _, body := a.get("/"); !strings.HasPrefix(body, "127.0.0.1 ") {
		t.Errorf("without a header: %q", body)
	}
	if resp, _ := a.exchange("PROXY TCP4 203.0.113.7 192.0.2.80 4660 443\r\n" + getText("/")); resp.StatusCode != 400 {
		t.Errorf("with one: %s, want 400", resp.Status)
	}
}

// What is no proper header ends its connection without a word, and is counted.
func TestBadProxyHeaders(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  proxyProtocol + "[server.timeouts]\nheader_read = \"2s\"\n[server.metrics]\nenabled = true\n[server.admin]\nlisten = \"127.0.0.1:0\"\n",
		Files: map[string]string{"index.php": whoAsks},
	})
	const signature = "\r\n\r\n\x00\r\nQUIT\n"
	const ends = "\xcb\x00\x71\x07\xc0\x00\x02\x50\x12\x34\x01\xbb" // of TCP over IPv4
	bad := map[string]string{
		"version 2, another version":        signature + "\x11\x11\x00\x0c" + ends,
		"version 2, an unknown command":     signature + "\x22\x11\x00\x0c" + ends,
		"version 2, too short":              signature + "\x21\x11\x00\x0b" + ends,
		"version 2, too short for IPv6":     signature + "\x21\x21\x00\x0c" + ends,
		"version 2, not all there":          signature + "\x21\x11\xff\xff" + ends,
		"version 2, half a signature":       signature[:8] + getText("/"),
		"version 1, a port too high":        "PROXY TCP4 203.0.113.7 192.0.2.80 65536 443\r\n",
		"version 1, IPv6 as IPv4":           "PROXY TCP4 2001:db8::7 2001:db8::80 4660 443\r\n",
		"version 1, another protocol":       "PROXY UDP4 203.0.113.7 192.0.2.80 4660 443\r\n",
		"version 1, too few words":          "PROXY TCP4 203.0.113.7 192.0.2.80 4660\r\n",
		"version 1, too many words":         "PROXY TCP4 203.0.113.7 192.0.2.80 4660 443 1\r\n",
		"version 1, in small letters":       "proxy TCP4 203.0.113.7 192.0.2.80 4660 443\r\n",
		"version 1, a line feed alone":      "PROXY TCP4 203.0.113.7 192.0.2.80 4660 443\n",
		"version 1, without an end":         "PROXY TCP4 " + strings.Repeat("2", 200),
		"version 1, a sign before the port": "PROXY TCP4 203.0.113.7 192.0.2.80 +4660 443\r\n",
	}
	for name, header := range bad {
		w := a.connect()
		_, _ = io.WriteString(w, header+getText("/")) // it may be closed before all is read
		if name == "version 2, not all there" {
			_ = w.tcp().CloseWrite() // it may be closed
		}
		if text, _ := w.rest(); text != "" { // closed or reset
			t.Errorf("%s: %q, want the connection closed", name, text)
		}
	}
	for name, test := range map[string]struct{ header, want string }{
		"more than addresses": {signature + "\x21\x11\x00\x13" + ends + "\x04\x00\x04\x00\x00\x00\x00", "203.0.113.7 4660 192.0.2.80 -"},
		"LOCAL":               {signature + "\x20\x11\x00\x0c" + ends, "127.0.0.1 "},
		"LOCAL, nothing else": {signature + "\x20\x00\x00\x00", "127.0.0.1 "},
	} {
		w := a.connect()
		w.send(test.header + getText("/"))
		if _, body := w.answer(); !strings.HasPrefix(body, test.want) {
			t.Errorf("%s: %q, want %q", name, body, test.want)
		}
	}
}
