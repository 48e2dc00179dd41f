package server

import (
	"runtime/debug"
	"sync"
	"time"
)

const (
	// crowd is how many sockets that came or went leave garbage worth a
	// collection of its own.
	crowd = 1000
	// calmAfter is how long nobody must have come or gone before it.
	calmAfter = 2 * time.Second
)

// A calm gives the memory back that a crowd of sockets needed to come or to go.
// Go would keep as much again as is in use, and return it over minutes.
type calm struct {
	free func() // debug.FreeOSMemory, but for tests

	mu    sync.Mutex // guards the following
	moved int        // since the last time
	timer *time.Timer
}

func newCalm() *calm { return &calm{free: debug.FreeOSMemory} }

// move counts a socket that came or went.
func (c *calm) move() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.moved++; c.moved < crowd {
		return
	}
	if c.timer == nil {
		c.timer = time.AfterFunc(calmAfter, c.tidy)
		return
	}
	c.timer.Reset(calmAfter)
}

func (c *calm) tidy() {
	c.mu.Lock()
	c.moved = 0
	c.mu.Unlock()
	c.free()
}
