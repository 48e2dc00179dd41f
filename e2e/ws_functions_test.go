package e2e

import (
	"fmt"
	"strings"
	"testing"
)

const noCurrent = `["Exception","ephpm_ws: no current websocket connection. The implicit form is only valid inside a websocket event; ` +
	`from an ordinary HTTP request use the ephpm_ws_connection_*() form with an explicit connection id",0]`

// What each function returns and throws in an event of its own connection.
func TestFunctionsInAnEvent(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nmax_message_size = 1000\n")
	const (
		codes  = `must be 1000 to 1003, 1007 to 1014 or 3000 to 4999, %d given`
		reason = `must be at most 123 bytes of valid UTF-8`
		utf8   = `must be valid UTF-8 unless $binary is true`
		long   = `str_repeat('x', 1001)`
	)
	throws := func(function string, argument int, name, text string) string {
		return fmt.Sprintf(`["ValueError","%s(): Argument #%d ($%s) %s",0]`, function, argument, name, text)
	}
	s := a.join("", "")
	for _, c := range []struct{ call, want string }{
		{`ephpm_ws_subscribe('a')`, `true`},
		{`ephpm_ws_subscribe('a')`, `true`}, // twice
		{`ephpm_ws_unsubscribe('a')`, `true`},
		{`ephpm_ws_unsubscribe('a')`, `false`},
		{`ephpm_ws_unsubscribe('never held')`, `false`},
		{`ephpm_ws_connection_subscribe($id, 'a')`, `true`},
		{`ephpm_ws_connection_unsubscribe($id, 'a')`, `true`},
		{`ephpm_ws_connection_unsubscribe($id, 'a')`, `false`},

		{`ephpm_ws_send(` + long + `)`, `false`},
		{`ephpm_ws_send("\xff")`, throws("ephpm_ws_send", 1, "payload", utf8)},
		{`ephpm_ws_send("torn \xc3")`, throws("ephpm_ws_send", 1, "payload", utf8)},
		{`ephpm_ws_connection_send($id, "\xff")`, throws("ephpm_ws_connection_send", 2, "payload", utf8)},
		{`ephpm_ws_connection_send($id, ` + long + `, true)`, `false`},

		{`ephpm_ws_broadcast('nobody', 'x')`, `0`},
		{`ephpm_ws_broadcast('', 'x')`, `0`},
		{`ephpm_ws_broadcast(str_repeat('x', 257), 'x')`, `0`},
		{`ephpm_ws_broadcast("\xff", 'x')`, `0`},
		{`[ephpm_ws_subscribe('b'), ephpm_ws_broadcast('b', ` + long + `), ephpm_ws_unsubscribe('b')]`, `[true,0,true]`},
		{`ephpm_ws_broadcast('nobody', "\xff")`, throws("ephpm_ws_broadcast", 2, "payload", utf8)},
		{`[ephpm_ws_subscribe('b'), ephpm_ws_broadcast('b', 'x', false, $id), ephpm_ws_unsubscribe('b')]`, `[true,0,true]`},

		{`ephpm_ws_close(0)`, throws("ephpm_ws_close", 1, "code", fmt.Sprintf(codes, 0))},
		{`ephpm_ws_close(-1)`, throws("ephpm_ws_close", 1, "code", fmt.Sprintf(codes, -1))},
		{`ephpm_ws_close(999)`, throws("ephpm_ws_close", 1, "code", fmt.Sprintf(codes, 999))},
		{`ephpm_ws_close(1004)`, throws("ephpm_ws_close", 1, "code", fmt.Sprintf(codes, 1004))},
		{`ephpm_ws_close(1005)`, throws("ephpm_ws_close", 1, "code", fmt.Sprintf(codes, 1005))},
		{`ephpm_ws_close(1006)`, throws("ephpm_ws_close", 1, "code", fmt.Sprintf(codes, 1006))},
		{`ephpm_ws_close(1015)`, throws("ephpm_ws_close", 1, "code", fmt.Sprintf(codes, 1015))},
		{`ephpm_ws_close(2999)`, throws("ephpm_ws_close", 1, "code", fmt.Sprintf(codes, 2999))},
		{`ephpm_ws_close(5000)`, throws("ephpm_ws_close", 1, "code", fmt.Sprintf(codes, 5000))},
		{`ephpm_ws_close(4294968296)`, throws("ephpm_ws_close", 1, "code", fmt.Sprintf(codes, 4294968296))},
		{`ephpm_ws_connection_close($id, 0)`, throws("ephpm_ws_connection_close", 2, "code", fmt.Sprintf(codes, 0))},
		{`ephpm_ws_connection_close('nobody', 5000)`, throws("ephpm_ws_connection_close", 2, "code", fmt.Sprintf(codes, 5000))},
		{`ephpm_ws_close(1000, str_repeat('x', 124))`, throws("ephpm_ws_close", 2, "reason", reason)},
		{`ephpm_ws_close(1000, "\xff")`, throws("ephpm_ws_close", 2, "reason", reason)},
		{`ephpm_ws_connection_close($id, 1000, "\xff")`, throws("ephpm_ws_connection_close", 3, "reason", reason)},

		{`ephpm_ws_count()`, `1`},
		{`ephpm_ws_count(null)`, `1`},
		{`ephpm_ws_count('nobody')`, `0`},
		{`ephpm_ws_count('')`, `0`},
		{`ephpm_ws_members('nobody')`, `[]`},

		{`ephpm_ws_send([])`, `["TypeError","ephpm_ws_send(): Argument #1 ($payload) must be of type string, array given",0]`},
		{`ephpm_ws_count([])`, `["TypeError","ephpm_ws_count(): Argument #1 ($channel) must be of type ?string, array given",0]`},
		{`ephpm_ws_close('x')`, `["TypeError","ephpm_ws_close(): Argument #1 ($code) must be of type int, string given",0]`},
		{`ephpm_ws_broadcast('x')`, `["ArgumentCountError","ephpm_ws_broadcast() expects at least 2 arguments, 1 given",0]`},
		{`ephpm_ws_subscribe()`, `["ArgumentCountError","ephpm_ws_subscribe() expects at least 1 argument, 0 given",0]`},
	} {
		s.wantRun(`return `+c.call+`;`, c.want)
	}
	for _, id := range unreachable {
		for _, call := range []string{
			`ephpm_ws_connection_send(%s, 'x')`, `ephpm_ws_connection_subscribe(%s, 'x')`,
			`ephpm_ws_connection_unsubscribe(%s, 'x')`, `ephpm_ws_connection_close(%s)`,
		} {
			s.wantRun(`return `+fmt.Sprintf(call, id)+`;`, `false`)
		}
	}
	a.wantMetric(`ephpm_ws_frames_rejected_total{reason="too_large"}`, 3)
	a.wantMetric(`ephpm_ws_frames_rejected_total{reason="invalid_utf8"}`, 4)
	a.wantMetric("ephpm_ws_cross_site_denied_total", 0)
	a.waitLog(`level=WARN msg="outbound payload over the limit" site=default bytes=1001 max=1000`)
}

// unreachable are IDs, in PHP, that nobody has.
var unreachable = []string{
	`str_repeat('0', 32)`, `str_repeat('a', 32)`, `''`, `'x'`, `str_repeat('a', 31)`, `str_repeat('a', 33)`,
	`str_repeat('g', 32)`, `"\xff"`, `str_repeat("\0", 16)`,
}

func TestIDInOtherLettersIsNobodys(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	s := a.join("", "")
	for {
		if id := s.id(); strings.ToUpper(id) != id {
			a.wantPage(`return ephpm_ws_connection_send('`+strings.ToUpper(id)+`', 'x');`, `false`)
			return
		}
		s = a.join("", "")
	}
}

func TestSendDelivers(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nmax_message_size = 1000\n")
	f, other := a.dialWire("/"), a.dialWire("/")
	id := fromJSON[string](t, other.run(`return $id;`))
	if got := f.run(`trail([ephpm_ws_connection_send('` + id + `', 'to the other'), ephpm_ws_connection_send('` + id + `', "\xff\0", true)]); return 0;`); got != "0" {
		t.Errorf("run gave %s", got)
	}
	other.want(frameText, "to the other")
	other.want(frameBinary, "\xff\x00")
	a.wantTrail(`[true,true]`)

	f.say(frameText, `ephpm_ws_send(''); ephpm_ws_send('', true); ephpm_ws_send("ü\0", false); ephpm_ws_send(str_repeat('x', 1000)); ephpm_ws_connection_send($id, 'by name');`)
	f.want(frameText, "")
	f.want(frameBinary, "")
	f.want(frameText, "ü\x00")
	f.want(frameText, strings.Repeat("x", 1000))
	f.want(frameText, "by name")
	f.say(frameText, `ephpm_ws_send(42);`) // PHP makes it a string
	f.want(frameText, "42")
}

func TestSendToOneThatClosesIsFalse(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	f := a.dialWire("/")
	f.say(frameText, `$r = [ephpm_ws_send('before'), ephpm_ws_close(4000), ephpm_ws_send('x'), ephpm_ws_connection_send($id, 'x'), ephpm_ws_close()]; trail($r); trail(ephpm_ws_broadcast('x', 'x'));`)
	f.want(frameText, "before")
	f.want(frameClose, closePayload(4000, ""))
	f.say(frameClose, closePayload(4000, ""))
	a.wantTrail(`[true,true,false,false,true]`, `0`, `["4000","","server"]`)
}

func TestFunctionsOnAPage(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	for _, call := range []string{
		`ephpm_ws_send('x')`, `ephpm_ws_subscribe('x')`, `ephpm_ws_unsubscribe('x')`, `ephpm_ws_close()`,
		// Being in an event is checked before the arguments.
		`ephpm_ws_send("\xff")`, `ephpm_ws_close(0)`, `ephpm_ws_subscribe('')`,
	} {
		a.wantPage(`return `+call+`;`, noCurrent)
	}
	for _, id := range unreachable {
		a.wantPage(`return ephpm_ws_connection_send(`+id+`, 'x');`, `false`)
	}
	s := a.join("", "")
	id := s.id()
	a.wantPage(`return [ephpm_ws_connection_subscribe('`+id+`', 'lobby'), ephpm_ws_connection_subscribe('`+id+`', ''), ephpm_ws_count('lobby'),
		ephpm_ws_members('lobby'), ephpm_ws_broadcast('lobby', 'to all'), ephpm_ws_connection_send('`+id+`', 'to one'),
		ephpm_ws_connection_unsubscribe('`+id+`', 'lobby'), ephpm_ws_connection_unsubscribe('`+id+`', 'lobby'), ephpm_ws_count('lobby'),
		ephpm_ws_connection_close('`+id+`', 3000, 'from a page')];`, `[true,false,1,["`+id+`"],1,true,true,false,0,true]`)
	for _, want := range []string{"to all", "to one"} {
		if got := s.recv(); got != want {
			t.Errorf("received %q, want %q", got, want)
		}
	}
	if code, reason, _ := s.recvClose(); code != 3000 || reason != "from a page" {
		t.Errorf("close %d %q", code, reason)
	}
	a.wantTrail(`["3000","from a page","server"]`)
	a.wantPage(`return [ephpm_ws_connection_send('`+id+`', 'x'), ephpm_ws_connection_close('`+id+`'), ephpm_ws_connection_subscribe('`+id+`', 'x')];`, `[false,false,false]`)
}

// A page is no event, whatever the client claims.
func TestClientCannotFakeAnEvent(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	id := a.join("", "").id()
	_, body := a.do(a.request("POST", "/page.php?WS_EVENT=message&WS_CONNECTION_ID="+id, `return [$_SERVER['WS_EVENT'] ?? null, ephpm_ws_send('x')];`,
		"WS-Event", "message", "WS_EVENT", "message", "WS-Connection-ID", id))
	if body != noCurrent {
		t.Errorf("the page printed %s, want the exception", body)
	}
}

func TestFunctionsAfterTheResponseAndInDestructors(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	s := a.join("", "")
	s.send(`register_shutdown_function(function () { ephpm_ws_send('shutdown function'); });
		$GLOBALS['last'] = new class { function __destruct() { ephpm_ws_send('destructor'); } };
		ephpm_ws_send('handler'); exit;`)
	for _, want := range []string{"handler", "shutdown function", "destructor"} {
		if got := s.recv(); got != want {
			t.Errorf("received %q, want %q", got, want)
		}
	}
}
