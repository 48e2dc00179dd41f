package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// sseOn is for startPlay.
const sseOn = "[server.websocket]\nsse = true\n"

// An sse is a client of Server-Sent Events that reads as WHATWG HTML §9.2 says.
type sse struct {
	t      testing.TB
	url    string
	client *http.Client
	resp   *http.Response
	events chan sseEvent // closed at the end of the stream
	leave  context.CancelFunc

	key, connection string // as the first event says
	resumed         bool
	last            string // the last event ID
}

// An sseEvent is what a page gets.
type sseEvent struct{ kind, data, id string }

// listen opens an event stream. Pairs of header are a name and a value. It ends with
// the test.
func listen(t testing.TB, c *http.Client, url, path string, header ...string) *sse {
	t.Helper()
	s := tryListen(t, c, url, path, header...)
	if s.resp.StatusCode != http.StatusOK || s.resp.Header.Get("Content-Type") != "text/event-stream" || s.resp.Header.Get("Content-Encoding") != "" {
		t.Fatalf("event stream at %s: %s %v", path, s.resp.Status, s.resp.Header)
	}
	s.events = make(chan sseEvent, 4096)
	go s.read()
	hello := s.next()
	if hello.kind != "connection" {
		t.Fatalf("the first event is %q", hello)
	}
	about := fromJSON[struct {
		Connection, Key string
		Resumed         bool
	}](t, hello.data)
	s.connection, s.key, s.resumed = about.Connection, about.Key, about.Resumed
	return s
}

// tryListen returns the answer to a request for an event stream, whatever it is.
func tryListen(t testing.TB, c *http.Client, url, path string, header ...string) *sse {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatalf("event stream at %s: %v", path, err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return &sse{t: t, url: url, client: c, resp: resp, leave: cancel}
}

// listen is for a play over plain HTTP; see events for the path.
func (p *play) listen(connect string, header ...string) *sse {
	p.t.Helper()
	return listen(p.t, http.DefaultClient, p.URL, events(connect, ""), header...)
}

func (s *sse) read() {
	defer close(s.events)
	in := bufio.NewReader(s.resp.Body)
	e, data, id := sseEvent{kind: "message"}, []string(nil), ""
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "\n":
			if e.id, e.data = id, strings.Join(data, "\n"); data != nil {
				s.events <- e
			} else {
				s.events <- sseEvent{"id", "", id} // a page does not see it
			}
			e, data = sseEvent{kind: "message"}, nil
		case name == "event":
			e.kind = value
		case name == "data":
			data = append(data, value)
		case name == "id":
			id = value
		}
	}
}

// next returns the next event that a page sees.
func (s *sse) next() sseEvent {
	s.t.Helper()
	e, ok := s.tryNext()
	if !ok {
		s.t.Fatal("the event stream has ended")
	}
	return e
}

// tryNext is next that reports false at the end of the stream.
func (s *sse) tryNext() (sseEvent, bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		select {
		case e, ok := <-s.events:
			if ok {
				s.last = e.id
			}
			if e.kind != "id" {
				return e, ok
			}
		case <-ctx.Done():
			s.t.Fatal("no event came")
		}
	}
}

// want fails unless the next event is this message.
func (s *sse) want(data string) {
	s.t.Helper()
	if e := s.next(); e.kind != "message" || e.data != data {
		s.t.Fatalf("the next event is %q, want %q", e, data)
	}
}

// wantEnd fails unless the stream ends with this close.
func (s *sse) wantEnd(code int, reason string, retry bool) {
	s.t.Helper()
	want := fmt.Sprintf(`{"code":%d,"reason":%q,"retry":%v}`, code, reason, retry)
	if e := s.next(); e.kind != "close" || e.data != want {
		s.t.Errorf("the last event is %q, want %s", e, want)
	}
	if e, ok := s.tryNext(); ok {
		s.t.Errorf("there is %q behind the last event", e)
	}
}

// mark waits until the client knows how far it has come, and returns that.
func (s *sse) mark() string {
	s.t.Helper()
	for s.last == "" {
		e, ok := <-s.events
		if !ok || e.kind != "id" {
			s.t.Fatalf("%q came before an ID", e)
		}
		s.last = e.id
	}
	return s.last
}

// post sends a message and returns the status and the answer.
func (s *sse) post(body string, header ...string) (*http.Response, string) {
	s.t.Helper()
	return s.ask("POST", body, header...)
}

func (s *sse) ask(method, body string, header ...string) (*http.Response, string) {
	s.t.Helper()
	resp, text, err := s.tryAsk(method, body, header...)
	if err != nil {
		s.t.Fatalf("%s: %v", method, err)
	}
	return resp, text
}

// tryAsk is ask for any goroutine.
func (s *sse) tryAsk(method, body string, header ...string) (*http.Response, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.url+"/any/path", strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("WS-Connection-Key", s.key)
	req.Header.Set("Content-Type", "text/plain")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

// wantRun runs code in a message event and compares its result.
func (s *sse) wantRun(code, want string) {
	s.t.Helper()
	if resp, body := s.post(code); resp.StatusCode != http.StatusNoContent {
		s.t.Fatalf("message: %s %s", resp.Status, body)
	}
	s.want(want)
}
