package phpbridge

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

func TestSpinnerStopsWhenItMisses(t *testing.T) {
	s := &spinner{}
	if !s.worthIt() {
		t.Fatal("a new spinner does not try")
	}
	for range 100 {
		s.hit()
	}
	misses := 0
	for s.worthIt() {
		s.miss()
		misses++
	}
	if want := spinBest/spinMiss + 1; misses != want {
		t.Errorf("tried %d times in vain after many hits, want %d", misses, want)
	}
	pause := 1 // the look that ended the loop
	for !s.worthIt() {
		pause++
	}
	if pause != spinPause-1 {
		t.Errorf("paused for %d requests, want %d", pause, spinPause-1)
	}
	s.miss()
	if s.worthIt() {
		t.Error("a miss after the pause is no reason for another")
	}
}

func TestSpinnerIsOffWithOneProcessor(t *testing.T) {
	if s := (&spinner{off: true}); s.worthIt() {
		t.Error("spins on the only processor, which the worker needs")
	}
}

func TestARequestIsTheOnlyOneAfterManyThatWere(t *testing.T) {
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers = 2, 2 })
	lonely := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.lonely
	}
	for range 2 * lonelyAfter {
		run(t, p, script(t, `echo 1;`))
	}
	if n := lonely(); n != lonelyAfter {
		t.Errorf("after requests that came one by one: %d, want %d", n, lonelyAfter)
	}
	outer := script(t, `ephpm_ws_count();`)
	outer.Host = hostFunc(func(c *Call) {
		run(t, p, script(t, `echo 1;`))
		c.ReturnInt(int64(lonely()))
	})
	run(t, p, outer)
	if n := lonely(); n != 0 {
		t.Errorf("after one that came while another ran: %d, want 0", n)
	}
}

// A worker that says that it looks for work is not woken. If it died meanwhile,
// the work is for others.
func TestDeadWorkerLooksForNothing(t *testing.T) {
	p := testPool(t, func(o *Options) { o.MinWorkers, o.MaxWorkers = 2, 2 })
	file := filepath.Join(t.TempDir(), "pid.php")
	if err := os.WriteFile(file, []byte("<?php exec('kill -9 ' . getmypid());"), 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range p.slotCount {
		atomic.OrUint64(u64(&p.memory.pool.lookers[i/64]), 1<<(i%64))
	}
	for range 4 { // more than there are workers
		_, err := p.Serve(t.Context(), httptest.NewRecorder(), &Request{Script: file, Vars: Vars{}.Add("SCRIPT_FILENAME", file)})
		if err == nil {
			t.Error("no worker died")
		}
	}
}
