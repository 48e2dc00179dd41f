package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"ephpm/phpbridge"
)

func TestBodiesArriveWhole(t *testing.T) {
	pool := &fakePool{}
	ts := httptest.NewServer(newTest(t, files(t, "index.php"), pool))
	defer ts.Close()
	for _, n := range []int{0, 1, 4096, inMemory - 1, inMemory, inMemory + 1, 3*inMemory + 5} {
		for _, chunked := range []bool{false, true} {
			content := strings.Repeat("0123456789abcdef", n/16+1)[:n]
			var body io.Reader = strings.NewReader(content)
			if chunked {
				body = io.MultiReader(body) // hides the length
			}
			r, err := http.Post(ts.URL, "text/plain", body)
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Body.Close()
			if r.StatusCode != 200 || pool.body != content || pool.vars["CONTENT_LENGTH"] != strconv.Itoa(n) {
				t.Errorf("%d bytes, chunked %v: status %d, PHP read %d bytes, CONTENT_LENGTH %q",
					n, chunked, r.StatusCode, len(pool.body), pool.vars["CONTENT_LENGTH"])
			}
		}
	}
}

func TestTooLongBodiesAreRefused(t *testing.T) {
	const limit = inMemory + 100
	pool := &fakePool{}
	ts := httptest.NewServer(newTest(t, files(t, "index.php"), pool, func(c *Config) { c.Server.Request.MaxBodySize = limit }))
	defer ts.Close()
	for _, tt := range []struct {
		n       int
		chunked bool
		want    int
	}{
		{limit, false, 200}, {limit, true, 200}, {limit + 1, false, 413}, {limit + 1, true, 413}, {20 * limit, true, 413},
	} {
		var body io.Reader = strings.NewReader(strings.Repeat("x", tt.n))
		if tt.chunked {
			body = io.MultiReader(body)
		}
		r, err := http.Post(ts.URL, "text/plain", body)
		if err != nil {
			t.Errorf("%+v: %v", tt, err)
			continue
		}
		_ = r.Body.Close()
		if r.StatusCode != tt.want {
			t.Errorf("%+v: status %d", tt, r.StatusCode)
		}
	}
	if pool.calls != 2 {
		t.Errorf("PHP ran %d times, want twice", pool.calls)
	}
}

func TestAnnouncedLengthIsRefusedBeforeTheBody(t *testing.T) {
	ts := httptest.NewServer(newTest(t, files(t, "index.php"), &fakePool{}))
	defer ts.Close()
	c := dial(t, ts.Listener.Addr())
	fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n")
	if r, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || r.StatusCode != 413 || !r.Close {
		t.Errorf("got %+v, %v; want 413 and the connection closed", r, err)
	}
}

func TestStalledBodyTimesOut(t *testing.T) {
	pool := &fakePool{}
	ts := httptest.NewServer(newTest(t, files(t, "index.php", "a.txt"), pool, func(c *Config) {
		c.Server.Timeouts.Idle = Duration(50 * time.Millisecond)
	}))
	defer ts.Close()
	for request, want := range map[string]int{
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\npart":                          408,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n":           408,
		"GET /a.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1000\r\n\r\npart": 200,
	} {
		c := dial(t, ts.Listener.Addr())
		fmt.Fprint(c, request)
		in := bufio.NewReader(c)
		r, err := http.ReadResponse(in, nil)
		if err != nil || r.StatusCode != want {
			t.Errorf("%q: %+v, %v; want %d", request, r, err, want)
			continue
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		if _, err := in.ReadByte(); err != io.EOF {
			t.Errorf("%q: %v after the response, want the connection closed", request, err)
		}
	}
	if pool.calls != 0 {
		t.Errorf("PHP ran %d times, want never", pool.calls)
	}
}

// A deadline that was set for the body must not strike while the script runs.
func TestBodyDeadlineEndsWithTheBody(t *testing.T) {
	pool := &fakePool{run: func(ctx context.Context, w http.ResponseWriter, _ *phpbridge.Request) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
			return nil
		}
	}}
	ts := httptest.NewServer(newTest(t, files(t, "index.php"), pool, func(c *Config) {
		c.Server.Timeouts.Idle = Duration(20 * time.Millisecond)
	}))
	defer ts.Close()
	r, err := http.Post(ts.URL, "text/plain", strings.NewReader("x"))
	if err != nil || r.StatusCode != 200 {
		t.Fatalf("%+v, %v; want 200", r, err)
	}
	_ = r.Body.Close()
}

func TestClientThatLeavesHalfWayIsForgotten(t *testing.T) {
	pool := &fakePool{}
	ts := httptest.NewServer(newTest(t, files(t, "index.php"), pool))
	c := dial(t, ts.Listener.Addr())
	fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\npart")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); err != nil || len(b) != 0 {
		t.Errorf("read %q, %v; want nothing", b, err)
	}
	ts.Close()
	if pool.calls != 0 {
		t.Error("PHP ran for half a request")
	}
}

func dial(t *testing.T, addr net.Addr) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
