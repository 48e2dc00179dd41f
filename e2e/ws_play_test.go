package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A play is a server whose events do what the test says in PHP; see
// testdata/play/websocket.php.
type play struct {
	*app
	notes string // the file that trail() appends to
}

// startPlay starts a server with metrics and more configuration.
func startPlay(t *testing.T, toml string, args ...string) *play {
	t.Helper()
	notes := filepath.Join(t.TempDir(), "trail")
	return &play{
		app: startApp(t, appOptions{
			Root: "testdata/play",
			TOML: metricsOn + toml,
			Env:  []string{"TRAIL=" + notes},
			Args: args,
		}),
		notes: notes,
	}
}

// events is the path of an upgrade whose connect and disconnect events run the
// given code. Without any, connect accepts and disconnect trails code, reason
// and cause of the close.
func events(connect, disconnect string) string {
	query := url.Values{"connect": {connect}}
	if disconnect != "" {
		query.Set("disconnect", disconnect)
	}
	return "/?" + query.Encode()
}

// join opens a socket; see events.
func (p *play) join(connect, disconnect string) *socket {
	p.t.Helper()
	return p.dial(events(connect, disconnect), nil)
}

// joinUnless is join, as dialWireUnless dials.
func (p *play) joinUnless(busy int, connect, disconnect string) *frames {
	p.t.Helper()
	return p.dialWireUnless(busy, events(connect, disconnect))
}

// holdSocket opens a socket whose handler runs code, with %s for the path of the
// gate that it has reached. Where events may not wait for long, a busy machine may
// refuse some before; so many were closed with 1013.
func (p *play) holdSocket(code string) (f *frames, g *gate, refused int) {
	p.t.Helper()
	busy := func() int {
		n, err := p.metric(`ephpm_ws_event_failures_total{event="message",reason="busy"}`)
		if err != nil {
			p.t.Fatal(err)
		}
		return int(n)
	}
	for refused := busy(); ; refused++ {
		f, g := p.joinUnless(503, "", ""), newGate(p.t)
		f.say(frameText, fmt.Sprintf(code, g.path))
		if g.reached(func() bool { return busy() > refused }) {
			return f, g, refused
		}
		f.wantClose(1013, "")
	}
}

// page runs PHP code in a page and returns its result as JSON.
func (p *play) page(code string) string {
	p.t.Helper()
	resp, body := p.do(p.request("POST", "/page.php", code))
	if resp.StatusCode != 200 {
		p.t.Fatalf("page: %s %s", resp.Status, body)
	}
	return body
}

// trail waits until there are n notes, and returns all.
func (p *play) trail(n int) []string {
	p.t.Helper()
	var lines []string
	err := eventually(func() error {
		text, _ := os.ReadFile(p.notes) // there is none before the first note
		lines = strings.Split(string(text), "\n")
		lines = lines[:len(lines)-1]
		if len(lines) < n {
			return fmt.Errorf("%d notes: %q", len(lines), lines)
		}
		return nil
	})
	if err != nil {
		p.t.Fatalf("want %d notes: %v", n, err)
	}
	return lines
}

// wantTrail waits for notes and compares all of them.
func (p *play) wantTrail(want ...string) {
	p.t.Helper()
	if got := p.trail(len(want)); strings.Join(got, "\n") != strings.Join(want, "\n") {
		p.t.Errorf("notes are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// run runs PHP code in a message event and returns its result as JSON.
func (s *socket) run(code string) string {
	s.t.Helper()
	s.send(code)
	return s.recv()
}

// id is the connection's ID.
func (s *socket) id() string {
	s.t.Helper()
	return fromJSON[string](s.t, s.run(`return $id;`))
}

func fromJSON[T any](t testing.TB, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

// wantRun runs code and compares its result.
func (s *socket) wantRun(code, want string) {
	s.t.Helper()
	if got := s.run(code); got != want {
		s.t.Errorf("%s gave %s, want %s", code, got, want)
	}
}

// wantPage is wantRun in a page.
func (p *play) wantPage(code, want string) {
	p.t.Helper()
	if got := p.page(code); got != want {
		p.t.Errorf("on a page %s gave %s, want %s", code, got, want)
	}
}

// wantGone waits until a process has ended.
func (p *play) wantGone(pid int) {
	p.t.Helper()
	err := eventually(func() error {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("process %d is still there", pid)
		}
		return nil
	})
	if err != nil {
		p.t.Error(err)
	}
}

// wantMetric waits until a series has a value: an answer is counted after the
// client has it.
func (p *play) wantMetric(series string, want float64) {
	p.t.Helper()
	err := eventually(func() error {
		got, err := p.metric(series)
		if err == nil && got != want {
			err = fmt.Errorf("it is %v", got)
		}
		return err
	})
	if err != nil {
		p.t.Errorf("%s is not %v: %v", series, want, err)
	}
}
