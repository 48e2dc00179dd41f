package server

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"ephpm/kv"
	"ephpm/phpbridge"
)

// sessionNames are how monitors see what PHP's sessions do.
var sessionNames = map[phpbridge.Func]string{
	phpbridge.SessionOpen: "session_open", phpbridge.SessionWrite: "session_write", phpbridge.SessionTouch: "session_touch",
	phpbridge.SessionClose: "session_close", phpbridge.SessionDestroy: "session_destroy", phpbridge.SessionExists: "session_exists",
}

// report shows a call to the monitors of the store.
func (h *kvHost) report(c *phpbridge.Call) {
	if !h.store.Monitored() {
		return
	}
	name := strings.TrimPrefix(kvNames[c.Func()], "ephpm_kv_")
	if name == "" {
		name = sessionNames[c.Func()]
	}
	if name != "" { // else the bridge's own
		h.store.Report("php", name, c.Texts()...)
	}
}

// kvMonitors are those of callers at the control socket.
type kvMonitors struct {
	mu  sync.Mutex            // guards the following
	all map[int64]*kv.Monitor // by a number that nobody can guess
}

// add takes a monitor in and returns its number, from 1.
func (m *kvMonitors) add(monitor *kv.Monitor) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = make(map[int64]*kv.Monitor)
	}
	number := rand.Int64N(math.MaxInt64) + 1
	m.all[number] = monitor
	return number
}

func (m *kvMonitors) find(number int64) *kv.Monitor {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[number]
}

func (m *kvMonitors) remove(number int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[number].Close()
	delete(m.all, number)
}

const (
	// openMonitor is what a caller has to end, see phpbridge.Call.AtEnd.
	openMonitor = "monitor"
	// monitorWait is how long a call waits for a line: nobody notices before its end
	// that the caller has gone.
	monitorWait = time.Second
)

// monitor answers with the lines that wait for a monitor, without a number for a new
// one, which is the caller's until it ends.
func (h *kvHost) monitor(ctx context.Context, c *phpbridge.Call) {
	number := c.Int(0)
	m := h.monitors.find(number)
	var lines [][]byte
	lost := 0
	if m != nil {
		ctx, cancel := context.WithTimeout(ctx, monitorWait)
		defer cancel()
		lines, lost = m.Next(ctx)
	} else {
		c.EndNow(openMonitor)
		number = h.monitors.add(h.store.NewMonitor(h.site))
		if end := func() { h.monitors.remove(number) }; !c.AtEnd(openMonitor, end) {
			end()
		}
	}
	c.ReturnArray([]phpbridge.Entry{
		{Key: []byte("monitor"), Value: number},
		{Key: []byte("lines"), Value: lines},
		{Key: []byte("lost"), Value: int64(lost)},
	})
}

// Monitor calls each with a line for every command of the site's store from now on,
// some at a time and maybe none, and with how many were lost behind these because
// they were not taken fast enough. It ends with the first error of each or the end of
// the connection.
func (c *KVClient) Monitor(ctx context.Context, each func(lines [][]byte, lost int64) error) error {
	for number := int64(0); ; {
		answer, err := kvCall[[]phpbridge.Entry](ctx, c, phpbridge.KVMonitor, number)
		if err != nil {
			return err
		}
		var entries []phpbridge.Entry
		var lost int64
		if number, entries, lost, err = monitorAnswer(answer); err != nil {
			return err
		}
		lines := make([][]byte, len(entries))
		for i, e := range entries {
			var ok bool
			if lines[i], ok = e.Value.([]byte); !ok {
				return errKVAnswer
			}
		}
		if err := each(lines, lost); err != nil {
			return err
		}
	}
}

// monitorAnswer takes the answer to KVMonitor apart.
func monitorAnswer(answer []phpbridge.Entry) (number int64, lines []phpbridge.Entry, lost int64, err error) {
	var gotNumber, gotLines, gotLost bool
	for _, e := range answer {
		switch {
		case bytes.Equal(e.Key, []byte("monitor")):
			number, gotNumber = e.Value.(int64)
		case bytes.Equal(e.Key, []byte("lines")):
			lines, gotLines = e.Value.([]phpbridge.Entry)
		case bytes.Equal(e.Key, []byte("lost")):
			lost, gotLost = e.Value.(int64)
		}
	}
	if !gotNumber || !gotLines || !gotLost {
		return 0, nil, 0, errKVAnswer
	}
	return number, lines, lost, nil
}
