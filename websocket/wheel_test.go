package websocket

import (
	"testing"
	"testing/synctest"
	"time"
)

// Each connection is called at its time, whether that is in this turn of the wheel
// or in a later one, and not after remove.
func TestWheelKeepsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, idle := range []time.Duration{
			wheelTick, 35 * time.Millisecond, time.Second, wheelSlots * wheelTick, wheelSlots*wheelTick + wheelTick, 10 * time.Minute,
		} {
			o := DefaultOptions()
			o.PingInterval, o.IdleTimeout = 0, idle
			cl, _, _ := piped(t, o, func(*Conn) handler { return ignore })
			start := time.Now()
			cl.want(opClose, "1001 ")
			late := time.Since(start) - idle
			if late < 0 || late >= wheelTick {
				t.Errorf("a connection that may idle for %v was closed %v late", idle, late)
			}
			cl.Close()
		}
	})
}

func TestWheelServesManyAndForgetsTheRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t)
		o := DefaultOptions()
		o.PingInterval = 0
		var conns []*Conn
		for i := range 3000 {
			c := l.New(&o)
			c.line = deadLine{}
			c.expiry = int64(time.Duration(1+i%700) * 13 * time.Millisecond)
			c.mu.Lock()
			c.watchLocked(0)
			c.mu.Unlock()
			conns = append(conns, c)
		}
		for _, c := range conns[:1000] {
			l.wheel.remove(c)
		}
		time.Sleep(701 * 13 * time.Millisecond)
		synctest.Wait()
		for i, c := range conns {
			if cut := c.Closing(); cut != (i >= 1000) {
				t.Fatalf("connection %d is cut: %v", i, cut)
			}
			c.mu.Lock()
			c.gone = true
			c.mu.Unlock()
		}
	})
}
