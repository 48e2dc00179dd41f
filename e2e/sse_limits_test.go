package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

func TestMessagesOfEventStreamsAreLimited(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn+"max_message_size = 1000\nmax_messages_per_sec = 0.001\nmessage_burst = 3\n")
	s := p.listen("")
	for _, test := range []struct {
		body   string
		header []string
		want   int
	}{
		{"// " + strings.Repeat("x", 1000), nil, 413},
		{"\xff", nil, 400},
		{"return 1;", []string{"Content-Encoding", "gzip"}, 415},
		{"return 1;", nil, 204},
		{"return 1;", nil, 429},
	} {
		resp, body := s.post(test.body, test.header...)
		if resp.StatusCode != test.want || (resp.Header.Get("Retry-After") != "") != (test.want == 429) {
			t.Errorf("a message of %.10q got %s %s, want %d", test.body, resp.Status, body, test.want)
		}
	}
	s.want("1")
	p.wantPage(`return ephpm_ws_connection_send('`+s.connection+`', 'still here');`, "true")
	s.want("still here")
}

func TestMessagesOfEventStreamsAreHandledInOrder(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn+"[php]\nworkers = 4\n")
	s := p.listen("")
	g := newGate(t)
	statuses := make(chan int, 20)
	send := func(code string) {
		resp, _, err := s.tryAsk("POST", code)
		if err != nil {
			t.Error(err)
			statuses <- 0
			return
		}
		statuses <- resp.StatusCode
	}
	var all sync.WaitGroup
	all.Go(func() { send(fmt.Sprintf("file_get_contents(%q); return 'slow';", g.path)) })
	g.wait()
	for i := range 9 { // one more than may wait
		all.Go(func() { send(fmt.Sprintf("return %d;", i)) })
	}
	if got := <-statuses; got != http.StatusServiceUnavailable {
		t.Errorf("the message for which there was no room got %d, want 503", got)
	}
	g.open()
	all.Wait()
	for range 9 {
		if got := <-statuses; got != 204 {
			t.Errorf("a message that waited got %d, want 204", got)
		}
	}
	s.want(`"slow"`)
	for range 8 {
		s.next()
	}
}

func TestMessageThatFailsIsAnswered(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn)
	s := p.listen("")
	for code, want := range map[string]int{
		"http_response_code(503);":                500,
		"posix_kill(getmypid(), SIGKILL);":        502,
		"ephpm_ws_send('fine'); return null;":     204,
		"throw_nobody_knows_this_function_name()": 204, // the play catches it
	} {
		if resp, body := s.post(code); resp.StatusCode != want {
			t.Errorf("%s: %s %s, want %d", code, resp.Status, body, want)
		}
	}

	p = startPlay(t, sseOn+"[server.timeouts]\nrequest = \"2s\"\n")
	s = p.listen("")
	if resp, body := s.post("while (true);"); resp.StatusCode != 504 {
		t.Errorf("a handler over its time: %s %s, want 504", resp.Status, body)
	}
	s.wantEnd(1011, "", true)
	p.wantTrail(`["1011","","timeout"]`)
}

func TestEventStreamsCountAsConnections(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"max_connections = 2\n", "max_connections_per_site = 2\n", "max_connections_per_ip = 2\n"} {
		p := startPlay(t, sseOn+limit)
		p.join("", "")
		s := p.listen("")
		for _, path := range []string{"/", "/?transport=poll"} {
			refused := tryListen(t, http.DefaultClient, p.URL, path)
			if refused.resp.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("%s: one more at %s got %s, want 503", limit, path, refused.resp.Status)
			}
		}
		p.wantMetric(`ephpm_ws_streams_refused_total{reason="capacity"}`, 2)
		s.leave()
		p.trail(1)
		p.wantMetric(`ephpm_ws_streams_active{transport="sse"}`, 0)
		p.listen("")
	}
}

// A client that does not read is closed; those that do get all.
func TestSlowEventStreamIsShed(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn+"send_queue_bytes = \"1MiB\"\nwrite_timeout_secs = 3\n")
	const join = `ephpm_ws_subscribe('lobby');`
	w := p.connect() // never reads behind the header
	w.send("GET " + events(join, "") + " HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n")
	p.wantMetric(`ephpm_ws_streams_active{transport="sse"}`, 1)
	s := p.listen(join)
	for n := "2"; n == "2"; { // the kernel takes some MB, the queue one more
		n = p.page(`return ephpm_ws_broadcast('lobby', str_repeat('x', 200000));`)
		if e := s.next(); len(e.data) != 200000 {
			t.Fatalf("got %q of %d bytes", e.kind, len(e.data))
		}
	}
	if got := fromJSON[[]string](t, p.trail(1)[0]); got[2] != "slow" {
		t.Errorf("the slow client ended with %q", got)
	}
	p.wantPage(`return ephpm_ws_count('lobby');`, "1")
}
