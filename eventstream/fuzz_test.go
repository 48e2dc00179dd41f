package eventstream

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzParseMark(f *testing.F) {
	for _, seed := range []string{"e7a-12", "e7a-12-3", "0-0", "", "-", "over", "E7A-1", "e7a-01", "e7a-1-", "123456789-1", "e7a-18446744073709551616"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, ok := ParseMark(s)
		if ok && m.String() != s {
			t.Errorf("ParseMark(%q) = %+v, which is %q", s, m, m)
		}
		if !ok && m != (Mark{}) && s == m.String() {
			t.Errorf("ParseMark(%q) refuses what it wrote", s)
		}
	})
}

// A client gets the text that was sent, but for its line ends, and nothing else.
func FuzzEvent(f *testing.F) {
	for _, seed := range []string{"", "hi", "a\nb", "a\r\n\r\nid: 7\n\nevent: x", "\r", "\n", " x", "\ufeff", "\x00", "data: x\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if got := parse(t, string(NewFrame(payload, true, 0).event())); len(got) != 1 || got[0].kind != "binary" {
			t.Fatalf("%q as binary became %q", payload, got)
		} else if b, err := base64.StdEncoding.DecodeString(got[0].data); err != nil || !bytes.Equal(b, payload) {
			t.Fatalf("%q as binary became %q", payload, b)
		}
		if !utf8.Valid(payload) {
			return
		}
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(payload))
		if got := parse(t, string(NewFrame(payload, false, 0).event())); len(got) != 1 || got[0] != (event{"message", want, ""}) {
			t.Fatalf("%q became %q", payload, got)
		}
	})
}
