package websocket

import (
	"testing"
	"testing/synctest"
	"time"

	"ephpm/wheel"
)

// Whether that is in this turn of the wheel or in a later one.
func TestIdleConnectionsEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, idle := range []time.Duration{
			wheel.Tick, 35 * time.Millisecond, time.Second, wheel.Slots * wheel.Tick, wheel.Slots*wheel.Tick + wheel.Tick, 10 * time.Minute,
		} {
			o := DefaultOptions()
			o.PingInterval, o.IdleTimeout = 0, idle
			cl, _, _ := piped(t, o, func(*Conn) handler { return ignore })
			start := time.Now()
			cl.want(opClose, "1001 ")
			late := time.Since(start) - idle
			if late < 0 || late >= wheel.Tick {
				t.Errorf("a connection that may idle for %v was closed %v late", idle, late)
			}
			cl.Close()
		}
	})
}
