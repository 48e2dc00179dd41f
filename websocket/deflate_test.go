package websocket

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
)

func TestOffersAreJudgedStrictly(t *testing.T) {
	for offer, want := range map[string]string{
		"permessage-deflate":                                                 "permessage-deflate",
		"Permessage-Deflate":                                                 "permessage-deflate",
		"permessage-deflate; client_max_window_bits":                         "permessage-deflate",
		"permessage-deflate; client_max_window_bits=8":                       "permessage-deflate",
		`permessage-deflate; client_max_window_bits="10"`:                    "permessage-deflate",
		"permessage-deflate; server_no_context_takeover":                     "permessage-deflate; server_no_context_takeover",
		"permessage-deflate;client_no_context_takeover":                      "permessage-deflate; client_no_context_takeover",
		"permessage-deflate; server_max_window_bits=9":                       "permessage-deflate; server_max_window_bits=9",
		"permessage-deflate; server_max_window_bits=16":                      "",
		"permessage-deflate; server_max_window_bits=7":                       "",
		"permessage-deflate; server_max_window_bits=09":                      "",
		"permessage-deflate; server_max_window_bits=+9":                      "",
		"permessage-deflate; server_max_window_bits":                         "",
		"permessage-deflate; client_max_window_bits=20":                      "",
		"permessage-deflate; server_no_context_takeover=1":                   "",
		"permessage-deflate; unknown":                                        "",
		"permessage-deflate; client_max_window_bits; client_max_window_bits": "",
		"x-webkit-deflate-frame":                                             "",
		"":                                                                   "",
		"foo, permessage-deflate; x, permessage-deflate; server_max_window_bits=10, permessage-deflate": "permessage-deflate; server_max_window_bits=10",
	} {
		o := &Options{Compression: CompressionContext, Contexts: NewContexts(1 << 20)}
		c := newLoop(t).New(o)
		h := http.Header{"Sec-Websocket-Extensions": {"stale"}}
		c.answer(h, &http.Request{Header: http.Header{"Sec-Websocket-Extensions": {offer}}}, "")
		if got := h.Get("Sec-WebSocket-Extensions"); got != want {
			t.Errorf("offer %q is answered with %q, want %q", offer, got, want)
		}
		c.Abandon()
		if used := o.Contexts.used.Load(); used != 0 {
			t.Errorf("offer %q: %d bytes of contexts are kept", offer, used)
		}
	}
}

func TestContextsAreBoundedInAll(t *testing.T) {
	o := &Options{Compression: CompressionContext, Contexts: NewContexts(3 * windowSize)}
	l := newLoop(t)
	answer := func() (*Conn, string) {
		c, h := l.New(o), http.Header{}
		c.answer(h, &http.Request{Header: http.Header{"Sec-Websocket-Extensions": {"permessage-deflate"}}}, "")
		return c, h.Get("Sec-WebSocket-Extensions")
	}
	const none = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
	first, got := answer()
	if got != "permessage-deflate" {
		t.Errorf("with room: %q", got)
	}
	if _, got := answer(); got != none {
		t.Errorf("without room: %q, want %q", got, none)
	}
	first.Abandon()
	first.Abandon()
	if _, got := answer(); got != "permessage-deflate" {
		t.Errorf("with room again: %q", got)
	}
}

// A peer is the client's side of permessage-deflate.
type deflatePeer struct {
	window  []byte
	context bool
}

func (p *deflatePeer) inflate(t *testing.T, frame []byte) string {
	t.Helper()
	payload := frame[len(frame)-payloadLen(frame):]
	if frame[0]&rsvDeflated == 0 {
		return string(payload)
	}
	r := flate.NewReaderDict(strings.NewReader(string(payload)+tail), p.window)
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("inflate: %v", err)
	}
	if p.context {
		p.window = slide(p.window, out, windowSize)
	}
	return string(out)
}

// Whatever is agreed on, and however own and shared messages take turns, the
// client reads what was sent, and a window is never exceeded.
func TestCompressedMessagesAreRead(t *testing.T) {
	for _, context := range []bool{false, true} {
		for _, bits := range []uint8{8, 9, 12, 15} {
			t.Run(fmt.Sprint(context, bits), func(t *testing.T) {
				c := newLoop(t).New(&Options{CompressionThreshold: 8, Stats: &Stats{}})
				c.deflate = &deflate{bits: bits, keepOut: context}
				p := &deflatePeer{context: context}
				r := rand.New(rand.NewPCG(7, uint64(bits)))
				for i := range 200 {
					text := strings.Repeat(fmt.Sprintf(`{"id":%d,"name":"somebody %d"},`, i%7, r.IntN(3)), r.IntN(120))
					frame := c.encodeLocked(Prepare([]byte(text), false), r.IntN(3) == 0)
					if got := p.inflate(t, frame); got != text {
						t.Fatalf("message %d of %d bytes came as %d bytes", i, len(text), len(got))
					}
					if len(c.deflate.out) > 1<<bits {
						t.Fatalf("a context of %d bytes", len(c.deflate.out))
					}
					if len(text) > 1000 && len(frame) > len(text)/2 {
						t.Errorf("%d bytes were compressed to %d", len(text), len(frame))
					}
				}
			})
		}
	}
}

func TestSharedMessageIsCompressedOnce(t *testing.T) {
	m := Prepare([]byte(strings.Repeat("hello ", 100)), false)
	var frames [3][]byte
	for i, bits := range []uint8{15, 15, 10} {
		c := newLoop(t).New(&Options{})
		c.deflate = &deflate{bits: bits, keepOut: i == 1}
		frames[i] = c.encodeLocked(m, true)
	}
	if &frames[0][0] != &frames[1][0] || &frames[0][0] == &frames[2][0] || len(m.deflated) != 2 {
		t.Errorf("compressed %d times, want once for each size of the window", len(m.deflated))
	}
}

func TestSmallAndIncompressiblePayloadsStayPlain(t *testing.T) {
	random := make([]byte, 1000)
	r := rand.NewChaCha8([32]byte{})
	_, _ = r.Read(random)
	c := newLoop(t).New(&Options{CompressionThreshold: 100})
	c.deflate = &deflate{bits: 15, keepOut: true}
	for name, payload := range map[string][]byte{"small": bytes.Repeat([]byte("x"), 99), "random": random, "empty": nil} {
		if frame := c.encodeLocked(Prepare(payload, true), false); frame[0]&rsvDeflated != 0 {
			t.Errorf("%s: it was compressed", name)
		}
	}
	if len(c.deflate.out) != 0 {
		t.Error("what was sent plain is in the context")
	}
}

func squeeze(t *testing.T, payload string, dict []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriterDict(&b, 9, dict)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, payload)
	_ = w.Flush()
	return bytes.TrimSuffix(b.Bytes(), []byte(tail[:4]))
}

func TestInflate(t *testing.T) {
	d := &deflate{keepIn: true}
	var window []byte
	for i := range 50 {
		text := strings.Repeat(fmt.Sprint("message ", i%5), 1+i*17)
		got, err := d.inflate(squeeze(t, text, window), 0)
		if err != nil || string(got) != text {
			t.Fatalf("message %d: %d bytes, %v, want %d", i, len(got), err, len(text))
		}
		window = slide(window, []byte(text), windowSize)
	}
	for name, c := range map[string]struct {
		data  string
		limit int64
		want  string
		err   *failure
	}{
		"RFC 7692 §7.2.3.1":                   {"\xf2\x48\xcd\xc9\xc9\x07\x00", 5, "Hello", nil},
		"no compression, §7.2.3.3":            {"\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00", 5, "Hello", nil},
		"last block, §7.2.3.4":                {"\xf3\x48\xcd\xc9\xc9\x07\x00\x00", 5, "Hello", nil},
		"last block without an empty one":     {"\xf3\x48\xcd\xc9\xc9\x07\x00", 5, "Hello", nil},
		"two blocks, §7.2.3.5":                {"\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00", 5, "Hello", nil},
		"an empty message":                    {"\x02\x00", 1, "", nil},
		"a byte over the limit":               {"\xf2\x48\xcd\xc9\xc9\x07\x00", 4, "", errTooBig},
		"a bomb":                              {string(squeeze(t, strings.Repeat("\x00", 8<<20), nil)), 1 << 20, "", errTooBig},
		"garbage":                             {"\xff\xff\xff", 100, "", errDeflate},
		"a reference to before the beginning": {"\x4b\x04\x42\x00", 100, "", errDeflate},
	} {
		got, err := (&deflate{}).inflate([]byte(c.data), c.limit)
		if err != c.err || string(got) != c.want {
			t.Errorf("%s: %.20q, %v, want %.20q, %v", name, got, err, c.want, c.err)
		}
	}
}

// Reading extensions ends, and offers that are accepted have sane values.
func FuzzExtensions(f *testing.F) {
	f.Add("permessage-deflate; server_max_window_bits=10, foo; a=\"b\\c\"")
	f.Add("permessage-deflate;client_max_window_bits;;")
	f.Add(", ,x;y= z")
	f.Fuzz(func(t *testing.T, line string) {
		all, err := parseExtensions([]string{line})
		if err != nil {
			return
		}
		for _, e := range all {
			if o, ok := deflateOfferOf(e); ok && o.serverBits != 0 && (o.serverBits < 8 || o.serverBits > 15) {
				t.Errorf("%q: %d bits", line, o.serverBits)
			}
			for _, p := range e.params {
				if p.name == "" || p.hasValue && p.value == "" {
					t.Errorf("%q: parameter %+v", line, p)
				}
			}
		}
	})
}

// Nothing that a client sends compressed gets past the limit or breaks the reader.
func FuzzInflate(f *testing.F) {
	f.Add([]byte("\xf2\x48\xcd\xc9\xc9\x07\x00"), []byte("\xf3\x48\xcd\xc9\xc9\x07\x00\x00"))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		d := &deflate{keepIn: true}
		for _, b := range [][]byte{one, two} {
			out, err := d.inflate(bytes.Clone(b), 1000)
			if err == nil && len(out) > 1000 || len(d.in) > windowSize {
				t.Fatalf("%d bytes, context %d", len(out), len(d.in))
			}
			if err != nil {
				return
			}
		}
	})
}
