package phpbridge

import "time"

// lineBurst is how many times the lines of a second may come at once.
const lineBurst = 10

// A lineLimit lets rate lines a second through, and lineBurst times as many at
// once. When it is used up, it lets nothing through for about a second, so that
// what was left out is told once in that time and not at every line. The zero value
// lets everything through. It is used by one goroutine.
type lineLimit struct {
	rate    int
	full    time.Time // when all may come at once again
	leftOut int       // lines since the last that came through
}

// pass reports whether a line at now comes through, and how many before it did not.
func (l *lineLimit) pass(now time.Time) (ok bool, leftOut int) {
	if l.rate == 0 {
		return true, 0
	}
	every := time.Second / time.Duration(l.rate)
	room := lineBurst * time.Second // how far full may be ahead
	if l.leftOut > 0 {
		room -= time.Second // a second's lines have to be there before it goes on
	}
	if l.full.Before(now) {
		l.full = now
	}
	if l.full.Sub(now)+every > room {
		l.leftOut++
		return false, 0
	}
	l.full = l.full.Add(every)
	leftOut, l.leftOut = l.leftOut, 0
	return true, leftOut
}
