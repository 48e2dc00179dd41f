package phpbridge

import (
	"errors"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
)

func TestReloadTakesUpNewCodeAndLosesNothing(t *testing.T) {
	p := testPool(t, func(o *Options) {
		o.INI = []INI{{"opcache.validate_timestamps", "0"}, {"opcache.file_update_protection", "0"}}
	})
	r := script(t, `echo "old";`)
	run(t, p, r)
	if err := os.WriteFile(r.Script, []byte(`<?php echo "new";`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, set := os.LookupEnv("PHP_INI_SCAN_DIR"); set {
		t.Skip("needs OPcache, which is left out under valgrind")
	}
	if got := body(t, run(t, p, r)); got != "old" {
		t.Fatalf("without a reload the script prints %q", got)
	}
	release := block(t, p, Page, 2) // both workers are busy with the old code
	waitFor(t, "busy workers", func() bool { return p.Stats().Busy == 2 })
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // waits meanwhile
		for {
			select {
			case <-stop:
				return
			default:
			}
			w := httptest.NewRecorder()
			if _, err := p.Serve(t.Context(), w, r); err != nil {
				t.Errorf("Serve: %v", err)
			}
		}
	})
	if err := p.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	release()
	waitFor(t, "the new code", func() bool {
		w := httptest.NewRecorder()
		_, err := p.Serve(t.Context(), w, r)
		return err == nil && w.Body.String() == "new"
	})
	close(stop)
	wg.Wait()
	if got := p.Stats().Crashes; got != 0 {
		t.Errorf("%d crashes counted", got)
	}
}

func TestReloadAndCloseTogether(t *testing.T) {
	for range 3 {
		p := testPool(t, nil)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := p.Reload(t.Context()); err != nil && !errors.Is(err, ErrClosed) {
					t.Errorf("Reload: %v", err)
				}
			})
		}
		if err := p.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		wg.Wait()
	}
}
