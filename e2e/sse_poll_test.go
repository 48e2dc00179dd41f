package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A poller is a client that polls.
type poller struct {
	sse
	frames []string // what came, binary as "binary " and base64
	closed string   // the close, as JSON
}

// poll opens a connection that is polled; see events.
func (p *play) poll(connect string, header ...string) *poller {
	p.t.Helper()
	c := &poller{sse: sse{t: p.t, url: p.URL, client: http.DefaultClient}}
	if resp, body := c.poll(events(connect, "")+"&transport=poll", header...); resp.StatusCode != 200 || c.key == "" {
		p.t.Fatalf("first poll: %s %s", resp.Status, body)
	}
	return c
}

// poll asks for frames, with the key and the last event ID if there are any.
func (c *poller) poll(path string, header ...string) (*http.Response, string) {
	c.t.Helper()
	if c.key != "" {
		header = append(header, "WS-Connection-Key", c.key, "Last-Event-ID", c.last)
	}
	req, err := http.NewRequest("GET", c.url+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, body, err := fetch(req)
	if err != nil {
		c.t.Fatal(err)
	}
	if resp.StatusCode == http.StatusOK {
		c.take(body)
	}
	return resp, body
}

// take reads an answer.
func (c *poller) take(body string) {
	c.t.Helper()
	a := fromJSON[struct {
		Connection, Key string
		Resumed         bool
		Last            string `json:"last_event_id"`
		Frames          []struct{ Data, Binary *string }
		Close           any
	}](c.t, body)
	if a.Key != "" {
		c.connection, c.key, c.resumed = a.Connection, a.Key, a.Resumed
	}
	c.last = a.Last
	for _, f := range a.Frames {
		if f.Data != nil {
			c.frames = append(c.frames, *f.Data)
		} else {
			c.frames = append(c.frames, "binary "+*f.Binary)
		}
	}
	if a.Close != nil {
		_, c.closed, _ = strings.Cut(strings.TrimSpace(body), `"close":`)
		c.closed = strings.TrimSuffix(c.closed, "}")
	}
}

// wantFrames polls until the frames have come, and compares all.
func (c *poller) wantFrames(want ...string) {
	c.t.Helper()
	for len(c.frames) < len(want) {
		if resp, body := c.poll("/?transport=poll"); resp.StatusCode != 200 {
			c.t.Fatalf("poll: %s %s", resp.Status, body)
		}
	}
	if got := strings.Join(c.frames, "|"); got != strings.Join(want, "|") {
		c.t.Errorf("frames are %q, want %q", c.frames, want)
	}
	c.frames = nil
}

func TestPollsAreAConnection(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn)
	c := p.poll(`ephpm_ws_subscribe('lobby'); ephpm_ws_send("a\rb"); ephpm_ws_send("\x00\xff", true);`)
	c.wantFrames("a\rb", "binary AP8=")
	if resp, body := c.post(`return [$_SERVER['WS_TRANSPORT'], ephpm_ws_broadcast('lobby', 'x')];`); resp.StatusCode != 204 {
		t.Fatalf("message: %s %s", resp.Status, body)
	}
	before := c.last
	c.wantFrames("x", `["poll",1]`)
	c.last = before // the answer was lost
	c.wantFrames("x", `["poll",1]`)

	got := make(chan string)
	go func() { // waits for a frame
		req, _ := http.NewRequest("GET", p.URL+"/?transport=poll&ws_connection_key="+c.key+"&last_event_id="+url.QueryEscape(c.last), nil)
		_, body, err := fetch(req)
		got <- fmt.Sprint(body, err)
	}()
	p.wantPage(`return ephpm_ws_broadcast('lobby', 'late');`, "1")
	if body := <-got; !strings.Contains(body, `"frames":[{"data":"late"}]`) {
		t.Errorf("a poll that waited got %s", body)
	}
	if resp, _ := c.poll("/?transport=poll", "X", "y"); resp.StatusCode != 200 {
		t.Errorf("poll: %s", resp.Status)
	}
	c.frames = nil
	c.last = before // long received
	if resp, _ := c.poll("/?transport=poll"); resp.StatusCode != http.StatusConflict {
		t.Errorf("a poll for frames that were received: %s, want 409", resp.Status)
	}
}

func TestPolledConnectionEnds(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn)
	c := p.poll("")
	if resp, _ := c.post("ephpm_ws_send('last'); ephpm_ws_close(4001, 'enough');"); resp.StatusCode != 204 {
		t.Errorf("message: %s", resp.Status)
	}
	c.poll("/?transport=poll")
	if want := `{"code":4001,"reason":"enough","retry":false}`; c.closed != want || fmt.Sprint(c.frames) != "[last]" {
		t.Errorf("the last answer has %q and %s, want %s", c.frames, c.closed, want)
	}
	p.wantTrail(`["4001","enough","server"]`)
	if resp, _ := c.poll("/?transport=poll"); resp.StatusCode != http.StatusGone {
		t.Errorf("a poll after the end: %s, want 410", resp.Status)
	}

	left := p.poll("")
	left.ask("DELETE", "")
	p.wantTrail(`["4001","enough","server"]`, `["1000","","client"]`)

	p = startPlay(t, sseOn+"poll_wait_secs = \"50ms\"\npoll_idle_secs = \"300ms\"\n")
	p.poll("") // and never again
	p.wantTrail(`["1006","","gone"]`)
	p.wantMetric(`ephpm_ws_streams_active{transport="poll"}`, 0)
	p.wantMetric(`ephpm_ws_streams_closed_total{cause="gone",transport="poll"}`, 1)
}
