package eventstream

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ephpm/descriptor"
)

// patience is for what comes at once unless the machine is busy.
const patience = time.Minute

// A site is a server whose connections are parked.
type site struct {
	*httptest.Server
	loop   *Loop
	opened chan *parkedStream
}

// A parkedStream is the server's side of one.
type parkedStream struct {
	*Conn
	handler
	err error // of Park
}

func startSite(t *testing.T, o *Options, secure bool) *site {
	t.Helper()
	s := &site{loop: NewLoop(), opened: make(chan *parkedStream, 1000)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &parkedStream{Conn: s.loop.New(o)}
		p.Open(&p.handler, false, 7)
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusOK)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		p.err = p.Park(conn, r.ProtoAtLeast(1, 1), Hello{Connection: "id"})
		s.opened <- p
	}))
	if secure {
		s.Listener = descriptor.Parkable(s.Listener)
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(func() {
		s.loop.Close()
		s.Close()
	})
	return s
}

// open returns the client's side, whose request has the protocol version, and the
// server's.
func (s *site) open(t *testing.T, version string) (net.Conn, *parkedStream) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if s.TLS != nil {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "GET / %s\r\nHost: x\r\n\r\n", version)
	p := <-s.opened
	if p.err != nil {
		t.Fatal(p.err)
	}
	t.Cleanup(func() { p.Cut("test") })
	return conn, p
}

// body returns the body of the response.
func body(t *testing.T, conn net.Conn) io.Reader {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Body
}

// waitEnd waits until the end was told, and fails unless it is this one, told once.
func (p *parkedStream) waitEnd(t *testing.T, code int, reason, cause string) {
	t.Helper()
	for end := time.Now().Add(patience); len(p.ends()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no end was told, want %d %q %s", code, reason, cause)
		}
	}
	p.wantEnd(t, code, reason, cause)
}

// versions runs f over plain HTTP/1.1 and 1.0, and over TLS.
func versions(t *testing.T, o *Options, f func(t *testing.T, conn net.Conn, p *parkedStream)) {
	for _, v := range []struct {
		name, version string
		secure        bool
	}{{"plain", "HTTP/1.1", false}, {"old", "HTTP/1.0", false}, {"TLS", "HTTP/1.1", true}} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			conn, p := startSite(t, o, v.secure).open(t, v.version)
			f(t, conn, p)
		})
	}
}

func TestParkedStreamHasWhatIsSent(t *testing.T) {
	large := strings.Repeat("0123456789", 100_000)
	o := options()
	o.QueueFrames, o.QueueBytes = 1000, 0
	versions(t, o, func(t *testing.T, conn net.Conn, p *parkedStream) {
		want := []event{{"message", "", "e7a-7"}}
		seq := uint64(7)
		for i := range 200 {
			data := strings.Repeat("x", i*97)
			if i == 50 || i == 51 {
				data = large
			}
			seq++
			if !p.TrySend(text(data, seq)) {
				t.Fatalf("frame %d found no room", i)
			}
			want = append(want, event{"message", data, fmt.Sprintf("e7a-%d", seq)})
		}
		p.Close(4000, "enough", "server")
		got, err := io.ReadAll(body(t, conn))
		if err != nil {
			t.Fatalf("%d bytes came, then %v", len(got), err)
		}
		want = append(want, event{"close", `{"code":4000,"reason":"enough","retry":false}`, Over})
		events := parse(t, string(got))
		if len(events) != 1+len(want) {
			t.Fatalf("%d events came, want %d", len(events), 1+len(want))
		}
		for i := range want {
			if events[1+i] != want[i] {
				t.Fatalf("event %d is %.100q, want %.100q", i, events[1+i], want[i])
			}
		}
		p.waitEnd(t, 4000, "enough", "server")
		if e := p.ends()[0]; e.FramesOut != 200 {
			t.Errorf("%d frames were counted, want 200", e.FramesOut)
		}
	})
}

func TestParkedClientLeaves(t *testing.T) {
	versions(t, options(), func(t *testing.T, conn net.Conn, p *parkedStream) {
		_ = conn.Close()
		p.waitEnd(t, 1006, "", CauseGone)
		if p.TrySend(text("x", 0)) {
			t.Error("TrySend to a client that has gone = true")
		}
	})
}

func TestParkedClientIsPinged(t *testing.T) {
	o := options()
	o.PingInterval = 20 * time.Millisecond
	versions(t, o, func(t *testing.T, conn net.Conn, p *parkedStream) {
		in, pings := bufio.NewReader(body(t, conn)), 0
		for pings < 3 {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatalf("%v after %d pings", err, pings)
			}
			if line == ":\n" {
				pings++
			}
		}
	})
}

// A client that takes nothing is cut after WriteTimeout, whether something is still
// queued or it was already told to go.
func TestParkedClientThatStallsIsCut(t *testing.T) {
	o := options()
	o.WriteTimeout = 200 * time.Millisecond
	versions(t, o, func(t *testing.T, _ net.Conn, p *parkedStream) {
		frame := NewFrame(make([]byte, 1<<20), true, Stamp{})
		for !p.Conn.Closing() {
			p.TrySend(frame)
			time.Sleep(time.Millisecond)
		}
		p.waitEnd(t, 1006, "", CauseSlow)
	})
	versions(t, o, func(t *testing.T, _ net.Conn, p *parkedStream) {
		frame := NewFrame(make([]byte, 1<<20), true, Stamp{})
		for full := 0; full < 50; { // the kernel takes no more
			if full++; p.TrySend(frame) {
				full = 0
			}
			time.Sleep(time.Millisecond)
		}
		if !p.Kill(1013, "", CauseSlow) {
			t.Skip("it was cut before: the machine is busy")
		}
		p.waitEnd(t, 1013, "", CauseSlow)
	})
}

// The kernel ends what a client does not acknowledge. A vanished machine is not to be
// had here; one that takes nothing is the same to it.
func TestParkedClientThatAcknowledgesNothingIsGone(t *testing.T) {
	o := options()
	o.QueueFrames, o.WriteTimeout, o.AckTimeout = 1000, 0, 300*time.Millisecond
	versions(t, o, func(t *testing.T, _ net.Conn, p *parkedStream) {
		frame := NewFrame(make([]byte, 100<<10), true, Stamp{})
		for range 100 {
			p.TrySend(frame)
		}
		p.waitEnd(t, 1006, "", CauseGone)
	})
}

// What a client that reads slowly gets is whole, and a Kill is the next that it reads
// behind what is on its way.
func TestParkedClientThatReadsLate(t *testing.T) {
	versions(t, options(), func(t *testing.T, conn net.Conn, p *parkedStream) {
		frame := NewFrame(make([]byte, 1<<20), true, Stamp{})
		sent := 0
		for full := 0; full < 50; {
			if full++; p.TrySend(frame) {
				full = 0
				sent++
			}
			time.Sleep(time.Millisecond)
		}
		p.Kill(1013, "slow", CauseSlow)
		got, err := io.ReadAll(body(t, conn))
		if err != nil {
			t.Fatal(err)
		}
		events := parse(t, string(got))
		last := events[len(events)-1]
		if last.kind != "close" || !strings.HasPrefix(last.data, `{"code":1013,`) {
			t.Errorf("the last event is %.100q", last)
		}
		if frames := len(events) - 3; frames > sent || frames < 1 { // hello, the ID, the end
			t.Errorf("%d frames came of %d", frames, sent)
		}
		p.waitEnd(t, 1013, "slow", CauseSlow)
	})
}

func TestParkedClientThatTalksIsLeftAlone(t *testing.T) {
	versions(t, options(), func(t *testing.T, conn net.Conn, p *parkedStream) {
		fmt.Fprint(conn, "GET /again HTTP/1.1\r\nHost: x\r\n\r\n")
		p.TrySend(text("x", 0))
		p.Close(1000, "", "server")
		got, err := io.ReadAll(body(t, conn))
		if err != nil || !strings.Contains(string(got), "data: x\n\n") {
			t.Errorf("got %q, %v", got, err)
		}
		p.waitEnd(t, 1000, "", "server")
	})
}

func TestWhatHasNoDescriptorIsNotParked(t *testing.T) {
	l := NewLoop()
	p := &parkedStream{Conn: l.New(options())}
	p.Open(&p.handler, false, 0)
	one, other := net.Pipe()
	if err := p.Park(one, true, Hello{}); !errors.Is(err, errNoDescriptor) {
		t.Errorf("Park = %v", err)
	}
	if _, err := other.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the client reads %v, want EOF", err)
	}
	p.wantEnd(t, 1006, "", CauseGone)
	l.Close()
}

// Many at once, with frames for all, some of whom leave or are cut: who stays gets all,
// in order.
func TestManyParkedStreams(t *testing.T) {
	const streams, frames = 60, 200
	s := startSite(t, &Options{QueueFrames: 10_000, WriteTimeout: patience, PollIdle: time.Second, PingInterval: 10 * time.Millisecond}, false)
	var conns []net.Conn
	var all []*parkedStream
	for range streams {
		conn, p := s.open(t, "HTTP/1.1")
		conns, all = append(conns, conn), append(all, p)
	}
	var complete atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, streams)
	for i, conn := range conns {
		in := body(t, conn)
		go func() {
			if i%3 == 1 {
				<-ctx.Done()
				done <- conn.Close()
				return
			}
			got, err := io.ReadAll(in)
			n := 0
			end := bytes.LastIndex(got, []byte("\n\n"))
			whole := string(got[:max(0, end)]) + "\n\n" // of one that was cut, maybe at once
			for _, e := range parse(t, whole) {
				if e.kind == "message" && e.data != "" {
					if e.data != fmt.Sprint(n) {
						err = fmt.Errorf("stream %d got %q as frame %d", i, e.data, n)
					}
					n++
				}
			}
			if n == frames && err == nil {
				complete.Add(1)
			}
			if i%3 == 2 {
				err = nil // it was cut at some moment
			}
			done <- err
		}()
	}
	for i := range frames {
		f := text(fmt.Sprint(i), 0)
		for _, p := range all {
			p.TrySend(f)
		}
		if i == frames/2 {
			cancel()
			for j := 2; j < streams; j += 3 {
				all[j].Cut("test")
			}
		}
	}
	for _, p := range all {
		p.Close(1000, "", "server")
	}
	for range streams {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := complete.Load(); got < streams/3 {
		t.Errorf("%d streams got all, want at least %d", got, streams/3)
	}
	for i, p := range all {
		code, cause := 1000, "server"
		switch i % 3 {
		case 1:
			continue // as it was noticed
		case 2:
			code, cause = 1006, "test"
		}
		p.waitEnd(t, code, "", cause)
	}
}
