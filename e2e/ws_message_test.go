package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestMessageIsOneRun(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: metricsOn, Files: map[string]string{"websocket.php": `<?php
		if ($_SERVER['WS_EVENT'] === 'message') {
			$body = file_get_contents('php://input');
			ephpm_ws_send($_SERVER['WS_OPCODE'] . ' ' . bin2hex($body) . ' ' . count($_POST) . count($_FILES), false);
		}`}})
	f := a.dialWire("/")
	f.say(frameText, "hi ü")
	f.want(frameText, "text 686920c3bc 00")
	f.say(frameBinary, "a=1\x00\xff")
	f.want(frameText, "binary 613d3100ff 00")
	f.say(frameText, "")
	f.want(frameText, "text  00")
	f.say(frameBinary, "")
	f.want(frameText, "binary  00")

	// Fragments, with control frames and a torn character between them.
	f.send(masked(frameText, "a=1&b=\xc3"))
	f.say(framePing, "between")
	f.want(framePong, "between")
	f.send(masked(frameCont, "\xbc"))
	f.say(framePong, "")
	f.send(masked(frameCont, ""))
	f.send(masked(frameCont|frameFin, "!"))
	f.want(frameText, "text 613d3126623dc3bc21 00")

	// Byte by byte.
	for _, b := range []byte(masked(frameText|frameFin, "slow")) {
		f.send(string([]byte{b}))
	}
	f.want(frameText, "text 736c6f77 00")

	// Many at once.
	f.send(masked(frameText|frameFin, "1") + masked(frameText|frameFin, "2") + masked(frameText|frameFin, "3"))
	for _, want := range []string{"31", "32", "33"} {
		f.want(frameText, "text "+want+" 00")
	}
	a.waitMetric(`ephpm_ws_events_total{event="message"}`, 9)
	a.waitMetric("ephpm_ws_frames_received_total", 9)
	a.waitMetric("ephpm_ws_frames_queued_total", 9)
	a.waitMetric("ephpm_ws_frames_sent_total", 9)
}

func TestFirstMessageMayComeWithTheHandshake(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	w := a.connect()
	w.send(upgradeText("/") + masked(frameText|frameFin, `return 'early';`))
	w.accepted().want(frameText, `"early"`)
}

func TestOutputOfEventsGoesNowhere(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	s := a.join(`echo 'thrown away';`, "")
	s.send(`http_response_code(404); header('X-Own: yes'); setcookie('a', '1'); echo 'thrown away'; flush(); print(str_repeat('x', 1000000));`)
	s.wantRun(`return 'the first frame';`, `"the first frame"`)
}

func TestMessagesRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	s := a.join("", "")
	const n = 100
	for i := range n {
		s.send(fmt.Sprintf(`trail('begin %d'); trail('end %d');`, i, i))
	}
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf(`"begin %d"`, i), fmt.Sprintf(`"end %d"`, i))
	}
	a.wantTrail(want...)
}

func TestConnectionsRunInParallel(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[php]\nworkers = 4\n")
	var gates []*gate
	for range 4 {
		g := newGate(t)
		a.join("", "").send(`file_get_contents('` + g.path + `'); trail('through');`)
		gates = append(gates, g)
	}
	for _, g := range gates {
		g.wait() // all four are at theirs
	}
	for _, g := range gates {
		g.open()
	}
	a.trail(4)
}

func TestBodyLimitIsNotForMessages(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.request]\nmax_body_size = 100\n")
	s := a.join("", "")
	s.wantRun(`return strlen(file_get_contents('php://input')); // `+repeat(100_000), strconv.Itoa(len(`return strlen(file_get_contents('php://input')); // `)+100_000))
}

func TestMessagesOfEverySize(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"websocket.php": `<?php
		if ($_SERVER['WS_EVENT'] === 'message') { ephpm_ws_send(file_get_contents('php://input'), $_SERVER['WS_OPCODE'] === 'binary'); }`}})
	f := a.dialWire("/")
	for _, n := range []int{1, 124, 125, 126, 127, 4096, 65535, 65536, 65537, 1 << 20} {
		f.say(frameBinary, repeat(n))
		f.want(frameBinary, repeat(n))
		f.say(frameText, repeat(n))
		f.want(frameText, repeat(n))
	}
}

// A handler that breaks costs its event; the socket stays open.
func TestBrokenMessageKeepsTheSocket(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	s := a.join("", "")
	s.send(`trigger_error('broken on purpose', E_USER_ERROR);`)
	s.wantRun(`return 'after a fatal error';`, `"after a fatal error"`)
	a.waitMetric(`ephpm_ws_event_failures_total{event="message",reason="fatal"}`, 1)
	a.waitLog(`broken on purpose`)
	a.waitLog(`level=WARN msg="event failed" site=default event=message connection=[0-9a-f]{32} reason=fatal`)

	s.send(`posix_kill(getmypid(), SIGSEGV);`)
	s.wantRun(`return 'after a crash';`, `"after a crash"`)
	a.waitMetric(`ephpm_ws_event_failures_total{event="message",reason="crash"}`, 1)
	a.waitLog(`level=WARN msg="event failed" site=default event=message connection=[0-9a-f]{32} reason=crash err=".*signal 11`)

	s.send(`exit('early');`)
	s.wantRun(`return 'after an exit';`, `"after an exit"`)
	s.send(`$a = []; while (true) $a[] = str_repeat('x', 1000000);`)
	s.wantRun(`return 'after too much memory';`, `"after too much memory"`)
	a.waitMetric(`ephpm_ws_event_failures_total{event="message",reason="fatal"}`, 2)
	a.waitMetric("ephpm_ws_connections_active", 1)
	a.wantMetric(`ephpm_ws_events_total{event="message"}`, 8) // broken ones included
}

func TestSyntaxErrorInTheScript(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{TOML: metricsOn, Files: map[string]string{"websocket.php": `<?php this is no PHP`}})
	head, _ := a.curlUpgrade("/")
	if !strings.HasPrefix(head, "HTTP/1.1 500 ") {
		t.Errorf("upgrade: %s, want 500", firstOf(head, "\r\n"))
	}
	a.waitMetric("ephpm_ws_connect_rejected_total", 1)
	a.waitLog(`syntax error.*websocket.php`)
	a.waitLog(`level=INFO msg="upgrade refused" .*status=500`)
}

func TestKilledWorkerKeepsTheSocket(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	s, other := a.join("", ""), a.join("", "")
	s.send(`trail(getmypid()); sleep(600);`)
	if err := syscall.Kill(fromJSON[int](t, a.trail(1)[0]), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.wantRun(`return 'still here';`, `"still here"`)
	other.wantRun(`return 'nothing noticed';`, `"nothing noticed"`)
	a.waitMetric(`ephpm_ws_event_failures_total{event="message",reason="crash"}`, 1)
}

// A handler over the limit is killed, its socket closed with 1011, and the
// message behind it never runs beside it.
func TestMessageOverTheTimeLimit(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.timeouts]\nrequest = \"2s\"\nrequest_grace = 0\n")
	f := a.joinUnless(504, "", "")
	f.say(frameText, `trail(getmypid()); sleep(600);`)
	f.say(frameText, `trail('the next message');`)
	f.wantClose(1011, "")
	notes := a.trail(2)
	if len(notes) != 2 || notes[1] != `["1011","","timeout"]` {
		t.Errorf("notes %q, want the process and the disconnect event only", notes)
	}
	a.wantGone(fromJSON[int](t, notes[0]))
	a.waitMetric("ephpm_ws_event_timeouts_total", 1)
	a.waitMetric(`ephpm_ws_event_failures_total{event="message",reason="timeout"}`, 1)
	a.waitMetric(`ephpm_ws_closed_total{cause="timeout"}`, 1)
	a.waitMetric(`ephpm_ws_close_codes_total{code="1011"}`, 1)
	a.waitLog(`level=WARN msg="event failed" site=default event=message connection=[0-9a-f]{32} reason=timeout`)
}

// The kill comes in whatever PHP does.
func TestTimeLimitHoldsForEveryHandler(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.timeouts]\nrequest = \"1s\"\n")
	var wg sync.WaitGroup
	defer wg.Wait()
	for what, code := range map[string]string{
		"a loop":             `while (true);`,
		"a sleep":            `sleep(600);`,
		"a blocked signal":   `pcntl_sigprocmask(SIG_BLOCK, [SIGTERM, SIGALRM, SIGINT]); while (true) sleep(600);`,
		"a shutdown handler": `register_shutdown_function(function () { while (true); });`,
		"an endless send":    `while (true) ephpm_ws_connection_send('nobody', 'x');`,
		"its own limit":      `set_time_limit(0); ignore_user_abort(true); while (true);`,
	} {
		f := a.joinUnless(504, "", "")
		if what == "a blocked signal" {
			code = `if (function_exists('pcntl_sigprocmask')) { ` + code + ` } while (true);`
		}
		f.say(frameText, code)
		wg.Go(func() {
			if op, payload, err := f.tryNext(); err != nil || op != frameClose || payload != closePayload(1011, "") {
				t.Errorf("%s: frame %#x %q, %v; want close 1011", what, op, payload, err)
			}
		})
	}
}

func TestNoTimeLimit(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.timeouts]\nrequest = 0\n")
	s := a.join(`usleep(300000);`, "")
	s.wantRun(`usleep(300000); return 'unhurried';`, `"unhurried"`)
	s.close()
	a.wantTrail(`["1000","","client"]`)
	a.wantMetric("ephpm_ws_event_timeouts_total", 0)
}

// New code is used by the next event of a connection that is open.
func TestScriptMayChangeUnderASocket(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML:  "[php]\nini_overrides = [[\"opcache.revalidate_freq\", \"0\"]]\n",
		Files: map[string]string{"websocket.php": `<?php if ($_SERVER['WS_EVENT'] === 'message') ephpm_ws_send('old');`},
	})
	s := a.dial("/", nil)
	s.send("x")
	if got := s.recv(); got != "old" {
		t.Fatalf("received %q", got)
	}
	next := a.options.Root + "/next.php"
	writeFiles(t, a.options.Root, map[string]string{"next.php": `<?php if ($_SERVER['WS_EVENT'] === 'message') ephpm_ws_send('a longer new one');`})
	if err := os.Rename(next, a.options.Root+"/websocket.php"); err != nil {
		t.Fatal(err)
	}
	err := eventually(func() error {
		s.send("x")
		if got := s.recv(); got != "a longer new one" {
			return fmt.Errorf("received %q", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
