package e2e

import (
	"strings"
	"testing"
)

// The client's close is answered with its code, and TCP ends.
func TestCloseIsEchoed(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	for _, code := range []int{1000, 1001, 1002, 1003, 1007, 1011, 1014, 3000, 3999, 4000, 4999} {
		f := a.dialWire("/")
		f.say(frameClose, closePayload(code, "why not"))
		f.wantEnd(code, "")
	}
	f := a.dialWire("/")
	f.say(frameClose, "")
	f.want(frameClose, "")
	if rest, err := f.rest(); rest != "" || err != nil {
		t.Errorf("behind the echo of an empty close came %q, %v", rest, err)
	}
}

// Every frame that breaks RFC 6455 closes its socket with the right code, and no
// other socket.
func TestMalformedFrames(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nmax_message_size = 2000\nmax_frame_size = 1000\n")
	bystander := a.join("", "")
	for what, c := range map[string]struct {
		bytes string
		code  int
	}{
		"no mask":                      {"\x81\x01x", 1002},
		"reserved bit 1":               {masked(frameFin|0x40|frameText, "x"), 1002},
		"reserved bit 2":               {masked(frameFin|0x20|frameText, "x"), 1002},
		"reserved bit 3":               {masked(frameFin|0x10|frameText, "x"), 1002},
		"reserved bit on a ping":       {masked(frameFin|0x40|framePing, "x"), 1002},
		"opcode 3":                     {masked(frameFin|0x3, "x"), 1002},
		"opcode 7":                     {masked(frameFin|0x7, ""), 1002},
		"opcode 11":                    {masked(frameFin|0xB, "x"), 1002},
		"opcode 15":                    {masked(frameFin|0xF, "x"), 1002},
		"a continuation of nothing":    {masked(frameFin|frameCont, "x"), 1002},
		"a new message inside another": {masked(frameText, "x") + masked(frameFin|frameText, "x"), 1002},
		"a fragmented ping":            {masked(framePing, "x"), 1002},
		"a fragmented close":           {masked(frameClose, ""), 1002},
		"a ping of 126 bytes":          {masked(frameFin|framePing, repeat(126)), 1002},
		"a pong of 126 bytes":          {masked(frameFin|framePong, repeat(126)), 1002},
		"a close of 126 bytes":         {masked(frameFin|frameClose, closePayload(1000, repeat(124))), 1002},
		"a close of one byte":          {masked(frameFin|frameClose, "x"), 1002},
		"close code 0":                 {masked(frameFin|frameClose, closePayload(0, "")), 1002},
		"close code 999":               {masked(frameFin|frameClose, closePayload(999, "")), 1002},
		"close code 1004":              {masked(frameFin|frameClose, closePayload(1004, "")), 1002},
		"close code 1005":              {masked(frameFin|frameClose, closePayload(1005, "")), 1002},
		"close code 1006":              {masked(frameFin|frameClose, closePayload(1006, "")), 1002},
		"close code 1015":              {masked(frameFin|frameClose, closePayload(1015, "")), 1002},
		"close code 5000":              {masked(frameFin|frameClose, closePayload(5000, "")), 1002},
		"a close reason not UTF-8":     {masked(frameFin|frameClose, closePayload(1000, "\xff")), 1007},
		"a length of 2^63":             {"\x82\xff\x80\x00\x00\x00\x00\x00\x00\x00mask", 1002},
		"text not UTF-8":               {masked(frameFin|frameText, "\xff"), 1007},
		"a torn character":             {masked(frameFin|frameText, "\xc3"), 1007},
		"a surrogate":                  {masked(frameFin|frameText, "\xed\xa0\x80"), 1007},
		"a torn character in parts":    {masked(frameText, "\xc3") + masked(frameFin|frameCont, "x"), 1007},
		"a frame of 1001 bytes":        {masked(frameFin|frameBinary, repeat(1001)), 1009},
		"an announced terabyte":        {"\x82\xff\x00\x00\x01\x00\x00\x00\x00\x00mask", 1009},
		"a message of 2001 bytes":      {masked(frameBinary, repeat(1000)) + masked(frameCont, repeat(1000)) + masked(frameFin|frameCont, "x"), 1009},
	} {
		t.Run(what, func(t *testing.T) {
			f := a.dialWire(events("", "return null;"))
			f.t = t
			f.send(c.bytes)
			op, payload := f.next()
			if op != frameClose || len(payload) < 2 || payload[:2] != closePayload(c.code, "") {
				t.Errorf("answer is frame %#x %q, want close %d", op, payload, c.code)
			}
			if rest, err := f.rest(); rest != "" || err != nil {
				t.Errorf("behind the close frame came %q, %v, want the end", rest, err)
			}
		})
	}
	bystander.wantRun(`return 'nothing noticed';`, `"nothing noticed"`)
	a.wantMetric(`ephpm_ws_events_total{event="message"}`, 1)
}

func TestScriptClosesWithAnyLegalCode(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	for _, c := range []struct {
		call, reason string
		code         int
	}{
		{`ephpm_ws_close()`, "", 1000},
		{`ephpm_ws_close(1001, 'later')`, "later", 1001},
		{`ephpm_ws_close(1003)`, "", 1003},
		{`ephpm_ws_close(1008, 'policy')`, "policy", 1008},
		{`ephpm_ws_close(1014)`, "", 1014},
		{`ephpm_ws_close(3000)`, "", 3000},
		{`ephpm_ws_close(4999, str_repeat('ü', 61) . 'x')`, strings.Repeat("ü", 61) + "x", 4999},
		{`ephpm_ws_connection_close($id)`, "", 1000},
		{`ephpm_ws_connection_close($id, 4000, "no\0")`, "no\x00", 4000},
	} {
		f := a.dialWire(events("", "return null;"))
		f.say(frameText, c.call+`;`)
		f.wantClose(c.code, c.reason)
	}
}

// What was queued before the close is delivered before it.
func TestSendThenCloseKeepsTheOrder(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	const code = `for ($i = 0; $i < 50; $i++) ephpm_ws_send(str_repeat("$i ", 2000)); ephpm_ws_close(4000, 'bye');`
	for what, f := range map[string]*frames{
		"message": a.dialWire("/"),
		"connect": a.dialWire(events(code, "")),
	} {
		if what == "message" {
			f.say(frameText, code)
		}
		for i := range 50 {
			if _, payload := f.next(); firstOf(payload, " ") != numeral(i) {
				t.Fatalf("%s: frame %d is %.20q", what, i, payload)
			}
		}
		f.wantClose(4000, "bye")
	}
}

// Messages behind one whose handler closed the socket are not run.
func TestNoMessageRunsBehindAClose(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "")
	s := a.join("", "")
	g := newGate(t)
	s.send(`trail('first'); file_get_contents('` + g.path + `'); ephpm_ws_close(4000);`)
	for range 5 {
		s.send(`trail('behind');`)
	}
	g.wait()
	g.open()
	if code, _, _ := s.recvClose(); code != 4000 {
		t.Errorf("close %d, want 4000", code)
	}
	a.wantTrail(`"first"`, `["4000","","server"]`)
}

// A client that does not answer the close is not waited for long.
func TestCloseDoesNotNeedTheClient(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\nwrite_timeout_secs = \"300ms\"\n")
	f := a.dialWire("/")
	f.say(frameText, `ephpm_ws_close(4000);`)
	f.wantEnd(4000, "")
	a.wantTrail(`["4000","","server"]`)
}
