package eventstream

import (
	"bytes"
	"encoding/base64"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzParseMark(f *testing.F) {
	for _, seed := range []string{"e7a-12", "e7a-12-3", "0-0", "", "-", "over", "E7A-1", "e7a-01", "e7a-1-", "123456789-1", "e7a-18446744073709551616", "e7a-4.6.9", "e7a-4.6-3", "e7a-4.4", "e7a-4.9.6", "e7a-4.", "e7a-0.1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, ok := ParseMark(s)
		if ok && m.String() != s {
			t.Errorf("ParseMark(%q) = %+v, which is %q", s, m, m)
		}
		if ok && (len(m.Beyond) > MaxBeyond || !slices.IsSorted(m.Beyond) || len(s) > maxMark) {
			t.Errorf("ParseMark(%q) = %+v", s, m)
		}
		if again, still := ParseMark(m.String()); !still || !reflect.DeepEqual(again, m) {
			t.Errorf("ParseMark refuses what it wrote: %q", m)
		}
	})
}

// A client gets the text that was sent, but for its line ends, and nothing else.
func FuzzEvent(f *testing.F) {
	for _, seed := range []string{"", "hi", "a\nb", "a\r\n\r\nid: 7\n\nevent: x", "\r", "\n", " x", "\ufeff", "\x00", "data: x\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if got := parse(t, string(NewFrame(payload, true, Stamp{}).event())); len(got) != 1 || got[0].kind != "binary" {
			t.Fatalf("%q as binary became %q", payload, got)
		} else if b, err := base64.StdEncoding.DecodeString(got[0].data); err != nil || !bytes.Equal(b, payload) {
			t.Fatalf("%q as binary became %q", payload, b)
		}
		if !utf8.Valid(payload) {
			return
		}
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(payload))
		if got := parse(t, string(NewFrame(payload, false, Stamp{}).event())); len(got) != 1 || got[0] != (event{"message", want, ""}) {
			t.Fatalf("%q became %q", payload, got)
		}
	})
}
