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

func TestSettingsOfPHP(t *testing.T) {
	settings := func(c Config) map[string]string {
		m := map[string]string{}
		for _, ini := range phpSettings(c, machine{2, 2 << 30}) {
			m[ini.Name] = ini.Value // a later one wins, as in PHP
		}
		return m
	}
	c := DefaultConfig()
	check := func(want map[string]string) {
		t.Helper()
		got := settings(c)
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s = %q, want %q", name, got[name], value)
			}
		}
	}
	check(map[string]string{
		"memory_limit": "128M", "max_execution_time": "30", "post_max_size": "10485760", "upload_max_filesize": "10485760",
		"opcache.memory_consumption": "128", "opcache.interned_strings_buffer": "16", "opcache.max_accelerated_files": "13107",
		"opcache.validate_timestamps": "1", "opcache.revalidate_freq": "2",
	})
	c.PHP.OPcacheRevalidate = Never
	c.PHP.INIOverrides = []INI{{"opcache.memory_consumption", "9"}}
	check(map[string]string{
		"opcache.validate_timestamps": "0", "opcache.memory_consumption": "9",
		"opcache.interned_strings_buffer": "", // might be more than 9
	})
	c.PHP.OPcacheRevalidate, c.PHP.MemoryLimit = 0, ""
	check(map[string]string{"opcache.validate_timestamps": "1", "opcache.revalidate_freq": "0", "memory_limit": ""})
}

func TestLengthThatIsNoneIsNotAnnounced(t *testing.T) {
	for _, lengths := range [][]string{{"+4"}, {"-4"}, {"x"}, {""}, {"4 "}, {"99999999999999999999"}, {"4", "4"}, {"4", "2"}} {
		pool := &fakePool{run: func(_ context.Context, w http.ResponseWriter, _ *phpbridge.Request) error {
			w.Header()["Content-Length"] = lengths
			_, err := io.WriteString(w, "body")
			return err
		}}
		r := get(newTest(t, files(t, "index.php"), pool), "/")
		if r.Header["Content-Length"] != nil || text(t, r) != "body" {
			t.Errorf("%q: %v, want the body without a length", lengths, r.Header)
		}
	}
}
