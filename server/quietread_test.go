package server

import (
	"testing"
	"testing/synctest"
	"time"
)

func newQuietRead() *quietRead { return &quietRead{ended: make(chan struct{}, 1)} }

func TestQuietReadBeginsWhenTheRequestLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, w := newQuietRead(), newWaves()
		for range 5 {
			start := time.Now()
			if !q.wait(w) {
				t.Fatal("ended by itself")
			}
			if d := time.Since(start); d < quietTime || d > 2*quietTime {
				t.Errorf("waited %v, want %v to twice as long", d, quietTime)
			}
			time.Sleep(quietTime / 3)
		}
		time.Sleep(10 * quietTime)
		if w.rolls.Load() {
			t.Error("the waves go on though nobody waits")
		}
		if !q.wait(w) {
			t.Error("ended by itself after a pause")
		}
	})
}

func TestQuietReadEndsWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, w := newQuietRead(), newWaves()
		for range 3 {
			done := make(chan bool)
			go func() { done <- q.wait(w) }()
			synctest.Wait()
			start := time.Now()
			if q.end() {
				t.Error("end wants the descriptor to know, though nobody reads it")
			}
			if <-done || time.Since(start) != 0 {
				t.Errorf("read on for %v after the end", time.Since(start))
			}
			if q.wait(w) || q.enter() {
				t.Error("reads after the end")
			}
			q.leave()
			q.begin()
		}
		if !q.enter() || !q.end() {
			t.Error("end leaves alone what reads the descriptor")
		}
	})
}
