package phpbridge

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestSlowScriptsAreTraced(t *testing.T) {
	var log syncBuffer
	p := testPool(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.SlowRequest = 20 * time.Millisecond
	})
	r := script(t, `
		class Shop { static function wait() { while (!file_exists($_SERVER['GO'])) { clearstatcache(); usleep(100); } } }
		function buy() { Shop::wait(); }
		buy(); echo "done";`)
	goOn := r.Script + ".go"
	r.Vars = r.Vars.Add("GO", goOn)
	var wg sync.WaitGroup
	wg.Go(func() {
		if got := body(t, run(t, p, r)); got != "done" {
			t.Errorf("body %q", got)
		}
	})
	waitFor(t, "a backtrace", func() bool { return strings.Contains(log.String(), "slow script") })
	touch(t, goOn)
	wg.Wait()
	for _, want := range []string{"Shop::wait() " + r.Script + ":2", "buy() " + r.Script + ":3", "{main} " + r.Script + ":4", "request=test"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}
