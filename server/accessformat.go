package server

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// accessFormats append the line of an entry, newline included. Whatever a client
// sent, it is one line with as many fields as any other.
var accessFormats = map[string]func(b []byte, e *entry) []byte{
	AccessBrief:    appendBrief,
	AccessCommon:   appendCommon,
	AccessCombined: appendCombined,
	AccessJSON:     appendJSON,
}

// maxField is how much of one field is logged, in bytes: a header may be long.
const maxField = 4 << 10

// appendBrief appends what somebody reads who has the page open in a browser. The
// end of a socket is as in the Common Log Format.
func appendBrief(b []byte, e *entry) []byte {
	method, status, took := e.method, e.status, e.took
	if e.socket != nil {
		method, status, took = "CLOSE", e.socket.Code, e.socket.Duration
	}
	b = e.at.Local().AppendFormat(b, "15:04:05 ")
	b = appendEscaped(b, orHyphen(method), true)
	b = append(b, ' ')
	b = appendEscaped(b, orHyphen(e.target), true)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, briefTime(took)...)
	if e.site != "" && e.site != soleSite {
		b = append(b, ' ')
		b = appendEscaped(b, e.site, true)
	}
	return append(b, '\n')
}

// briefTime has as many digits as anybody compares.
func briefTime(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		d = d.Round(10 * time.Microsecond)
	case d < time.Second:
		d = d.Round(time.Millisecond)
	default:
		d = d.Round(10 * time.Millisecond)
	}
	return d.String()
}

func appendCommon(b []byte, e *entry) []byte {
	return append(appendSocket(appendRequest(b, e), e), '\n')
}

func appendCombined(b []byte, e *entry) []byte {
	b = appendRequest(b, e)
	b = append(b, ` "`...)
	b = appendEscaped(b, orHyphen(e.referer), false)
	b = append(b, `" "`...)
	b = appendEscaped(b, orHyphen(e.agent), false)
	b = append(b, '"')
	return append(appendSocket(b, e), '\n')
}

// appendRequest appends the Common Log Format. The end of a socket has CLOSE for
// a method and its close code for a status.
func appendRequest(b []byte, e *entry) []byte {
	b = appendEscaped(b, orHyphen(e.addr), true)
	b = append(b, " - "...) // identd's user
	b = appendEscaped(b, orHyphen(e.user), true)
	b = append(b, " ["...)
	b = e.at.AppendFormat(b, "02/Jan/2006:15:04:05 -0700")
	b = append(b, `] "`...)
	switch {
	case e.method == "" && e.target == "":
		b = append(b, '-') // nobody knows
	default:
		if e.socket != nil {
			b = append(b, "CLOSE"...)
		} else {
			b = appendEscaped(b, e.method, false)
		}
		b = append(b, ' ')
		b = appendEscaped(b, e.target, false)
		b = append(b, ' ')
		b = appendEscaped(b, e.proto, false)
	}
	b = append(b, `" `...)
	status, size := e.status, e.bytes
	if e.socket != nil {
		status, size = e.socket.Code, e.socket.BytesOut
	}
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	if size == 0 {
		return append(b, '-')
	}
	return strconv.AppendInt(b, size, 10)
}

// appendSocket appends what else there is to say about a socket's end.
func appendSocket(b []byte, e *entry) []byte {
	c := e.socket
	if c == nil {
		return b
	}
	b = append(b, " cause="...)
	b = append(b, c.Cause...)
	b = append(b, " duration="...)
	b = appendSeconds(b, c.Duration)
	for _, n := range []struct {
		name  string
		value int64
	}{{" frames_in=", c.FramesIn}, {" frames_out=", c.FramesOut}, {" bytes_in=", c.BytesIn}, {" bytes_out=", c.BytesOut}} {
		b = append(b, n.name...)
		b = strconv.AppendInt(b, n.value, 10)
	}
	return b
}

func orHyphen(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

const hexDigits = "0123456789abcdef"

// appendEscaped appends text as Apache does: what is not printable ASCII as \xhh,
// and a backslash before quotes and backslashes. A word has no spaces either.
func appendEscaped(b []byte, s string, word bool) []byte {
	for i := range min(len(s), maxField) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c > '~' || c == ' ' && word:
			b = append(b, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, c)
		}
	}
	return b
}

// appendSeconds appends a time in seconds, to the microsecond.
func appendSeconds(b []byte, d time.Duration) []byte {
	return strconv.AppendFloat(b, d.Seconds(), 'f', 6, 64)
}

// appendJSON appends an object. Names are there when they have something to say.
func appendJSON(b []byte, e *entry) []byte {
	b = append(b, `{"time":"`...)
	b = e.at.AppendFormat(b, "2006-01-02T15:04:05.000Z07:00")
	b = append(b, '"')
	text := func(name, s string) {
		if s != "" {
			b = appendName(b, name)
			b = appendString(b, s)
		}
	}
	number := func(name string, n int64) {
		b = appendName(b, name)
		b = strconv.AppendInt(b, n, 10)
	}
	seconds := func(name string, d time.Duration) {
		b = appendName(b, name)
		b = appendSeconds(b, d)
	}
	if e.socket != nil {
		text("event", "close")
	}
	text("request", e.id)
	text("site", e.site)
	text("addr", e.addr)
	text("port", e.port)
	text("user", e.user)
	text("method", e.method)
	text("target", e.target)
	text("proto", e.proto)
	text("tls", e.tls)
	text("host", e.host)
	if c := e.socket; c != nil {
		number("code", int64(c.Code))
		text("reason", c.Reason)
		text("cause", string(c.Cause))
		seconds("duration", c.Duration)
		number("frames_in", c.FramesIn)
		number("frames_out", c.FramesOut)
		number("bytes_in", c.BytesIn)
		number("bytes_out", c.BytesOut)
	} else {
		text("handler", handlerNames[e.by])
		number("status", int64(e.status))
		number("bytes", e.bytes)
		seconds("duration", e.took)
		if e.queued > 0 || e.ran > 0 {
			seconds("php", e.ran)
			seconds("queue", e.queued)
		}
		if e.cut {
			b = append(appendName(b, "cut"), "true"...)
		}
	}
	text("referer", e.referer)
	text("agent", e.agent)
	return append(b, "}\n"...)
}

func appendName(b []byte, name string) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

// appendString appends a JSON string (RFC 8259 §7). What is not UTF-8 is replaced.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < min(len(s), maxField); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			i += n
			if r == '\u2028' || r == '\u2029' { // line ends to JavaScript
				b = append(b, `\u202`...)
				b = append(b, hexDigits[r&15])
				continue
			}
			b = utf8.AppendRune(b, r)
			continue
		}
		switch i++; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c == 0x7f:
			b = append(b, `\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
