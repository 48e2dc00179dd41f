package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func numeral(i int) string { return strconv.Itoa(i) }

// patientSends is for clients that read, on a machine that may be too busy to let
// them.
const patientSends = "[server.websocket]\nsend_wait_ms = 60000\n"

// A burst to a client that reads is never shed.
func TestBurstOfOneHandlerArrives(t *testing.T) {
	t.Parallel()
	a := startPlay(t, patientSends)
	s := a.join(`ephpm_ws_subscribe('lobby');`, "")
	s.send(`for ($i = 0; $i < 500; $i++) if (!ephpm_ws_send("$i")) trail($i);`)
	for i := range 500 {
		if got := s.recv(); got != numeral(i) {
			t.Fatalf("received %q, want %d", got, i)
		}
	}
	s.send(`for ($i = 0; $i < 500; $i++) if (ephpm_ws_broadcast('lobby', "b $i") !== 1) trail($i);`)
	for i := range 500 {
		if got := s.recv(); got != "b "+numeral(i) {
			t.Fatalf("received %q, want broadcast %d", got, i)
		}
	}
	s.close()
	a.wantTrail(`["1000","","client"]`)
	a.wantMetric("ephpm_ws_send_queue_overflow_total", 0)
	a.wantMetric("ephpm_ws_frames_queued_total", 1000)
	a.wantMetric("ephpm_ws_frames_sent_total", 1000)
}

// While a handler runs, its socket's writer does too.
func TestWriterDoesNotWaitForTheHandler(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nping_interval_secs = 0\n")
	f, g := a.dialWire("/"), newGate(t)
	id := fromJSON[string](t, f.run(`return $id;`))
	f.say(frameText, `ephpm_ws_send('from the handler'); file_get_contents('`+g.path+`'); return 'awake';`)
	f.want(frameText, "from the handler")
	g.wait()
	f.say(framePing, "are you there?")
	f.want(framePong, "are you there?")
	for i := range 100 { // more than the queue holds
		a.wantPage(fmt.Sprintf(`return ephpm_ws_connection_send('%s', 'push %d');`, id, i), `true`)
		f.want(frameText, fmt.Sprintf("push %d", i))
	}
	g.open()
	f.want(frameText, `"awake"`)
}

func TestCloseDoesNotWaitForTheHandler(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	f, g := a.dialWire("/"), newGate(t)
	id := fromJSON[string](t, f.run(`return $id;`))
	f.say(frameText, `file_get_contents('`+g.path+`'); trail(ephpm_ws_send('too late'));`)
	g.wait()
	a.wantPage(`return ephpm_ws_connection_close('`+id+`', 4000);`, `true`)
	f.wantClose(4000, "")
	g.open()
	a.wantTrail(`false`, `["4000","","server"]`)
}

// A client that does not read gets what the kernel took, then 1013; what was
// queued is dropped, and every further send is false at once.
func TestSlowReaderIsClosedWith1013(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nsend_wait_ms = 400\nwrite_timeout_secs = 60\n")
	f := a.dialDeaf("/")
	a.wantPage(`return ephpm_ws_count();`, `1`)
	f.say(frameText, `ephpm_ws_subscribe('slow'); ephpm_ws_send($id);`)
	_, id := f.next()
	// If every refused send waited, this would take minutes.
	results := fromJSON[[]bool](t, a.page(`
		$results = [];
		for ($i = 0; $i < 1000; $i++) $results[] = ephpm_ws_connection_send('`+id+`', "$i " . str_repeat('x', 60000));
		return $results;`))
	accepted := 0
	for accepted < len(results) && results[accepted] {
		accepted++
	}
	for i, ok := range results[accepted:] {
		if ok {
			t.Errorf("send %d is true behind one that was false", accepted+i)
		}
	}
	if accepted < 64 || accepted == len(results) {
		t.Fatalf("%d sends of %d were true, want the queue's 64 and what the kernel takes", accepted, len(results))
	}
	a.wantPage(`return [ephpm_ws_connection_send('`+id+`', 'x'), ephpm_ws_broadcast('slow', 'x')];`, `[false,0]`)

	received := 0
	for {
		op, payload := f.next()
		if op == frameClose {
			if payload != closePayload(1013, "") {
				t.Errorf("close frame %q, want 1013", payload)
			}
			break
		}
		if n := firstOf(payload, " "); n != numeral(received) {
			t.Errorf("frame %d is number %s", received, n)
		}
		received++
	}
	if received > accepted-60 {
		t.Errorf("%d of %d frames arrived; want the queue dropped", received, accepted)
	}
	f.say(frameClose, closePayload(1013, ""))
	a.wantTrail(`["1013","","slow"]`)
	a.wantMetric("ephpm_ws_send_queue_overflow_total", 1)
	a.waitLog(`level=WARN msg="outbound queue full, closing" site=default`)
}

// One that does not read costs the others of its channel nothing.
func TestSlowMemberDoesNotHurtTheOthers(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nwrite_timeout_secs = 60\n")
	slow := a.dialDeaf(events(`ephpm_ws_subscribe('lobby');`, ""))
	healthy := a.join(`ephpm_ws_subscribe('lobby');`, "return null;")
	const n = 200
	sum := 0
	for i := range n {
		reached, err := strconv.Atoi(a.page(fmt.Sprintf(`return ephpm_ws_broadcast('lobby', "%d " . str_repeat('x', 60000));`, i)))
		if sum += reached; err != nil {
			t.Fatal(err)
		}
		if got := firstOf(healthy.recv(), " "); got != numeral(i) {
			t.Fatalf("received number %s, want %d", got, i)
		}
	}
	if sum <= n || sum >= 2*n {
		t.Errorf("broadcasts reached %d, want all of one member and some of the other: between %d and %d", sum, n, 2*n)
	}
	_ = slow.Close()
	a.wantTrail(`["1013","","slow"]`)
}

func TestQueueIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	const send = `for ($i = 0; $i < 3000; $i++) if (!ephpm_ws_connection_send('%s', str_repeat('x', 20000))) break; return $i;`
	for bound, most := range map[string]int{"100000": 1000, "0": 3000} {
		a := startPlay(t, "[server.websocket]\nsend_queue = 10000\nwrite_timeout_secs = 60\nsend_queue_bytes = "+bound+"\n")
		f := a.dialDeaf("/")
		f.say(frameText, `ephpm_ws_send($id);`)
		_, id := f.next()
		n, err := strconv.Atoi(a.page(fmt.Sprintf(send, id)))
		if err != nil || n > most || bound == "0" && n != 3000 {
			t.Errorf("with send_queue_bytes = %s the queue took %d frames of 20000 bytes, %v", bound, n, err)
		}
	}
}

// A frame that is larger than the bound passes when nothing waits.
func TestLargeFrameThroughASmallQueue(t *testing.T) {
	t.Parallel()
	a := startPlay(t, patientSends+"send_queue = 1\nsend_queue_bytes = 10\n")
	s := a.join("", "")
	s.send(`for ($i = 0; $i < 20; $i++) ephpm_ws_send(str_repeat("$i ", 50000));`)
	for i := range 20 {
		if got := s.recv(); !strings.HasPrefix(got, numeral(i)+" ") {
			t.Fatalf("received %.10q, want number %d", got, i)
		}
	}
}

// A write that makes no progress cuts the socket, without anybody's help.
func TestBlockedWriteCutsTheSocket(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nwrite_timeout_secs = \"300ms\"\nping_interval_secs = 0\nidle_timeout_secs = 0\n")
	f := a.dialDeaf("/")
	f.say(frameText, `for ($i = 0; $i < 7; $i++) ephpm_ws_send(str_repeat('x', 1000000));`)
	a.wantTrail(`["1006","","slow"]`)
	a.waitMetric("ephpm_ws_connections_active", 0)
	a.waitMetric(`ephpm_ws_closed_total{cause="slow"}`, 1)
}

// A slow client that goes on reading is never cut.
func TestSlowProgressIsProgress(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	a := startPlay(t, fmt.Sprintf("%swrite_timeout_secs = %q\n", patientSends, limit))
	retryWhenPaused(t, limit, func(p *pulse) error {
		w := a.connect()
		if err := w.tcp().SetReadBuffer(64 << 10); err != nil {
			t.Fatal(err)
		}
		w.send(upgradeText("/"))
		f := w.accepted()
		p.beat()
		f.say(frameText, `for ($i = 0; $i < 8; $i++) ephpm_ws_send(str_repeat('x', 1000000));`)
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		start, piece := time.Now(), make([]byte, 16<<10)
		for left := 8 * (10 + 1_000_000); left > 0; {
			n, err := io.ReadFull(f.in, piece[:min(left, len(piece))])
			if left -= n; err != nil {
				return fmt.Errorf("%d bytes before the end: %w", left, err)
			}
			p.beat()
			<-pace.C
		}
		if took := time.Since(start); took < 2*limit {
			t.Errorf("all was read in %v, too soon to be slow", took)
		}
		if got := f.run(`return 'through';`); got != `"through"` {
			t.Errorf("at last %s", got)
		}
		return nil
	})
}

// The client that floods is stopped by TCP, not by the server's memory.
func TestClientThatFloodsIsStopped(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	f, g := a.dialWire("/"), newGate(t)
	f.say(frameText, `file_get_contents('`+g.path+`'); return 'open';`)
	g.wait()
	one := masked(frameFin|frameText, `$x = '`+repeat(60_000)+`';`)
	text, sent := strings.Repeat(one, 500), 0
	for sent < len(text) { // until nothing goes out any more
		if err := f.SetWriteDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := f.Write([]byte(text[sent:]))
		sent += n
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	if sent == len(text) {
		t.Errorf("the server took %d bytes while the handler was held", sent)
	}
	if n, err := a.metric("ephpm_ws_received_bytes_total"); err != nil || n > 1<<20 {
		t.Errorf("%v bytes wait in the server, %v", n, err)
	}
	go func() { // ends when the handlers are through, or with the connection
		_ = f.SetWriteDeadline(time.Time{})
		_, _ = f.Write([]byte(text[sent:])) // what does not arrive is missed below
	}()
	g.open()
	f.want(frameText, `"open"`)
	a.waitMetric(`ephpm_ws_events_total{event="message"}`, 501)
}
