package phpbridge

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"
)

func TestRunningNamesWhatRuns(t *testing.T) {
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers = 2, 2 })
	if all := p.Running(); len(all) != 0 {
		t.Errorf("before any request: %+v", all)
	}
	before := time.Now()
	release := block(t, p, Page, 2)
	waitFor(t, "two requests that run", func() bool {
		n := 0
		for _, r := range p.Running() {
			if r.State == "running" && r.PID > 0 {
				n++
			}
		}
		return n == 2
	})
	for _, r := range p.Running() {
		if r.Class != Page || r.Script == "" || r.Slot < 0 || r.Since.Before(before) || time.Since(r.Since) < 0 {
			t.Errorf("a page is shown as %+v", r)
		}
	}
	release()
	r := script(t, `echo "x";`)
	r.ID, r.Site, r.Method, r.URI = "one", "a.example", "GET", "/x?y"
	w := &peek{ResponseRecorder: httptest.NewRecorder(), p: p}
	if _, err := p.Serve(context.Background(), w, r); err != nil {
		t.Fatal(err)
	}
	if want := "[one a.example GET /x?y]"; w.seen != want {
		t.Errorf("while its output is taken the request is shown as %s, want %s", w.seen, want)
	}
	waitFor(t, "nothing that runs", func() bool { return len(p.Running()) == 0 })
}

// A peek looks at what runs when the script prints.
type peek struct {
	*httptest.ResponseRecorder
	p    *Pool
	seen string
}

func (w *peek) Write(b []byte) (int, error) {
	for _, r := range w.p.Running() {
		if r.ID != "" {
			w.seen += fmt.Sprint([]string{r.ID, r.Site, r.Method, r.URI})
		}
	}
	return w.ResponseRecorder.Write(b)
}
