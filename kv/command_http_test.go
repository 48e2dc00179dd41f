package kv

import (
	"io"
	"testing"
)

// A page of anybody can have a browser send HTTP here, with commands as its body.
func TestTheBodyOfAnHTTPRequestIsNotRun(t *testing.T) {
	for _, head := range []string{
		"POST / HTTP/1.1\r\nHost: 127.0.0.1:6379\r\n",
		"GET / HTTP/1.1\r\nhOST: 127.0.0.1:6379\r\n",
		"PUT / HTTP/1.1\r\nX: y\r\nHost: 127.0.0.1:6379\r\n",
		"MULTI\r\nPOST / HTTP/1.1\r\n",
	} {
		addr := serve(t, ServerOptions{Default: newStore(t, Options{})})
		p := dial(t, addr)
		p.send(head + "\r\nset k v\r\nexec")
		_, _ = io.Copy(io.Discard, p.r) // a reset is an end too
		if got := dial(t, addr).do("get k"); got != "nil" {
			t.Errorf("%q: k is %s, want nil", head, got)
		}
	}
}
