package e2e

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"strings"
	"testing"
)

const frameRSV1 = 0x40

// A packer is the client's side of permessage-deflate (RFC 7692), by the standard
// library.
type packer struct {
	*frames
	sent, got         []byte // the windows
	keepSent, keepGot bool
	window            int // how far back the server may refer
}

// dialPacked offers extensions and takes what is agreed on.
func (a *app) dialPacked(t *testing.T, offer string) *packer {
	t.Helper()
	return newPacker(t, a.on(t).dialWire("/", "Sec-WebSocket-Extensions: "+offer))
}

// newPacker speaks as the handshake of f says.
func newPacker(t *testing.T, f *frames) *packer {
	t.Helper()
	answer := f.resp.Header.Get("Sec-WebSocket-Extensions")
	p := &packer{frames: f, keepSent: !strings.Contains(answer, "client_no_context"), keepGot: !strings.Contains(answer, "server_no_context"), window: 32 << 10}
	if _, bits, ok := strings.Cut(answer, "server_max_window_bits="); ok {
		var n int
		if _, err := fmt.Sscan(bits, &n); err != nil {
			t.Fatalf("answer %q: %v", answer, err)
		}
		p.window = 1 << n
	}
	return p
}

func slide(window []byte, text string, size int) []byte {
	window = append(window, text...)
	return window[max(0, len(window)-size):]
}

// pack compresses a message.
func (p *packer) pack(text string) string {
	p.t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriterDict(&b, 6, p.sent)
	if err != nil {
		p.t.Fatal(err)
	}
	_, _ = io.WriteString(w, text) // a buffer takes all
	if err := w.Flush(); err != nil {
		p.t.Fatal(err)
	}
	if p.keepSent {
		p.sent = slide(p.sent, text, 32<<10)
	}
	return strings.TrimSuffix(b.String(), "\x00\x00\xff\xff")
}

// recv returns the next message, and whether it came compressed. A window that is
// too small for it is noticed.
func (p *packer) recv() (op byte, text string, packed bool) {
	p.t.Helper()
	first, payload, err := p.tryFrame()
	if err != nil {
		p.t.Fatal(err)
	}
	if first&^frameRSV1&0xF0 != frameFin {
		p.t.Fatalf("frame begins with %#x", first)
	}
	if first&frameRSV1 == 0 {
		return first & 0x0F, payload, false
	}
	all, err := io.ReadAll(flate.NewReaderDict(strings.NewReader(payload+"\x00\x00\xff\xff\x01\x00\x00\xff\xff"), p.got))
	if err != nil {
		p.t.Fatalf("inflate: %v", err)
	}
	if p.keepGot {
		p.got = slide(p.got, string(all), p.window)
	}
	return first & 0x0F, string(all), true
}

func (p *packer) wantText(want string) {
	p.t.Helper()
	if op, got, _ := p.recv(); op != frameText || got != want {
		p.t.Fatalf("received opcode %d with %d bytes %.40q, want text of %d bytes %.40q", op, len(got), got, len(want), want)
	}
}

// jsonLike is text that compresses as such text does.
func jsonLike(i, size int) string {
	var b strings.Builder
	for j := 0; b.Len() < size; j++ {
		fmt.Fprintf(&b, `{"id":%d,"user":"somebody-%d","text":"message %d of %d"},`, i*31+j, j%17, j, i)
	}
	return b.String()[:size]
}

// TestCompression covers the testsuite's sections 12 and 13 over every transport:
// sizes, fragments and every way of agreeing on parameters.
func TestCompression(t *testing.T) {
	t.Parallel()
	const none = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
	for mode, answers := range map[string]map[string]string{
		"no_context_takeover": {
			"permessage-deflate":                                                        none,
			"permessage-deflate; client_max_window_bits":                                none,
			"permessage-deflate; server_max_window_bits=9":                              none + "; server_max_window_bits=9",
			"permessage-deflate; server_no_context_takeover":                            none,
			"permessage-deflate; nonsense, permessage-deflate":                          none,
			"permessage-deflate; server_max_window_bits=7, permessage-bzip2":            "",
			"permessage-deflate; server_no_context_takeover; server_max_window_bits=15": none + "; server_max_window_bits=15",
		},
		"context_takeover": {
			"permessage-deflate":                                                       "permessage-deflate",
			"permessage-deflate; client_no_context_takeover":                           "permessage-deflate; client_no_context_takeover",
			"permessage-deflate; server_no_context_takeover":                           "permessage-deflate; server_no_context_takeover",
			"permessage-deflate; server_max_window_bits=9":                             "permessage-deflate; server_max_window_bits=9",
			"permessage-deflate; server_max_window_bits=15; client_max_window_bits":    "permessage-deflate; server_max_window_bits=15",
			"permessage-deflate; server_no_context_takeover; server_max_window_bits=9": "permessage-deflate; server_no_context_takeover; server_max_window_bits=9",
		},
		"off": {"permessage-deflate": ""},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			e := startEveryHTTP(t, appOptions{Files: protocolSite, TOML: "[server.websocket]\ncompression = \"" + mode + "\"\n"})
			for offer, want := range answers {
				for _, over := range transports {
					t.Run(offer+" over "+over, func(t *testing.T) {
						t.Parallel()
						p := newPacker(t, e.dial(t, over, "Sec-WebSocket-Extensions: "+offer))
						if got := p.resp.Header.Get("Sec-WebSocket-Extensions"); got != want {
							t.Fatalf("%s is answered with %q, want %q", offer, got, want)
						}
						if want != "" {
							p.exchangeAll()
						}
					})
				}
			}
		})
	}
}

// exchangeAll sends messages of all sizes, compressed or not, whole or in
// fragments.
func (p *packer) exchangeAll() {
	p.t.Helper()
	for i, size := range []int{0, 16, 64, 255, 256, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 1000, 300, 20} {
		text := jsonLike(i, size)
		packed := p.pack(text)
		switch i % 3 {
		case 0:
			p.send(masked(frameFin|frameRSV1|frameText, packed))
		case 1: // RSV1 is of the message, in its first frame
			cut := len(packed) / 2
			p.send(masked(frameRSV1|frameText, packed[:cut]) + masked(frameFin|framePing, "between") + masked(frameFin|frameCont, packed[cut:]))
			p.want(framePong, "between")
		case 2:
			parts := fragments(frameText, packed, 37)
			p.send(string([]byte{parts[0][0] | frameRSV1}) + parts[0][1:] + strings.Join(parts[1:], ""))
		}
		op, got, compressed := p.recv()
		if op != frameText || got != text {
			p.t.Fatalf("message of %d bytes came back as opcode %d, %d bytes", size, op, len(got))
		}
		if compressed != (size >= 256) {
			p.t.Errorf("message of %d bytes came back compressed: %v", size, compressed)
		}
		plain := jsonLike(i+100, size)
		p.say(frameText, plain)
		p.wantText(plain)
	}
}

func TestCompressionRules(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: protocolSite, TOML: metricsOn + "[server.websocket]\ncompression = \"context_takeover\"\n"})
	bomb := func(p *packer) string {
		return masked(frameFin|frameRSV1|frameText, p.pack(strings.Repeat("\x00", 2<<20)))
	}
	for name, c := range map[string]struct {
		offer string
		send  func(p *packer) string
		code  int
	}{
		"not agreed on": {"", func(p *packer) string { return masked(frameFin|frameRSV1|frameText, p.pack("x")) }, 1002},
		"ping":          {"permessage-deflate", func(*packer) string { return masked(frameFin|frameRSV1|framePing, "x") }, 1002},
		"continuation": {"permessage-deflate", func(p *packer) string {
			return masked(frameRSV1|frameText, p.pack("x")) + masked(frameFin|frameRSV1, "")
		}, 1002},
		"RSV2":           {"permessage-deflate", func(p *packer) string { return masked(frameFin|0x60|frameText, p.pack("x")) }, 1002},
		"bomb":           {"permessage-deflate", bomb, 1009},
		"broken data":    {"permessage-deflate", func(*packer) string { return masked(frameFin|frameRSV1|frameText, "\xff\xff\xff") }, 1007},
		"text not UTF-8": {"permessage-deflate", func(p *packer) string { return masked(frameFin|frameRSV1|frameText, p.pack("\xff")) }, 1007},
		"binary is no text": {"permessage-deflate", func(p *packer) string {
			return masked(frameFin|frameRSV1|frameBinary, p.pack("\xff")) + masked(frameFin|frameClose, closePayload(1000, ""))
		}, 1000},
		"last block is last": {"permessage-deflate", func(*packer) string {
			return masked(frameFin|frameRSV1|frameText, "\xf3\x48\xcd\xc9\xc9\x07\x00\x00") + masked(frameFin|frameClose, closePayload(1000, ""))
		}, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			p := a.dialPacked(t, c.offer)
			p.send(c.send(p))
			for {
				op, payload, err := p.tryFrame()
				if err != nil {
					t.Fatal(err)
				}
				if op&0x0F != frameClose {
					continue
				}
				if payload[:2] != closePayload(c.code, "") {
					t.Errorf("close frame %q, want %d", payload, c.code)
				}
				return
			}
		})
	}
	if resp, _ := a.exchange(upgradeText("/", "Sec-WebSocket-Extensions: permessage-deflate; =")); resp.StatusCode != 400 {
		t.Errorf("a header that is no list of extensions: %s, want 400", resp.Status)
	}
}

// Members with and without compression, with contexts and without, get the same
// broadcasts in the same order as what is sent to them alone.
func TestBroadcastToMembersOfAllKinds(t *testing.T) {
	t.Parallel()
	a := startPlay(t, "[server.websocket]\ncompression = \"context_takeover\"\ncompression_memory = \"200KiB\"\n")
	var members []*packer
	for i := range 12 {
		offer := []string{"permessage-deflate", "permessage-deflate; server_no_context_takeover", "permessage-deflate; server_max_window_bits=10", ""}[i%4]
		p := a.dialPacked(t, offer)
		p.say(frameText, `ephpm_ws_subscribe('all'); return $id;`)
		p.recv()
		members = append(members, p)
	}
	a.page(`
		$text = fn($i, $n) => substr(str_repeat("message number $i to everybody; ", $n), 0, $n);
		for ($i = 0; $i < 30; $i++) {
			ephpm_ws_broadcast('all', $text($i, 100 * $i));
			foreach (ephpm_ws_members('all') as $id) ephpm_ws_connection_send($id, $text("own $i", 300));
		}`)
	text := func(i string, n int) string { return strings.Repeat("message number "+i+" to everybody; ", n)[:n] }
	for _, p := range members {
		for i := range 30 {
			p.wantText(text(fmt.Sprint(i), 100*i))
			p.wantText(text(fmt.Sprint("own ", i), 300))
		}
	}
	from, err := a.metric("ephpm_ws_deflated_bytes_total")
	if err != nil {
		t.Fatal(err)
	}
	to, err := a.metric("ephpm_ws_deflated_sent_bytes_total")
	if err != nil || from < 100_000 || to > from/3 {
		t.Errorf("%v bytes were compressed to %v, %v", from, to, err)
	}
	a.wantMetric("ephpm_ws_compression_ratio", to/from)
}

// A library's client agrees and understands.
func TestLibraryClientWithCompression(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"no_context_takeover", "context_takeover"} {
		a := startApp(t, appOptions{Files: protocolSite, TOML: "[server.websocket]\ncompression = \"" + mode + "\"\n"})
		s := a.dialCompressed("/")
		for i := range 20 {
			text := jsonLike(i, 100*i)
			s.send(text)
			if got := s.recv(); got != text {
				t.Fatalf("%s: message %d came back as %d bytes", mode, i, len(got))
			}
		}
		s.close()
	}
}
