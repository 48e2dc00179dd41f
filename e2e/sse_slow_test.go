package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A client that takes nothing is closed, whichever version of HTTP its stream is on, and
// delays nobody: who reads gets all, in order.
func TestSlowEventStreamsOverEveryVersion(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{TOML: sseOn + "send_queue_bytes = \"1MiB\"\nwrite_timeout_secs = 1\nmax_message_size = \"1MiB\"\n",
		Files: map[string]string{"websocket.php": `<?php
		switch ($_SERVER['WS_EVENT']) {
		case 'connect': ephpm_ws_subscribe('all'); break;
		case 'message': ephpm_ws_broadcast('all', file_get_contents('php://input')); break;
		case 'disconnect': ephpm_ws_broadcast('all', "gone $_SERVER[WS_CLOSE_CAUSE] $_SERVER[SERVER_PROTOCOL]");
		}`}})
	reader := listen(t, a.versions()[0].client, "https://"+a.app.Addr, "/")
	want := map[string]bool{}
	for _, v := range a.versions() { // other clients, so that nobody shares a connection with the reader
		tryListen(t, v.client, v.url, "/")
		want[fmt.Sprintf("gone slow HTTP/%d", v.major)] = true
	}
	text := strings.Repeat("0123456789", 50_000)
	for n := 0; len(want) > 0; n++ {
		sent := fmt.Sprint(n, " ", text)
		if n == 400 { // more than any kernel takes
			t.Fatalf("still there: %v", want)
		}
		if resp, body := reader.post(sent); resp.StatusCode != 204 {
			t.Fatalf("message: %s %s", resp.Status, body)
		}
		for {
			e := reader.next()
			if e.data == sent {
				break
			}
			version := strings.TrimSuffix(strings.TrimSuffix(e.data, ".0"), ".1")
			if !want[version] {
				t.Fatalf("%.40q came in place of message %d", e.data, n)
			}
			delete(want, version)
		}
	}
}

// A stream on which nothing is sent for longer than a write may take stays.
func TestQuietEventStreamsOverEveryVersion(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{TOML: sseOn + "write_timeout_secs = 1\n[server.timeouts]\nidle = 1\n",
		Files: map[string]string{"websocket.php": `<?php
		switch ($_SERVER['WS_EVENT']) {
		case 'message': usleep(2_500_000); ephpm_ws_send('at last'); break;
		case 'disconnect': error_log("disconnect");
		}`}})
	for _, v := range a.versions() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			s := listen(t, v.client, v.url, "/")
			if resp, body := s.post("go"); resp.StatusCode != 204 {
				t.Fatalf("message: %s %s", resp.Status, body)
			}
			s.want("at last")
		})
	}
}

// Megabytes that are there before the client has read anything reach it whole.
func TestEventStreamsOfLargeFramesOverEveryVersion(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{TOML: sseOn, Files: map[string]string{"websocket.php": `<?php
		if ($_SERVER['WS_EVENT'] === 'connect') {
			for ($i = 0; $i < 20; $i++) ephpm_ws_send("$i " . str_repeat('x', 300_000));
			ephpm_ws_close(4000, 'done');
		}`}})
	for _, v := range a.versions() {
		s := listen(t, v.client, v.url, "/")
		for i := range 20 {
			if e := s.next(); e.data != fmt.Sprint(i, " ", strings.Repeat("x", 300_000)) {
				t.Fatalf("over %s frame %d is %.40q of %d bytes", v.name, i, e.data, len(e.data))
			}
		}
		s.wantEnd(4000, "done", false)
	}
}

// A client comes back before the server knows that its connection is dead. It gets what
// it missed, and to the others it never was away.
func TestEventStreamComesBackBeforeItsEndIsNoticed(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn)
	watcher := p.here("bob", "return null;")
	watcher.want(presence("present", 1, "bob"))
	const join = `ephpm_ws_subscribe('lobby', ['user' => 'carol', 'info' => ['name' => 'Carol'], 'list' => 0]);`
	old := p.listen(join)
	old.want(presence("present", 2))
	last := old.mark()
	watcher.want(presence("join", 2, "carol"))
	p.wantPage(`return ephpm_ws_broadcast('lobby', 'missed');`, "2")
	watcher.want("missed")

	again := p.listen(join, "Last-Event-ID", last)
	if !again.resumed {
		t.Error("the client has not resumed")
	}
	again.want("missed")
	p.wantPage(`return [ephpm_ws_count('lobby'), ephpm_ws_count('lobby', users: true)];`, "[3,2]")
	old.leave()
	p.wantTrail(`["1006","","gone"]`)
	p.wantPage(`return ephpm_ws_broadcast('lobby', 'now');`, "2")
	again.want(presence("present", 2))
	again.want("now")
	watcher.want("now") // and no word of carol
}

// Over HTTP/1.1 nothing follows a stream on its connection, as the answer says; a
// client of HTTP/1.0 gets the same without chunks.
func TestEventStreamHasItsConnection(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn)
	for version, chunked := range map[string]bool{"HTTP/1.1": true, "HTTP/1.0": false} {
		w := p.connect()
		w.send("GET " + events(`ephpm_ws_send('x'); ephpm_ws_close(4000);`, "") + " " + version + "\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n" +
			"GET /never HTTP/1.1\r\nHost: x\r\n\r\n")
		got, err := w.rest()
		if err != nil {
			t.Errorf("%s: %v behind %q", version, err, got)
		}
		head, body, _ := strings.Cut(got, "\r\n\r\n")
		if !strings.Contains(head, "\r\nConnection: close") || strings.Contains(head, "\r\nTransfer-Encoding: chunked") != chunked {
			t.Errorf("%s: the header is\n%s", version, head)
		}
		if strings.HasSuffix(body, "\r\n0\r\n\r\n") != chunked || !strings.Contains(body, "data: x\n\n") || strings.Contains(body, "HTTP/1.1") {
			t.Errorf("%s: the body is\n%s", version, body)
		}
	}
}

// Only one poll of a connection waits: the newest.
func TestPollsOfOneConnectionAtATime(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn)
	c := p.poll(`ephpm_ws_subscribe('lobby');`)
	answers := make(chan string, 5)
	for range cap(answers) {
		go func() {
			req, _ := http.NewRequest("GET", p.URL+"/?transport=poll&ws_connection_key="+c.key+"&last_event_id="+c.last, nil)
			resp, body, err := fetch(req)
			if err != nil {
				body = err.Error()
			} else if resp.StatusCode != http.StatusOK {
				body = resp.Status
			}
			answers <- body
		}()
	}
	for range cap(answers) - 1 {
		if body := <-answers; !strings.Contains(body, `"frames":[]`) {
			t.Errorf("a poll before the newest got %s", body)
		}
	}
	p.wantPage(`return ephpm_ws_broadcast('lobby', 'x');`, "1")
	if body := <-answers; !strings.Contains(body, `"frames":[{"data":"x"}]`) {
		t.Errorf("the newest poll got %s", body)
	}
	c.wantFrames("x") // until it says that it has it
	p.wantPage(`return ephpm_ws_broadcast('lobby', 'y');`, "1")
	c.wantFrames("y") // and not the other again
}

// Nobody gets anything by a Last-Event-ID that the server did not give.
func TestLastEventIDsThatNeverWere(t *testing.T) {
	t.Parallel()
	p := startPlay(t, sseOn+"poll_wait_secs = \"50ms\"\n")
	c := p.poll(`ephpm_ws_subscribe('lobby');`)
	p.wantPage(`return ephpm_ws_broadcast('lobby', 'x');`, "1")
	own := c.last
	era, _, _ := strings.Cut(own, "-")
	for last, want := range map[string]int{
		"nonsense":                            400,
		era:                                   400,
		era + "-1":                            400, // of a stream
		era + "--1-0":                         400,
		era + "-1--1":                         400,
		era + "-1-18446744073709551616":       400,
		era + "-" + strings.Repeat("9", 8000): 400,
		era + "-1-18446744073709551615":       409,
		era + "-1-1000":                       409,
		own:                                   200,
	} {
		c.last = last
		if resp, body := c.poll("/?transport=poll"); resp.StatusCode != want {
			t.Errorf("a poll behind %.60s: %s %s, want %d", last, resp.Status, body, want)
		}
	}
	c.wantFrames("x")

	for _, last := range []string{"-1", "18446744073709551615", "18446744073709551616", "1.18446744073709551615", strings.Repeat("9", 8000)} {
		s := p.listen(`ephpm_ws_subscribe('lobby');`, "Last-Event-ID", era+"-"+last)
		if s.resumed {
			t.Errorf("the client has resumed from %.60s", last)
		}
		now := s.mark()
		p.wantPage(`return ephpm_ws_connection_send('`+s.connection+`', 'y');`, "true")
		s.want("y")
		if s.leave(); !strings.HasPrefix(now, era+"-") || strings.Contains(now, "18446744073709551615") {
			t.Errorf("behind %.60s the ID is %s", last, now)
		}
	}
}
