package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"ephpm/phpbridge"
	"ephpm/websocket"
)

var sampleEntry = entry{
	at: time.Date(2026, 11, 30, 19, 10, 37, 123456789, time.UTC), took: 1234567 * time.Nanosecond,
	addr: "203.0.113.7", port: "4711", user: "alice", method: "GET", target: "/a?b=c", proto: "HTTP/2.0", host: "site.example",
	referer: "https://x.example/", agent: `Mozilla "5.0"`, tls: "TLS 1.3",
	by: handlerPHP, status: 200, bytes: 42, id: "id-1", site: "default", queued: time.Millisecond, ran: 2 * time.Millisecond,
}

func TestAccessFormats(t *testing.T) {
	closed := sampleEntry
	closed.socket = &websocket.Closed{
		Code: 1001, Reason: "bye", Cause: "idle", Duration: 90 * time.Second, FramesIn: 1, FramesOut: 2, BytesIn: 3, BytesOut: 4,
	}
	for _, test := range []struct {
		format string
		e      entry
		want   string
	}{
		{AccessCommon, sampleEntry, `203.0.113.7 - alice [30/Nov/2026:19:10:37 +0000] "GET /a?b=c HTTP/2.0" 200 42`},
		{AccessCombined, sampleEntry, `203.0.113.7 - alice [30/Nov/2026:19:10:37 +0000] "GET /a?b=c HTTP/2.0" 200 42 "https://x.example/" "Mozilla \"5.0\""`},
		{AccessCombined, entry{at: sampleEntry.at, addr: "::1", status: 400}, `::1 - - [30/Nov/2026:19:10:37 +0000] "-" 400 - "-" "-"`},
		{AccessBrief, sampleEntry, sampleEntry.at.Local().Format("15:04:05") + ` GET /a?b=c 200 1.23ms`},
		{AccessBrief, closed, sampleEntry.at.Local().Format("15:04:05") + ` CLOSE /a?b=c 1001 1m30s`},
		{AccessCommon, closed, `203.0.113.7 - alice [30/Nov/2026:19:10:37 +0000] "CLOSE /a?b=c HTTP/2.0" 1001 4 cause=idle duration=90.000000 frames_in=1 frames_out=2 bytes_in=3 bytes_out=4`},
		{AccessJSON, sampleEntry, `{"time":"2026-11-30T19:10:37.123Z","request":"id-1","site":"default","addr":"203.0.113.7","port":"4711","user":"alice","method":"GET","target":"/a?b=c","proto":"HTTP/2.0","tls":"TLS 1.3","host":"site.example","handler":"php","status":200,"bytes":42,"duration":0.001235,"php":0.002000,"queue":0.001000,"referer":"https://x.example/","agent":"Mozilla \"5.0\""}`},
		{AccessJSON, closed, `{"time":"2026-11-30T19:10:37.123Z","event":"close","request":"id-1","site":"default","addr":"203.0.113.7","port":"4711","user":"alice","method":"GET","target":"/a?b=c","proto":"HTTP/2.0","tls":"TLS 1.3","host":"site.example","code":1001,"reason":"bye","cause":"idle","duration":90.000000,"frames_in":1,"frames_out":2,"bytes_in":3,"bytes_out":4,"referer":"https://x.example/","agent":"Mozilla \"5.0\""}`},
	} {
		if got := string(accessFormats[test.format](nil, &test.e)); got != test.want+"\n" {
			t.Errorf("%s:\n%swant\n%s", test.format, got, test.want)
		}
	}
}

// hostile returns an entry that has text in each field of the client's.
func hostile(text string) entry {
	e := sampleEntry
	e.user, e.method, e.target, e.proto, e.host, e.referer, e.agent, e.id = text, text, text, text, text, text, text, text
	return e
}

func TestAccessLinesCannotBeForged(t *testing.T) {
	e := hostile("a\" 200 1\n127.0.0.1 - - \\ \x00\x1b\u2028\xff é")
	for name, format := range accessFormats {
		line := format(nil, &e)
		if strings.Count(string(line), "\n") != 1 || !utf8.Valid(line) {
			t.Errorf("%s: %q", name, line)
		}
	}
	const want = `203.0.113.7 - a\"\x20200\x201\x0a127.0.0.1\x20-\x20-\x20\\\x20\x00\x1b\xe2\x80\xa8\xff\x20\xc3\xa9 [`
	if line := string(appendCommon(nil, &e)); !strings.HasPrefix(line, want) {
		t.Errorf("%s\nwant it to begin with\n%s", line, want)
	}
}

func FuzzAccessFormats(f *testing.F) {
	for _, seed := range []string{"", "a", `"`, `\`, "\n", "\r", "\x00", "\x7f", "\u2028", "\xff", "é", `\"`, strings.Repeat("x", maxField+1)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e := hostile(text)
		for name, format := range accessFormats {
			line := format(nil, &e)
			if strings.IndexByte(string(line), '\n') != len(line)-1 || !utf8.Valid(line) {
				t.Fatalf("%s: %q", name, line)
			}
		}
		var got struct{ Agent string }
		if err := json.Unmarshal(appendJSON(nil, &e), &got); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(text, "\ufffd"); utf8.ValidString(text) && len(text) < maxField && got.Agent != want {
			t.Errorf("agent %q, want %q", got.Agent, want)
		}
		if n := quoted(string(appendCombined(nil, &e))); n != 3 {
			t.Errorf("%d quoted fields, want 3", n)
		}
	})
}

// quoted counts the quoted fields of a line.
func quoted(line string) (n int) {
	open := false
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			if open = !open; open {
				n++
			}
		}
	}
	return n
}

// newAccess returns a log with a file, and a function that ends it and returns what
// was written.
func newAccess(t *testing.T) (a *accessLog, name string, end func() string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "access.log")
	a, err := newAccessLog("server.logging.access", LoggingConfig{Access: name, AccessFormat: AccessCommon}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { a.run(ctx) })
	return a, name, func() string {
		cancel()
		wg.Wait()
		return contents(t, name)
	}
}

func contents(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// waitUntil waits for what the file system tells nobody.
func waitUntil(t *testing.T, there func() bool) {
	t.Helper()
	for start := time.Now(); !there(); time.Sleep(time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatal("it never comes")
		}
	}
}

func TestNothingIsLostInANormalStop(t *testing.T) {
	a, name, end := newAccess(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 1000 {
				e := sampleEntry
				e.target = fmt.Sprintf("/%d/%d", i, j)
				a.add(&e)
			}
		})
	}
	wg.Wait()
	lines := map[string]int{}
	for _, field := range strings.Fields(end()) {
		lines[field]++
	}
	for i := range 8 {
		for j := range 1000 {
			if n := lines[fmt.Sprintf("/%d/%d", i, j)]; n != 1 {
				t.Fatalf("/%d/%d is there %d times", i, j, n)
			}
		}
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v, want mode 0640", info.Mode(), err)
	}
}

func TestRequestsDoNotWaitForTheDisk(t *testing.T) {
	r, w, err := os.Pipe() // nobody reads it yet
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	a, _, _ := newAccess(t)
	b := &accessLog{format: a.format, log: quiet, file: w, some: make(chan struct{}, 1), many: make(chan struct{}, 1), again: make(chan struct{}, 1)}
	b.scratch.New = a.scratch.New
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { b.run(ctx) })
	e := sampleEntry
	e.target = strings.Repeat("x", maxField)
	const lines = 3 * accessKept / maxField
	for range lines {
		b.add(&e)
	}
	dropped := int(b.dropped.Load())
	if dropped < lines/4 || dropped == lines {
		t.Errorf("%d of %d lines are dropped, want what is over the limit", dropped, lines)
	}
	cancel()
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(r)
		read <- string(text)
	}()
	wg.Wait()
	if n := strings.Count(<-read, "\n"); n != lines-dropped {
		t.Errorf("%d lines are written, %d dropped, of %d", n, dropped, lines)
	}
}

func TestAccessLogGoesOnInANewFile(t *testing.T) {
	a, name, end := newAccess(t)
	one, two := sampleEntry, sampleEntry
	one.target, two.target = "/one", "/two"
	a.add(&one)
	if err := os.Rename(name, name+".1"); err != nil {
		t.Fatal(err)
	}
	a.reopen()
	waitUntil(t, func() bool { _, err := os.Stat(name); return err == nil })
	a.add(&two)
	if text := end(); !strings.Contains(text, "/two") || strings.Contains(text, "/one") {
		t.Errorf("the new file has %q", text)
	}
	if text := contents(t, name+".1"); !strings.Contains(text, "/one") {
		t.Errorf("the old file has %q", text)
	}
}

func TestWhatNetHTTPRefusesIsLogged(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.log")
	s := newTest(t, files(t, "a.txt"), &fakePool{}, func(c *Config) {
		c.Server.Logging.Access, c.Server.Logging.AccessFormat = name, AccessCommon
	})
	addr, stop := start(t, s)
	for request, want := range map[string]int{
		"GET / HTTP/1.1\r\n\r\n": 400, "GARBAGE\r\n\r\n": 400, "GET / HTTP/9.9\r\nHost: x\r\n\r\n": 505,
		"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("y", 64<<10) + "\r\n\r\n":       431,
		"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: odd\r\n\r\n":                       501,
		"GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\nGARBAGE\r\n\r\n":                             200,
		"GET /a.txt HTTP/1.1\r\nHost: x\r\nExpect: everything\r\nContent-Length: 1\r\n\r\n": 417,
	} {
		c := dial(t, addr)
		_, _ = io.WriteString(c, request) // the server may answer, and close, before it has read all
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || r.StatusCode != want {
			t.Errorf("%.40q: %v, %v, want %d", request, r, err, want)
		}
		_ = c.(*net.TCPConn).CloseWrite()
		if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%.40q: %v, want the connection closed", request, err)
		}
	}
	half := dial(t, addr)
	_, _ = io.WriteString(half, "GET / HT")
	_ = half.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, half)
	silent := dial(t, addr) // asks for nothing, which is no request
	_ = silent.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, silent)
	if err := stop(); err != nil {
		t.Error(err)
	}
	text := contents(t, name)
	for want, n := range map[string]int{
		`"-" 400 -`: 4, `"-" 505 -`: 1, `"-" 431 -`: 1, `"-" 501 -`: 1, `"-" 417 -`: 1, `"GET /a.txt HTTP/1.1" 200 `: 1,
	} {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%d lines have %s, want %d:\n%s", got, want, n, text)
		}
	}
}

func TestWhoNeverCompletesAHeaderIsLogged(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.log")
	s := newTest(t, files(t, "a.txt"), &fakePool{}, func(c *Config) {
		c.Server.Logging.Access, c.Server.Logging.AccessFormat = name, AccessCommon
		c.Server.Timeouts.HeaderRead = Duration(50 * time.Millisecond)
	})
	addr, stop := start(t, s)
	waitUntil(t, func() bool { // on a busy machine the time is over before the server has read anything
		c := dial(t, addr)
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n")
		_, _ = io.Copy(io.Discard, c)
		return strings.Contains(contents(t, name), `"-" 499 -`)
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestARequestThatIsCutIsLoggedSo(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.log")
	s := newTest(t, files(t, "index.php"), &fakePool{run: func(_ context.Context, w http.ResponseWriter, _ *phpbridge.Request) error {
		_, _ = io.WriteString(w, "half")
		return phpbridge.ErrTimeout
	}}, func(c *Config) { c.Server.Logging.Access, c.Server.Logging.AccessFormat = name, AccessJSON })
	addr, stop := start(t, s)
	c := dial(t, addr)
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	_, _ = io.Copy(io.Discard, c)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if text := contents(t, name); !strings.Contains(text, `"status":200,"bytes":4,`) || !strings.Contains(text, `"cut":true`) {
		t.Errorf("%s", text)
	}
}
