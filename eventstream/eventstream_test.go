package eventstream

import (
	"bufio"
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A handler collects what a Conn says of its end.
type handler struct {
	mu     sync.Mutex
	closed []Closed
	refuse int // calls of Closing
}

func (h *handler) Closing() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refuse++
}

func (h *handler) Closed(c Closed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = append(h.closed, c)
}

func (h *handler) ends() []Closed {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// wantEnd fails unless the end was told once, so.
func (h *handler) wantEnd(t *testing.T, code int, reason, cause string) {
	t.Helper()
	ends := h.ends()
	if len(ends) != 1 || ends[0].Ending != (Ending{code, reason, cause}) {
		t.Errorf("ends are %+v, want one: %d %q %s", ends, code, reason, cause)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse != 1 {
		t.Errorf("Closing was called %d times, want once", h.refuse)
	}
}

// A response is a Writer that a test reads.
type response struct {
	mu    sync.Mutex
	b     bytes.Buffer
	err   error         // of the next Write
	block chan struct{} // Write waits for it; nil: it does not
}

func (r *response) Write(p []byte) (int, error) {
	r.mu.Lock()
	block := r.block
	r.mu.Unlock()
	if block != nil {
		<-block
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return 0, r.err
	}
	return r.b.Write(p)
}

func (r *response) FlushError() error { return nil }

func (r *response) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

// A stream is a Conn that is served.
type stream struct {
	*Conn
	handler
	out   response
	leave context.CancelFunc // as the client does
	done  chan struct{}      // Serve has returned
}

// newConn returns a Conn of a Loop for which nothing runs.
func newConn(o *Options) *Conn { return NewLoop().New(o) }

func options() *Options {
	return &Options{QueueFrames: 4, QueueBytes: 1 << 20, WriteTimeout: 10 * time.Second, PollIdle: 30 * time.Second, Era: 0xe7a}
}

// serve opens and serves a connection. Run it in a synctest bubble.
func serve(t *testing.T, c *Conn, seq uint64) *stream {
	s := &stream{Conn: c, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	s.leave = cancel
	c.Open(&s.handler, false, seq)
	go func() {
		defer close(s.done)
		c.Serve(ctx, &s.out, Hello{Connection: "id", Key: "key"})
	}()
	synctest.Wait()
	return s
}

// An event is what a client makes of a stream.
type event struct{ kind, data, id string }

// parse reads a stream as WHATWG HTML §9.2.6 says. An event without data is there when
// it changes the ID.
func parse(t *testing.T, stream string) (events []event) {
	t.Helper()
	last := ""
	e, data, seen := event{kind: "message"}, []string(nil), false
	in := bufio.NewScanner(strings.NewReader(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(stream)))
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		name, value, _ := strings.Cut(in.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case in.Text() == "":
			if e.id = last; data != nil || seen {
				e.data = strings.Join(data, "\n")
				events = append(events, e)
			}
			e, data, seen = event{kind: "message"}, nil, false
		case name == "event":
			e.kind = value
		case name == "data":
			data = append(data, value)
		case name == "id":
			last, seen = value, true
		case name == "" || name == "retry":
		default:
			t.Errorf("the stream has %q", in.Text())
		}
	}
	if data != nil {
		t.Errorf("the stream ends within an event")
	}
	return events
}

// wantEvents compares what came after the hello.
func (s *stream) wantEvents(t *testing.T, want ...event) {
	t.Helper()
	synctest.Wait()
	got := parse(t, s.out.String())
	if len(got) == 0 || got[0].kind != "connection" {
		t.Fatalf("the stream begins with %v, want the connection", got)
	}
	if got = got[1:]; len(got) != len(want) {
		t.Fatalf("events are %.500q, want %.500q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("event %d is %.500q, want %.500q", i, got[i], want[i])
		}
	}
}

func text(s string, seq uint64) *Frame { return NewFrame([]byte(s), false, Stamp{seq, seq}) }
