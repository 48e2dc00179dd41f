package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"ephpm/phpbridge"
)

func TestErrorsOfTheRun(t *testing.T) {
	tests := []struct {
		err    error
		status int
	}{
		{phpbridge.ErrBusy, 503},
		{fmt.Errorf("wrapped: %w", phpbridge.ErrClosed), 503},
		{phpbridge.ErrTimeout, 504},
		{&phpbridge.CrashError{Slot: 1, Reason: "signal 11"}, 502},
		{phpbridge.ErrTooLarge, 431},
		{errors.New("anything"), 500},
	}
	root := files(t, "index.php")
	for _, tt := range tests {
		pool := &fakePool{run: func(context.Context, http.ResponseWriter, *phpbridge.Request) error { return tt.err }}
		r := get(newTest(t, root, pool), "/")
		if r.StatusCode != tt.status {
			t.Errorf("%v: %d, want %d", tt.err, r.StatusCode, tt.status)
		}
		if retry := r.Header.Get("Retry-After"); (retry != "") != (tt.status == 503) {
			t.Errorf("%v: Retry-After %q", tt.err, retry)
		}
	}
}

func TestBegunResponseIsCut(t *testing.T) {
	pool := &fakePool{run: func(_ context.Context, w http.ResponseWriter, _ *phpbridge.Request) error {
		_, _ = io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		return &phpbridge.CrashError{}
	}}
	ts := httptest.NewServer(newTest(t, files(t, "index.php"), pool))
	defer ts.Close()
	r, err := http.Get(ts.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if b, err := io.ReadAll(r.Body); err == nil || string(b) != "half" {
		t.Errorf("read %q, %v; want half a response and an error", b, err)
	}
}
