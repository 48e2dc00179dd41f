package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	h2 "golang.org/x/net/http2"
)

// floods are attacks on servers of HTTP/2. Each returns how much it could send, and
// how the server stopped it; nil when it did not.
var floods = map[string]func(w *h2wire) (sent string, stopped error){
	// CVE-2023-44487: each stream is reset at once, so that it does not count.
	"rapid resets": func(w *h2wire) (string, error) {
		for i := range 40000 {
			block := w.fields(":method", "GET", ":scheme", "https", ":path", "/slow.php", ":authority", "x")
			err := w.WriteHeaders(h2.HeadersFrameParam{StreamID: w.next, BlockFragment: block, EndStream: true, EndHeaders: true})
			if err == nil {
				err = w.WriteRSTStream(w.next, h2.ErrCodeCancel)
			}
			if err != nil {
				return fmt.Sprint(i, " streams"), err
			}
			w.next += 2
		}
		return "40000 streams", nil
	},
	// CVE-2023-45288: a header that never ends.
	"endless CONTINUATION": func(w *h2wire) (string, error) {
		block := w.fields(":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "x", strings.Repeat("x", 15000))
		err := w.WriteHeaders(h2.HeadersFrameParam{StreamID: w.next, BlockFragment: block})
		more := w.fields("y", strings.Repeat("y", 15000))
		for i := range 20000 { // 300 MB
			if err != nil {
				return fmt.Sprint(i, " frames"), err
			}
			err = w.WriteContinuation(w.next, false, more)
		}
		return "20000 frames", nil
	},
	// CVE-2016-6581: a long field is sent once, and then named by one byte each time.
	"a header bomb": func(w *h2wire) (string, error) {
		head := bytes.Clone(w.fields(":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "bomb", strings.Repeat("x", 4000)))
		again := bytes.Repeat(w.fields("bomb", strings.Repeat("x", 4000)), 10000)
		err := w.WriteHeaders(h2.HeadersFrameParam{StreamID: w.next, BlockFragment: head, EndStream: true})
		for i := 0; err == nil && i < 15; i++ { // 600 MB for who writes them down
			err = w.WriteContinuation(w.next, i == 14, again)
		}
		if err != nil {
			return "less than 150000 fields", err
		}
		answer, err := w.tryAnswer(w.next)
		if err != nil {
			return "150000 fields", err
		}
		return "150000 fields", errors.New(answer.String())
	},
	// CVE-2019-9512: pings whose answers nobody reads.
	"pings": func(w *h2wire) (string, error) {
		for i := range 200000 {
			if err := w.WritePing(false, [8]byte{1}); err != nil {
				return fmt.Sprint(i, " pings"), err
			}
		}
		return "200000 pings", nil
	},
	// CVE-2019-9515: settings, each of which must be acknowledged.
	"settings": func(w *h2wire) (string, error) {
		for i := range 200000 {
			if err := w.WriteSettings(h2.Setting{ID: h2.SettingInitialWindowSize, Val: 65535}); err != nil {
				return fmt.Sprint(i, " settings"), err
			}
		}
		return "200000 settings", nil
	},
}

// Floods cost the server little memory, and others nothing but time.
func TestHTTP2Floods(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[server]\nh2c = true\n[php]\nworkers = 4\n",
		Files: map[string]string{"slow.php": `<?php usleep(1000); echo "slow";`, "index.php": `<?php echo "fine";`},
	})
	a.get("/")
	front, _, err := a.memoryByRole()
	if err != nil {
		t.Fatal(err)
	}
	for name, flood := range floods {
		memory := a.watchMemory()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				w, err := a.tryFrames(nil)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				sent, stopped := flood(w)
				t.Logf("%s: the server took %s, then %v", name, sent, stopped)
				// The others it outlives, whether it ends them or not.
				if stopped == nil && (name == "endless CONTINUATION" || name == "a header bomb") {
					t.Errorf("%s: the server did not stop it after %s", name, sent)
				}
			})
		}
		for range 5 {
			if err := wantBody(a.request("GET", "/", ""), "fine"); err != nil {
				t.Errorf("meanwhile: %v", err)
			}
		}
		wg.Wait()
		if err := wantBody(a.request("GET", "/", ""), "fine"); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		memory.end()
		t.Logf("%s: at most %d MiB of memory, %d before", name, memory.front>>20, front>>20)
		if memory.err != nil || memory.front > front+100<<20 && !raceEnabled { // it has memory of its own
			t.Errorf("%s: memory followed (%v)", name, memory.err)
		}
	}
}
