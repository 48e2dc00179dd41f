package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// A protocolCase is what a client sends to an echo server and what it must get.
// Names are the numbers of the Autobahn testsuite's cases.
type protocolCase struct {
	name string
	send []string // frames, or parts of them
	chop bool     // each byte is written by itself
	want []string // frames, as answer makes them
	// code is that of the server's close frame: noCode for one without, 0 for the
	// answer to the close 1000 that the client sends at last.
	code int
}

const noCode = -1

// answer is one frame of protocolCase.want.
func answer(op byte, payload string) string { return string([]byte{op}) + payload }

// protocolSite echoes messages.
var protocolSite = map[string]string{"websocket.php": `<?php
	if ($_SERVER['WS_EVENT'] === 'message')
		ephpm_ws_send(file_get_contents('php://input'), $_SERVER['WS_OPCODE'] === 'binary');`}

// TestProtocol is every case over every transport.
func TestProtocol(t *testing.T) {
	t.Parallel()
	e := startEveryHTTP(t, appOptions{Files: protocolSite, TOML: "[server.websocket]\nping_interval_secs = 0\n"})
	for _, over := range transports {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			largest := 256 << 10
			if over == "plain" {
				largest = 1 << 20
			}
			for _, group := range [][]protocolCase{
				framingCases(), controlCases(), reservedCases(), fragmentCases(), utf8Cases(), closeCases(), sizeCases(largest),
			} {
				for _, c := range group {
					t.Run(c.name, func(t *testing.T) {
						t.Parallel()
						c.run(t, e.dial(t, over))
					})
				}
			}
		})
	}
}

// on returns the same server for another test.
func (a *app) on(t testing.TB) *app {
	other := *a
	other.t = t
	return &other
}

func (c protocolCase) run(t *testing.T, f *frames) {
	parts := c.parts() // before c is changed below
	go func() {        // ends with the connection; what is sent behind a close may fail
		for _, part := range parts {
			if _, err := f.Write([]byte(part)); err != nil {
				return
			}
		}
	}()
	for i, want := range c.want {
		op, payload, err := f.tryNext()
		if err != nil {
			t.Fatalf("frame %d: %v, want %.60q", i, err, want)
		}
		if got := answer(op, payload); got != want {
			t.Fatalf("frame %d is %.60q, want %.60q", i, got, want)
		}
	}
	if c.code == 0 {
		f.say(frameClose, closePayload(1000, ""))
		c.code = 1000
	}
	op, payload := f.next()
	want := ""
	if c.code != noCode {
		want, payload = closePayload(c.code, ""), payload[:min(2, len(payload))] // reasons are free
	}
	if op != frameClose || payload != want {
		t.Fatalf("got frame %#x %.60q, want close %d", op, payload, c.code)
	}
	if rest, err := f.rest(); rest != "" || err != nil {
		t.Errorf("behind the close frame came %.60q, %v, want the end", rest, err)
	}
}

func (c protocolCase) parts() []string {
	if !c.chop {
		return c.send
	}
	return strings.Split(strings.Join(c.send, ""), "")
}

// whole is one unfragmented frame.
func whole(op byte, payload string) string { return masked(frameFin|op, payload) }

// fragments cuts a message into frames of at most n bytes.
func fragments(op byte, payload string, n int) []string {
	var parts []string
	for first := true; first || payload != ""; first = false {
		size := min(n, len(payload))
		frame := masked(op, payload[:size])
		if payload = payload[size:]; payload == "" {
			frame = string(append([]byte{frame[0] | frameFin}, frame[1:]...))
		}
		parts, op = append(parts, frame), frameCont
	}
	return parts
}

// framingCases are 1.*: every form of the length, text and binary.
func framingCases() []protocolCase {
	var cases []protocolCase
	for kind, op := range []byte{frameText, frameBinary} {
		for i, n := range []int{0, 125, 126, 127, 128, 65535, 65536} {
			payload := strings.Repeat("*", n)
			if op == frameBinary {
				payload = strings.Repeat("\xfe", n)
			}
			cases = append(cases, protocolCase{
				name: fmt.Sprintf("1.%d.%d", kind+1, i+1),
				send: []string{whole(op, payload)}, want: []string{answer(op, payload)},
			})
		}
		payload := strings.Repeat("*", 65536)
		frame, parts := whole(op, payload), []string(nil)
		for ; len(frame) > 997; frame = frame[997:] {
			parts = append(parts, frame[:997])
		}
		cases = append(cases, protocolCase{
			name: fmt.Sprintf("1.%d.8", kind+1), send: append(parts, frame), want: []string{answer(op, payload)},
		})
	}
	return cases
}

// controlCases are 2.*: pings and pongs.
func controlCases() []protocolCase {
	long, odd := strings.Repeat("\xfe", 125), "\x00\xff\xfe\xfd\xfc\xfb\x00\xff"
	var pings string
	var pongs []string
	for i := range 10 {
		payload := fmt.Sprintf("payload-%d", i)
		pings += whole(framePing, payload)
		pongs = append(pongs, answer(framePong, payload))
	}
	return []protocolCase{
		{name: "2.1", send: []string{whole(framePing, "")}, want: []string{answer(framePong, "")}},
		{name: "2.2", send: []string{whole(framePing, "Hello, world!")}, want: []string{answer(framePong, "Hello, world!")}},
		{name: "2.3", send: []string{whole(framePing, odd)}, want: []string{answer(framePong, odd)}},
		{name: "2.4", send: []string{whole(framePing, long)}, want: []string{answer(framePong, long)}},
		{name: "2.5", send: []string{whole(framePing, long+"\xfe")}, code: 1002},
		{name: "2.6", send: []string{whole(framePing, long)}, chop: true, want: []string{answer(framePong, long)}},
		{name: "2.7", send: []string{whole(framePong, "")}},
		{name: "2.8", send: []string{whole(framePong, "unasked")}},
		{name: "2.9", send: []string{whole(framePong, "unasked"), whole(framePing, "asked")}, want: []string{answer(framePong, "asked")}},
		{name: "2.10", send: []string{pings}, want: pongs},
		{name: "2.11", send: []string{pings}, chop: true, want: pongs},
	}
}

// reservedCases are 3.* and 4.*: reserved bits and opcodes.
func reservedCases() []protocolCase {
	rsv := func(bits, op byte, payload string) string { return masked(frameFin|bits<<4|op, payload) }
	hello, echo, ping := whole(frameText, "Hello"), []string{answer(frameText, "Hello")}, whole(framePing, "")
	cases := []protocolCase{
		{name: "3.1", send: []string{rsv(1, frameText, "Hello")}, code: 1002},
		{name: "3.2", send: []string{hello, rsv(2, frameText, "Hello"), ping}, want: echo, code: 1002},
		{name: "3.3", send: []string{hello + rsv(3, frameText, "Hello") + ping}, want: echo, code: 1002},
		{name: "3.4", send: []string{hello, rsv(4, frameText, "Hello"), ping}, chop: true, want: echo, code: 1002},
		{name: "3.5", send: []string{rsv(5, frameBinary, "\x00\xff")}, code: 1002},
		{name: "3.6", send: []string{rsv(6, framePing, "Hello")}, code: 1002},
		{name: "3.7", send: []string{rsv(7, frameClose, "")}, code: 1002},
	}
	for i, op := range []byte{3, 4, 5, 6, 7, 11, 12, 13, 14, 15} {
		send := []string{whole(op, "Hello"[:i%3*2]), ping}
		c := protocolCase{name: fmt.Sprintf("4.%d.%d", i/5+1, i%5+1), send: send, code: 1002}
		if i%5 >= 2 { // behind a message that is answered
			c.send, c.want, c.chop = append([]string{hello}, send...), echo, i%5 == 3
		}
		cases = append(cases, c)
	}
	return cases
}

// fragmentCases are 5.*.
func fragmentCases() []protocolCase {
	one, two := masked(frameText, "fragment1"), masked(frameFin, "fragment2")
	echo, ping := []string{answer(frameText, "fragment1fragment2")}, whole(framePing, "ping")
	pong, hello := answer(framePong, "ping"), whole(frameText, "Hello")
	stray, strayFin := masked(frameCont, "non-continuation"), masked(frameFin, "non-continuation")
	five := []string{masked(frameText, "1"), masked(frameCont, "2"), whole(framePing, "a"),
		masked(frameCont, "3"), masked(frameCont, "4"), whole(framePing, "b"), masked(frameFin, "5")}
	fiveEcho := []string{answer(framePong, "a"), answer(framePong, "b"), answer(frameText, "12345")}
	return []protocolCase{
		{name: "5.1", send: []string{masked(framePing, "a"), masked(frameFin, "b")}, code: 1002},
		{name: "5.2", send: []string{masked(framePong, "a"), masked(frameFin, "b")}, code: 1002},
		{name: "5.3", send: []string{one, two}, want: echo},
		{name: "5.4", send: []string{one + two}, want: echo},
		{name: "5.5", send: []string{one, two}, chop: true, want: echo},
		{name: "5.6", send: []string{one, ping, two}, want: []string{pong, echo[0]}},
		{name: "5.7", send: []string{one + ping + two}, want: []string{pong, echo[0]}},
		{name: "5.8", send: []string{one, ping, two}, chop: true, want: []string{pong, echo[0]}},
		{name: "5.9", send: []string{strayFin, hello}, code: 1002},
		{name: "5.10", send: []string{strayFin + hello}, code: 1002},
		{name: "5.11", send: []string{strayFin, hello}, chop: true, code: 1002},
		{name: "5.12", send: []string{stray, hello}, code: 1002},
		{name: "5.13", send: []string{stray + hello}, code: 1002},
		{name: "5.14", send: []string{stray, hello}, chop: true, code: 1002},
		{name: "5.15", send: []string{one + two + stray + hello}, want: echo, code: 1002},
		{name: "5.16", send: []string{stray + hello + stray + hello}, code: 1002},
		{name: "5.17", send: []string{strayFin + hello + strayFin + hello}, code: 1002},
		{name: "5.18", send: []string{one, whole(frameText, "fragment2")}, code: 1002},
		{name: "5.19", send: five, want: fiveEcho},
		{name: "5.20", send: []string{strings.Join(five, "")}, want: fiveEcho},
	}
}

// sizeCases are 9.* and 10.*, as far as the default limits go, with messages of at
// most a size.
func sizeCases(largest int) []protocolCase {
	var cases []protocolCase
	big := repeat(largest)
	for kind, op := range []byte{frameText, frameBinary} {
		for i, n := range []int{64 << 10, 256 << 10, largest} {
			cases = append(cases, protocolCase{
				name: fmt.Sprintf("9.%d.%d", kind+1, i+1),
				send: []string{whole(op, big[:n])}, want: []string{answer(op, big[:n])},
			})
		}
		for i, n := range []int{64, 1024, 64 << 10, largest} {
			message := big[:min(len(big), n<<12)]
			cases = append(cases, protocolCase{
				name: fmt.Sprintf("9.%d.%d", kind+3, i+1),
				send: fragments(op, message, n), want: []string{answer(op, message)},
			})
		}
	}
	var many, echoes []string
	for i := range 200 {
		many = append(many, whole(frameText, repeat(i)))
		echoes = append(echoes, answer(frameText, repeat(i)))
	}
	return append(cases,
		protocolCase{name: "9.7", send: many, want: echoes},
		protocolCase{name: "10.1.1", send: fragments(frameText, big[:65536], 1300), want: []string{answer(frameText, big[:65536])}},
	)
}
