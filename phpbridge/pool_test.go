package phpbridge

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience limits every wait for something that should happen at once. It is
// generous because the machine may be busy; a passing test never uses it up.
const patience = time.Minute

func init() {
	flag.Func("under", "command that runs the zygote, and with it the workers", func(s string) error {
		under = strings.Fields(s)
		return nil
	})
}

// testPool starts a pool and closes it at the end of the test.
func testPool(t *testing.T, change func(*Options)) *Pool {
	t.Helper()
	o := Options{
		MinWorkers:  2,
		MaxWorkers:  2,
		Backlog:     100,
		BacklogWait: patience,
		Log:         slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&o)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := p.Close(ctx); err != nil && !errors.Is(err, ErrClosed) { // a test may have closed it
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

// script writes a PHP file and returns a request for it.
func script(t *testing.T, code string) *Request {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.php")
	if err := os.WriteFile(file, []byte("<?php "+code), 0o644); err != nil {
		t.Fatal(err)
	}
	var v Vars
	v = v.Add("REQUEST_METHOD", "GET").Add("SCRIPT_FILENAME", file).Add("QUERY_STRING", "")
	return &Request{ID: "test", Site: "site", Script: file, Vars: v}
}

// post gives a request a body.
func post(r *Request, contentType, body string) *Request {
	r.Vars = r.Vars.Add("REQUEST_METHOD", "POST").Add("CONTENT_TYPE", contentType)
	r.Body, r.BodyLen = strings.NewReader(body), int64(len(body))
	return r
}

// serveOverLimit serves requests that run over their time limit until one has left a
// mark: on a busy machine the time may be over before the script is where it is to
// be, and gets longer. The mark is a file that is called as the script, with ".mark" behind it.
func serveOverLimit(t *testing.T, p *Pool, r *Request) (times int) {
	t.Helper()
	for times = 1; ; times++ {
		if _, err := p.Serve(t.Context(), httptest.NewRecorder(), r); err != ErrTimeout {
			t.Errorf("Serve returned %v, want ErrTimeout", err)
		}
		if exists(r.Script+".mark") || times == 20 {
			return times
		}
		r.Timeout *= 2
	}
}

// run serves a request and fails the test if that fails.
func run(t *testing.T, p *Pool, r *Request) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	if _, err := p.Serve(t.Context(), w, r); err != nil {
		t.Fatalf("Serve: %v", err)
	}
	return w
}

func body(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	b, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// flushed tells of each flush.
type flushed struct {
	*httptest.ResponseRecorder
	ch chan struct{}
}

func (f *flushed) Flush() {
	f.ResponseRecorder.Flush()
	select {
	case f.ch <- struct{}{}:
	default:
	}
}

// waitFor polls, because what it waits for happens in another process.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("there is no sign of %s", what)
		}
	}
}

func touch(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// withInformational calls got for each response with a status 1xx.
func withInformational(ctx context.Context, got func(int, textproto.MIMEHeader)) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			got(code, h)
			return nil
		},
	})
}
