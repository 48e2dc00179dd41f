package phpbridge

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
)

// What OPcache holds is known without a script, and although scripts may not ask.
func TestOPcacheIsReadOutsideOfScripts(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	p := testPool(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.INI = []INI{{"opcache.file_update_protection", "0"}, {"opcache.restrict_api", "/nobody"}}
		o.DisableFunctions = []string{"opcache_get_status"}
	})
	if dir, set := os.LookupEnv("PHP_INI_SCAN_DIR"); set && dir == "" && !p.zygote.opcache {
		t.Skip("needs OPcache, which is left out under valgrind")
	}
	first := p.OPcache()
	if first.Used <= 0 || first.Free <= 0 || first.StringsUsed <= 0 || first.StringsFree <= 0 || first.MaxKeys <= 0 || first.Hits != 0 {
		t.Errorf("at the start: %+v", first)
	}
	r := script(t, `echo function_exists('opcache_get_status') ? "may" : "may not";`)
	for range 10 {
		if got := body(t, run(t, p, r)); got != "may not" {
			t.Fatalf("the script says %q", got)
		}
	}
	waitFor(t, "the script and its hits", func() bool {
		o := p.OPcache()
		return o.Scripts == 1 && o.Keys >= 1 && o.Misses >= 1 && o.Hits >= 5
	})
	before := p.OPcache()
	if err := p.Reload(context.Background()); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the empty one after it", func() bool { return p.OPcache().Scripts == 0 })
	if after := p.OPcache(); after.Hits < before.Hits || after.Misses < before.Misses || after.Used <= 0 {
		t.Errorf("after a start of PHP: %+v, before %+v", after, before)
	}
	body(t, run(t, p, r)) // a worker of it runs
	if err := p.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if after := p.OPcache(); after.Hits < before.Hits || after.Used != 0 || after.Scripts != 0 {
		t.Errorf("after the end: %+v, want only totals", after)
	}
	if strings.Contains(log.String(), "Warning") {
		t.Errorf("PHP complained:\n%s", log.String())
	}
}

func TestWithoutOPcacheThereIsNothing(t *testing.T) {
	t.Parallel()
	p := testPool(t, func(o *Options) { o.INI = []INI{{"opcache.enable", "0"}} })
	if o := p.OPcache(); o != (OPcache{}) {
		t.Errorf("%+v, want nothing", o)
	}
	if got := body(t, run(t, p, script(t, `echo "ran";`))); got != "ran" {
		t.Errorf("then a script says %q", got)
	}
}

func TestOPcacheTotalsGoOnWhenTheyBeginAnew(t *testing.T) {
	var w opcacheWatch
	var got []uint64
	for _, hits := range []uint64{5, 8, 8, 2, 3, 0, 1} {
		w.learn(OPcache{Hits: hits, Used: int64(hits)})
		got = append(got, w.last.Hits)
		if w.last.Used != int64(hits) {
			t.Errorf("used is %d, want %d", w.last.Used, hits)
		}
	}
	if want := []uint64{5, 8, 8, 10, 11, 11, 12}; !slices.Equal(got, want) {
		t.Errorf("hits are %v, want %v", got, want)
	}
}

func FuzzDecodeOPcache(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 120))
	f.Add([]byte(strings.Repeat("\xff", 120)))
	f.Fuzz(func(t *testing.T, text []byte) {
		if o := decodeOPcache(text); len(text) != 120 && o != (OPcache{}) {
			t.Errorf("%d bytes are %+v", len(text), o)
		}
	})
}
