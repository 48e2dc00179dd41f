package e2e

import (
	"fmt"
	"testing"
)

// A client that lost its connection gets what it missed, once and in order, also of
// several channels.
func TestEventStreamGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn)
	const join = `ephpm_ws_subscribe('one'); ephpm_ws_subscribe('two');`
	s := p.listen(join)
	if s.resumed {
		t.Error("a new client has resumed")
	}
	p.wantPage(`return [ephpm_ws_broadcast('one', 'a'), ephpm_ws_broadcast('two', 'b')];`, "[1,1]")
	s.want("a")
	s.want("b")
	last := s.last
	s.leave()
	p.trail(1)
	p.wantPage(`for ($i = 0; $i < 10; $i++) { ephpm_ws_broadcast('one', "one $i"); ephpm_ws_broadcast('two', "two $i"); } return 1;`, "1")

	again := p.listen(join+`ephpm_ws_send('welcome back');`, "Last-Event-ID", last)
	if !again.resumed {
		t.Error("the client has not resumed")
	}
	for _, channel := range []string{"one", "two"} {
		for i := range 10 {
			again.want(fmt.Sprintf("%s %d", channel, i))
		}
	}
	again.want("welcome back")
	p.wantPage(`return ephpm_ws_broadcast('one', 'now');`, "1")
	again.want("now")

	// It had come as far as that, and missed nothing.
	third := p.listen(join+`ephpm_ws_send('first');`, "Last-Event-ID", again.last)
	third.want("first")
	if !third.resumed {
		t.Error("the client has not resumed")
	}
	// A poll goes on from it as well, and by the query.
	polled := p.poll(join, "Last-Event-ID", last)
	if want := 21; len(polled.frames) != want || !polled.resumed {
		t.Errorf("a poll got %d frames, resumed %v, want %d", len(polled.frames), polled.resumed, want)
	}
	p.wantMetric(`ephpm_ws_streams_resumed_total{complete="true"}`, 3)
}

// What connect queues is not an end that a client can come back to before it has all
// of it.
func TestEventStreamThatLostItsBeginningGetsItAgain(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn)
	const join = `ephpm_ws_subscribe('chat', ['history' => 3]); ephpm_ws_send('rules');`
	first := p.listen(join)
	first.want("rules")
	p.wantPage(`for ($i = 0; $i < 5; $i++) ephpm_ws_broadcast('chat', "$i"); return 1;`, "1")
	for i := range 5 {
		first.want(fmt.Sprint(i))
	}
	second := p.listen(join) // gets three of the past
	for _, want := range []string{"2", "3", "4", "rules"} {
		second.want(want)
		if second.last != "" {
			t.Errorf("at %q the ID is %q, want none yet", want, second.last)
		}
	}
	if got := second.mark(); got != first.last {
		t.Errorf("the ID is %q, want that of the last broadcast, %q", got, first.last)
	}
	// The past that it asked for is not sent to who comes back.
	third := p.listen(join, "Last-Event-ID", second.last)
	third.want("rules")
}

func TestEventStreamIsToldThatSomethingIsMissing(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn+"sse_history = 3\n")
	s := p.listen(`ephpm_ws_subscribe('chat');`)
	last := s.mark()
	p.wantPage(`for ($i = 0; $i < 5; $i++) ephpm_ws_broadcast('chat', "$i"); return 1;`, "1")
	again := p.listen(`ephpm_ws_subscribe('chat');`, "Last-Event-ID", last)
	if again.resumed {
		t.Error("the client has resumed, but three of five are remembered")
	}
	for _, want := range []string{"2", "3", "4"} {
		again.want(want)
	}
	for _, other := range []string{"00000000-1", "nonsense", "1"} {
		if p.listen(`ephpm_ws_subscribe('chat');`, "Last-Event-ID", other).resumed {
			t.Errorf("the client has resumed from %q", other)
		}
	}

	off := startPlay(t, sseOn+"sse_history = 0\n")
	s = off.listen(`ephpm_ws_subscribe('chat'); ephpm_ws_send('x');`)
	s.want("x")
	off.wantPage(`return ephpm_ws_broadcast('chat', 'y');`, "1")
	s.want("y")
	if s.last != "" {
		t.Errorf("with sse_history = 0 the ID is %q", s.last)
	}
}
