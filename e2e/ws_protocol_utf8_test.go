package e2e

import (
	"fmt"
	"strings"
)

// utf8Cases are 6.*: text is UTF-8, and what cannot become UTF-8 is refused before
// the rest of it comes.
func utf8Cases() []protocolCase {
	const greek = "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"
	var cases []protocolCase
	add := func(name string, send []string, message string, code int) {
		c := protocolCase{name: name, send: send, code: code}
		if code == 0 {
			c.want = []string{answer(frameText, message)}
		}
		cases = append(cases, c)
	}
	octets := func(s string) []string { return fragments(frameText, s, 1) }

	add("6.1.1", []string{whole(frameText, "")}, "", 0)
	add("6.1.2", []string{masked(frameText, ""), masked(frameCont, ""), masked(frameFin, "")}, "", 0)
	add("6.1.3", []string{masked(frameText, ""), masked(frameCont, "middle"), masked(frameFin, "")}, "middle", 0)
	hello := "Hello-µ@ßöäüàá-UTF-8!!"
	add("6.2.1", []string{whole(frameText, hello)}, hello, 0)
	add("6.2.2", fragments(frameText, hello, 8), hello, 0)
	add("6.2.3", octets(hello), hello, 0)
	add("6.2.4", octets(greek), greek, 0)
	bad := greek + "\xed\xa0\x80edited"
	add("6.3.1", []string{whole(frameText, bad)}, "", 1007)
	add("6.3.2", octets(bad), "", 1007)

	// Fail fast: nothing comes behind what is wrong.
	add("6.4.1", []string{masked(frameText, greek), masked(frameCont, "\xf4\x90\x80\x80")}, "", 1007)
	add("6.4.2", []string{masked(frameText, greek+"\xf4"), masked(frameCont, "\x90")}, "", 1007)
	frame := whole(frameText, greek+"\xf4\x90\x80\x80edited")
	header := len(frame) - len(greek+"\xf4\x90\x80\x80edited")
	add("6.4.3", []string{frame[:header+len(greek)], frame[header+len(greek) : header+len(greek)+4]}, "", 1007)
	add("6.4.4", []string{frame[:header+len(greek)+1], frame[header+len(greek)+1 : header+len(greek)+2]}, "", 1007)

	for number, list := range validText {
		for i, text := range list {
			add(fmt.Sprintf("6.%d.%d", number, i+1), []string{whole(frameText, text)}, text, 0)
			add(fmt.Sprintf("6.%d.%d octets", number, i+1), octets(text), text, 0)
		}
	}
	for number, list := range invalidText {
		for i, text := range list {
			add(fmt.Sprintf("6.%d.%d", number, i+1), []string{whole(frameText, text)}, "", 1007)
			add(fmt.Sprintf("6.%d.%d octets", number, i+1), octets(text), "", 1007)
		}
	}
	return cases
}

// validText and invalidText are Markus Kuhn's stress test by the sections of the
// testsuite.
var validText = map[int][]string{
	5:  {"\xc3\xb1", "\xe2\x82\xa1", "\xf0\x90\x8c\xbc", "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5", "\xe0\xa4\xa3"},
	6:  {"\xce\xba", "\xce\xba\xe1\xbd\xb9", "\xce\xba\xe1\xbd\xb9\xcf\x83"},
	7:  {"\x00", "\xc2\x80", "\xe0\xa0\x80", "\xf0\x90\x80\x80"},
	9:  {"\x7f", "\xdf\xbf", "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf"},
	11: {"\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbd"},
	22: {"\xef\xbf\xbe", "\xf0\x9f\xbf\xbe", "\xf0\xaf\xbf\xbf", "\xf4\x8f\xbf\xbe"},
	23: {"\xef\xbf\xb9", "\xef\xbf\xbc", "\xef\xbf\xbd"},
}

var invalidText = map[int][]string{
	6:  {"\xce\xba\xe1", "\xce\xba\xe1\xbd", "\xce\xba\xe1\xbd\xb9\xcf"},
	8:  {"\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80"},
	10: {"\xf7\xbf\xbf\xbf", "\xfb\xbf\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf\xbf"},
	11: {"\xf4\x90\x80\x80"},
	12: {"\x80", "\xbf", "\x80\xbf", "\x80\xbf\x80", "\x80\xbf\x80\xbf\x80\xbf\x80", continuations()},
	13: {spaced(0xc0, 0xdf), spaced(0xe0, 0xef), spaced(0xf0, 0xf7), spaced(0xf8, 0xfb), spaced(0xfc, 0xfd)},
	14: {"\xc0", "\xe0\x80", "\xf0\x80\x80", "\xf8\x80\x80\x80", "\xdf", "\xef\xbf", "\xf7\xbf\xbf", "\xfb\xbf\xbf\xbf", "\xe2\x82"},
	15: {"\xc0\xe0\x80\xf0\x80\x80\xf8\x80\x80\x80\xfc\x80\x80\x80\x80\xdf\xef\xbf\xf7\xbf\xbf"},
	16: {"\xfe", "\xff", "\xfe\xfe\xff\xff"},
	17: {"\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xf8\x80\x80\x80\xaf"},
	18: {"\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf8\x87\xbf\xbf\xbf"},
	19: {"\xc0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80"},
	20: {"\xed\xa0\x80", "\xed\xad\xbf", "\xed\xae\x80", "\xed\xaf\xbf", "\xed\xb0\x80", "\xed\xbe\x80", "\xed\xbf\xbf"},
	21: {"\xed\xa0\x80\xed\xb0\x80", "\xed\xaf\xbf\xed\xbf\xbf"},
}

func continuations() string {
	var b strings.Builder
	for c := 0x80; c <= 0xbf; c++ {
		b.WriteByte(byte(c))
	}
	return b.String()
}

// spaced are the bytes of a range, a space behind each.
func spaced(from, to byte) string {
	var b strings.Builder
	for c := from; c <= to; c++ {
		b.WriteByte(c)
		b.WriteByte(' ')
	}
	return b.String()
}

// closeCases are 7.*.
func closeCases() []protocolCase {
	bye, hello := whole(frameClose, closePayload(1000, "")), whole(frameText, "Hello")
	echo := []string{answer(frameText, "Hello")}
	big := repeat(256 << 10)
	cases := []protocolCase{
		{name: "7.1.1", send: []string{hello, bye}, want: echo, code: 1000},
		{name: "7.1.2", send: []string{bye, bye}, code: 1000},
		{name: "7.1.3", send: []string{bye, whole(framePing, "")}, code: 1000},
		{name: "7.1.4", send: []string{bye, hello}, code: 1000},
		{name: "7.1.5", send: []string{masked(frameText, "fragment1"), bye, masked(frameFin, "fragment2")}, code: 1000},
		{name: "7.1.6", send: []string{whole(frameText, big), bye, whole(framePing, "")}, want: []string{answer(frameText, big)}, code: 1000},
		{name: "7.3.1", send: []string{whole(frameClose, "")}, code: noCode},
		{name: "7.3.2", send: []string{whole(frameClose, "a")}, code: 1002},
		{name: "7.3.3", send: []string{bye}, code: 1000},
		{name: "7.3.4", send: []string{whole(frameClose, closePayload(1000, "Hello World!"))}, code: 1000},
		{name: "7.3.5", send: []string{whole(frameClose, closePayload(1000, strings.Repeat("*", 123)))}, code: 1000},
		{name: "7.3.6", send: []string{whole(frameClose, closePayload(1000, strings.Repeat("*", 124)))}, code: 1002},
		{name: "7.5.1", send: []string{whole(frameClose, closePayload(1000, "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited"))}, code: 1007},
	}
	for i, code := range []int{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999} {
		cases = append(cases, protocolCase{
			name: fmt.Sprintf("7.7.%d", i+1), send: []string{whole(frameClose, closePayload(code, ""))}, code: code,
		})
	}
	for i, code := range []int{0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535} {
		cases = append(cases, protocolCase{
			name: fmt.Sprintf("7.9.%d", i+1), send: []string{whole(frameClose, closePayload(code, ""))}, code: 1002,
		})
	}
	return cases
}
