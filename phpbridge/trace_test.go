package phpbridge

import (
	"fmt"
	"log/slog"
	"slices"
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
	// On a busy machine the time may be over before the script is there.
	for i := 1; i <= 100 && !strings.Contains(log.String(), "Shop::wait() "); i++ {
		r := *r
		goOn := fmt.Sprint(r.Script, ".go", i)
		r.Vars = slices.Clone(r.Vars).Add("GO", goOn)
		var wg sync.WaitGroup
		wg.Go(func() {
			if got := body(t, run(t, p, &r)); got != "done" {
				t.Errorf("body %q", got)
			}
		})
		waitFor(t, "a backtrace", func() bool { return strings.Count(log.String(), "slow script") == i })
		touch(t, goOn)
		wg.Wait()
	}
	for _, want := range []string{"Shop::wait() " + r.Script + ":2", "buy() " + r.Script + ":3", "{main} " + r.Script + ":4", "request=test"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}
