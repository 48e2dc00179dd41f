package server

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ephpm/eventstream"
)

// A visitor is a client that polls, loses answers and connections, and comes back.
type visitor struct {
	b        *bench
	h        *host
	channels []string
	rows     *rows

	e      *eventStream
	cursor uint64
	last   string // Last-Event-ID
	got    map[string][]string
	// exact says that last is behind all that was got. It is not while too many
	// broadcasts overtake one another.
	exact    bool
	position string // of last

	doubled, resumed, fresh int
}

// open connects, and joins its channels in connect. history is how much of the past
// a client gets that does not come back.
func (v *visitor) open(history int) {
	s := v.b.s
	newest, _ := s.histories.newest()
	v.e = s.newEventStream(newResume(v.last, s.streams.conn.Era, newest))
	v.e.c = &socket{site: s, conn: v.e, transport: overPoll, script: "/site/websocket.php"}
	if no := s.admit(v.e.c, &peer{}); no != nil {
		v.b.t.Error(no.text)
		return
	}
	for _, channel := range v.channels {
		if ok, err := v.h.subscribe(v.e.c.id, channel, [][]byte{[]byte("history"), fmt.Append(nil, history)}); !ok || err != nil {
			v.b.t.Errorf("subscribe = %v, %v", ok, err)
		}
		runtime.Gosched()
	}
	back := v.last != ""
	complete := s.begin(v.e)
	v.cursor = 0
	before := v.got
	v.got = map[string][]string{}
	if !back || !complete {
		v.fresh++
		v.check(before)
		v.poll(true)
		return
	}
	v.resumed++
	exact := v.exact
	v.poll(true) // all that it missed is there already
	missed := v.got
	v.got = before
	for channel, texts := range missed {
		v.goOn(channel, texts, exact)
	}
}

// goOn adds what came first after coming back. If the mark was not exact, it may begin
// with the end of what is there already.
func (v *visitor) goOn(channel string, texts []string, exact bool) {
	have := v.got[channel]
	if i := slices.Index(have, texts[0]); i >= 0 {
		n := min(len(have)-i, len(texts))
		if exact || !slices.Equal(have[i:i+n], texts[:n]) || i+n < len(have) {
			v.b.t.Errorf("%s: a visitor that has %v got %v again", channel, have[i:], texts)
		}
		v.doubled += n
		texts = texts[n:]
	}
	v.got[channel] = append(have, texts...)
}

// poll asks once. An answer that is lost is as if it never was.
func (v *visitor) poll(arrives bool) {
	a, err := v.e.Poll(v.b.t.Context(), v.cursor, 0)
	if err != nil {
		v.b.t.Errorf("poll: %v", err)
		return
	}
	if !arrives {
		return
	}
	text, _ := json.Marshal(a)
	var answer struct{ Frames []struct{ Data string } }
	if err := json.Unmarshal(text, &answer); err != nil {
		v.b.t.Error(err)
	}
	for _, f := range answer.Frames {
		channel, _, _ := strings.Cut(f.Data, ":")
		v.got[channel] = append(v.got[channel], f.Data)
	}
	m, _ := eventstream.ParseMark(a.LastEventID)
	v.last, v.cursor = a.LastEventID, m.Cursor
	m.Polled, m.Cursor = false, 0
	if len(answer.Frames) > 0 {
		v.exact = m.String() != v.position && m.Seq != 0 && len(m.Beyond) < eventstream.MaxBeyond
	}
	v.position = m.String()
}

// check keeps what was got in a row, for the comparison in the end.
func (v *visitor) check(got map[string][]string) {
	v.rows.mu.Lock()
	defer v.rows.mu.Unlock()
	for channel, texts := range got {
		if len(texts) > 0 {
			v.rows.all = append(v.rows.all, row{channel, slices.Clone(texts)})
		}
	}
}

// A row is what somebody got of a channel without a gap.
type row struct {
	channel string
	texts   []string
}

type rows struct {
	mu  sync.Mutex // guards the following
	all []row
}

// Whatever is broadcast, joined, lost and resumed at the same time: what each client
// has of a channel is a part of the channel's order without a gap, and nothing of it
// comes twice, neither between the past and the present nor between two connections.
// When all have left nothing is kept of them.
func TestSeamOfPastAndPresent(t *testing.T) {
	const broadcasters, visitors, messages = 2, 6, 250
	channels := []string{"a", "b", "c"}
	b := newBench(t, nil, func(o *socketOptions) {
		o.historyMemory, o.presenceMemory = 64<<20, 1<<20
		o.streams = &streamOptions{history: maxHistory, conn: eventstream.Options{QueueFrames: 1000, PollIdle: time.Hour}}
		o.streamLoop = eventstream.NewLoop()
	})
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	var sending, visiting sync.WaitGroup
	found, all := new(rows), make([]*visitor, visitors+1)
	for i := range all {
		all[i] = &visitor{b: b, h: b.page(), channels: channels, rows: found, got: map[string][]string{}}
	}
	witness := all[visitors] // is there from the beginning to the end
	witness.open(0)
	var over atomic.Bool
	for i := range len(channels) * broadcasters {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		h, channel := b.page(), channels[i%len(channels)]
		sending.Go(func() {
			for n := range messages {
				if _, err := h.broadcast(t.Context(), channel, fmt.Appendf(nil, "%s:%d:%d", channel, i, n), false, [16]byte{}); err != nil {
					t.Error(err)
				}
				for range r.IntN(20) {
					runtime.Gosched()
				}
			}
		})
	}
	for i, v := range all[:visitors] {
		r := rand.New(rand.NewPCG(seed, uint64(100+i)))
		v.channels = channels[:1+i%len(channels)]
		visiting.Go(func() {
			v.open(r.IntN(20))
			for !over.Load() && !t.Failed() {
				switch n := r.IntN(20); {
				case n < 16:
					v.poll(r.IntN(5) > 0)
				case n < 19: // the connection is lost
					v.e.Cut("gone")
					v.open(0)
				default: // the page is loaded anew
					v.e.Cut("gone")
					v.last, v.position = "", ""
					v.open(r.IntN(20))
				}
				runtime.Gosched()
			}
			v.poll(true)
			v.check(v.got)
			v.e.Cut("gone")
		})
	}
	stop := make(chan struct{})
	go func() { // the witness reads meanwhile
		defer close(stop)
		for !over.Load() {
			witness.poll(true)
			time.Sleep(time.Millisecond)
		}
		witness.poll(true)
	}()
	sending.Wait()
	over.Store(true)
	visiting.Wait()
	<-stop
	witness.e.Cut("gone")

	for _, channel := range channels {
		if got := len(witness.got[channel]); got != broadcasters*messages {
			t.Errorf("the witness got %d messages of %s, want %d", got, channel, broadcasters*messages)
		}
	}
	compared := 0
	for _, r := range found.all {
		order := witness.got[r.channel]
		at := slices.Index(order, r.texts[0])
		if at < 0 || at+len(r.texts) > len(order) || !slices.Equal(order[at:at+len(r.texts)], r.texts) {
			t.Errorf("%s: somebody got %v, which is no part of %v", r.channel, r.texts, order)
		}
		compared += len(r.texts)
	}
	resumed, doubled := 0, 0
	for _, v := range all[:visitors] {
		resumed, doubled = resumed+v.resumed, doubled+v.doubled
	}
	t.Logf("%d messages compared, %d resumed, %d came twice where the mark was not exact", compared, resumed, doubled)
	if compared == 0 || resumed == 0 {
		t.Errorf("%d messages compared, %d visitors came back", compared, resumed)
	}
	b.s.histories.mu.Lock()
	defer b.s.histories.mu.Unlock()
	for channel, p := range b.s.histories.of {
		if p.users != 0 || len(p.messages) != maxHistory {
			t.Errorf("%s has %d users and remembers %d messages, want none and %d", channel, p.users, len(p.messages), maxHistory)
		}
	}
	if len(b.s.histories.way) != 0 {
		t.Errorf("%v are still under way", b.s.histories.way)
	}
}
