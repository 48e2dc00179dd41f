package phpbridge

import (
	"testing"
	"time"
)

func TestLineLimitLetsABurstThroughAndTellsWhatItLeftOut(t *testing.T) {
	l := lineLimit{rate: 100}
	now := time.Unix(1e9, 0)
	passed, told, notices := 0, 0, 0
	for range 60_000 { // a minute of a thousand lines a second
		now = now.Add(time.Millisecond)
		ok, leftOut := l.pass(now)
		if ok {
			passed++
		}
		if leftOut > 0 {
			told += leftOut
			notices++
		}
	}
	if passed < 6500 || passed > 7100 {
		t.Errorf("%d lines came through, want 1000 at once and 100 a second", passed)
	}
	if passed+told+l.leftOut != 60_000 {
		t.Errorf("%d came through, %d were told, %d are to be told, of 60000", passed, told, l.leftOut)
	}
	if notices < 30 || notices > 70 {
		t.Errorf("%d notices in a minute, want about one a second", notices)
	}
}

func TestLineLimitLeavesThoseAloneWhoKeepToIt(t *testing.T) {
	l := lineLimit{rate: 10}
	now := time.Unix(1e9, 0)
	for i := range 1000 {
		now = now.Add(100 * time.Millisecond)
		if ok, leftOut := l.pass(now); !ok || leftOut != 0 {
			t.Fatalf("line %d: %v, %d", i, ok, leftOut)
		}
	}
}

func TestNoLineLimit(t *testing.T) {
	var l lineLimit
	for range 100_000 {
		if ok, _ := l.pass(time.Time{}); !ok {
			t.Fatal("a line was left out")
		}
	}
}
