package e2e

import (
	"net/http"
	"strings"
	"testing"
)

const trustLoopback = "[server.security]\ntrusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]\n"

// proxyVars prints what scripts see of the client.
const proxyVars = `<?php
	foreach (['REMOTE_ADDR', 'REMOTE_PORT', 'HTTPS', 'REQUEST_SCHEME', 'SERVER_PORT', 'HTTP_HOST', 'SERVER_NAME'] as $name)
		echo $name, '=', $_SERVER[$name] ?? '-', "\n";`

func TestTrustedProxiesNameTheClient(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: trustLoopback, Files: map[string]string{"index.php": proxyVars}})
	for header, want := range map[string]string{
		"X-Forwarded-For: 1.1.1.1, 203.0.113.7, 10.0.0.9|X-Forwarded-Proto: https":                "203.0.113.7 - on https 443 x x",
		"X-Forwarded-For: 203.0.113.7:999|X-Forwarded-Proto: https|X-Forwarded-Port: 8443":        "203.0.113.7 999 on https 8443 x x",
		`Forwarded: for="[2001:db8::7]:4711";proto=https;host=evil.example, for=10.0.0.9`:         "2001:db8::7 4711 on https 443 x x",
		"X-Forwarded-For: 203.0.113.7|X-Forwarded-Proto: gopher|X-Forwarded-Port: -1":             "203.0.113.7 - - http 80 x x",
		"X-Forwarded-For: 203.0.113.7|X-Forwarded-Host: evil.example":                             "203.0.113.7 - - http 80 x x",
		"X-Forwarded-For: 203.0.113.7|Forwarded: for=1.1.1.1;proto=https|X-Forwarded-Proto: http": "203.0.113.7 - - http 80 x x",
	} {
		_, body := a.getExactly("/", strings.Split(header, "|")...)
		want := strings.Split(want, " ")
		for i, line := range strings.Split(strings.TrimSpace(body), "\n") {
			name, got, _ := strings.Cut(line, "=")
			if name == "REMOTE_PORT" && got == "" {
				got = "-"
			}
			if got != want[i] {
				t.Errorf("%s: %s is %q, want %q", header, name, got, want[i])
			}
		}
	}
	if _, body := a.getExactly("/", "X-Forwarded-For: not an address"); !strings.HasPrefix(body, "REMOTE_ADDR=127.0.0.1\n") {
		t.Errorf("with a header that is no address:\n%s", body)
	}
}

func TestNobodyElseIsBelieved(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[server.security]\ntrusted_proxies = [\"192.0.2.0/24\"]\nproxy_host = true\n",
		Files: map[string]string{"index.php": proxyVars},
	})
	_, body := a.getExactly("/", "X-Forwarded-For: 203.0.113.7", "X-Forwarded-Proto: https", "X-Forwarded-Port: 1", "X-Forwarded-Host: y", "Forwarded: for=1.1.1.1;proto=https")
	for _, want := range []string{"REMOTE_ADDR=127.0.0.1\n", "HTTPS=-\n", "SERVER_PORT=80\n", "HTTP_HOST=x\n"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
}

func TestEventsAgreeWithTheTrustedProxy(t *testing.T) {
	t.Parallel()
	a := startPlay(t, trustLoopback)
	const seen = `return [$_SERVER['REMOTE_ADDR'], $_SERVER['HTTPS'] ?? '', $_SERVER['SERVER_PORT'], $_SERVER['WS_SAME_ORIGIN']];`
	for origin, same := range map[string]string{"https://" + a.Addr: "1", "http://" + a.Addr: "0"} {
		s := a.dial(events("", ""), http.Header{
			"X-Forwarded-For": {"203.0.113.7"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Port": {"8443"}, "Origin": {origin},
		})
		s.wantRun(seen, `["203.0.113.7","on","8443","`+same+`"]`)
	}
}

func TestRequestIDsOfTrustedProxies(t *testing.T) {
	t.Parallel()
	const index = `<?php error_log('here'); echo $_SERVER['REQUEST_ID'];`
	a := startApp(t, appOptions{TOML: trustLoopback, Files: map[string]string{"index.php": index}})
	if _, body := a.getExactly("/", "X-Request-Id: edge-7f.3"); body != "edge-7f.3" {
		t.Errorf("REQUEST_ID is %q, want the proxy's", body)
	}
	a.waitLine(`text=here`, `request=edge-7f\.3`)
	for _, bad := range []string{"a b", `"`, "../x", strings.Repeat("x", 129), "", "é"} {
		if _, body := a.getExactly("/", "X-Request-Id: "+bad); body == bad || len(body) < 10 {
			t.Errorf("REQUEST_ID is %q for X-Request-Id %q, want one of the server's", body, bad)
		}
	}
	b := startApp(t, appOptions{Files: map[string]string{"index.php": index}})
	if _, body := b.getExactly("/", "X-Request-Id: edge-7f.3"); body == "edge-7f.3" {
		t.Error("the request ID of a client is believed")
	}
}
