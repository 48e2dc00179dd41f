package websocket

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// An extension is one offer of a client (RFC 6455 §9.1).
type extension struct {
	name   string
	params []param
}

// A param may have a value: "name" or "name=value".
type param struct {
	name, value string
	hasValue    bool
}

// parseExtensions reads all lines of Sec-WebSocket-Extensions.
func parseExtensions(lines []string) ([]extension, error) {
	var all []extension
	for _, line := range lines {
		s := scanner{line}
		for {
			s.blanks()
			if s.take(',') { // RFC 9110 §5.6.1.2: empty elements are legal
				continue
			}
			if s.rest == "" {
				break
			}
			e, err := s.extension()
			if err != nil {
				return nil, err
			}
			all = append(all, e)
			if s.rest != "" && !s.take(',') {
				return nil, fmt.Errorf("%q is not a list of extensions", line)
			}
		}
	}
	return all, nil
}

// A scanner reads a header value piece by piece.
type scanner struct{ rest string }

func (s *scanner) blanks() { s.rest = strings.TrimLeft(s.rest, " \t") }

func (s *scanner) take(c byte) bool {
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

var errToken = errors.New("a name or value is not a token")

func (s *scanner) extension() (e extension, err error) {
	if e.name, err = s.token(); err != nil {
		return e, err
	}
	for {
		s.blanks()
		if !s.take(';') {
			return e, nil
		}
		s.blanks()
		var p param
		if p.name, err = s.token(); err != nil {
			return e, err
		}
		s.blanks()
		if s.take('=') {
			s.blanks()
			p.hasValue = true
			if p.value, err = s.value(); err != nil {
				return e, err
			}
		}
		e.params = append(e.params, p)
	}
}

func (s *scanner) token() (string, error) {
	n := 0
	for n < len(s.rest) && isTokenByte(s.rest[n]) {
		n++
	}
	if n == 0 {
		return "", errToken
	}
	token := s.rest[:n]
	s.rest = s.rest[n:]
	return token, nil
}

// value reads a token, which may be quoted.
func (s *scanner) value() (string, error) {
	if !s.take('"') {
		return s.token()
	}
	var b strings.Builder
	for s.rest != "" {
		c := s.rest[0]
		s.rest = s.rest[1:]
		switch {
		case c == '"' && b.Len() > 0:
			return b.String(), nil
		case c == '\\' && s.rest != "":
			c = s.rest[0]
			s.rest = s.rest[1:]
		}
		if !isTokenByte(c) {
			return "", errToken
		}
		b.WriteByte(c)
	}
	return "", errToken
}

// isTokenByte reports whether c may be in a token (RFC 9110 §5.6.2).
func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// A deflateOffer is one offer of permessage-deflate (RFC 7692 §7.1).
type deflateOffer struct {
	serverNoContext, clientNoContext bool
	serverBits                       uint8 // 0: not asked for
}

// deflateOfferOf reports whether e is an offer that can be accepted: one with an
// unknown, repeated or wrong parameter has to be declined.
func deflateOfferOf(e extension) (o deflateOffer, ok bool) {
	if !strings.EqualFold(e.name, "permessage-deflate") {
		return o, false
	}
	seen := map[string]bool{}
	for _, p := range e.params {
		name := strings.ToLower(p.name)
		if seen[name] {
			return o, false
		}
		seen[name] = true
		switch name {
		case "server_no_context_takeover":
			o.serverNoContext, ok = true, !p.hasValue
		case "client_no_context_takeover":
			o.clientNoContext, ok = true, !p.hasValue
		case "server_max_window_bits":
			o.serverBits, ok = windowBits(p.value)
		case "client_max_window_bits":
			_, ok = windowBits(p.value)
			ok = ok || !p.hasValue
		default:
			ok = false
		}
		if !ok {
			return o, false
		}
	}
	return o, true
}

// windowBits reads 8 to 15, without a leading zero.
func windowBits(s string) (uint8, bool) {
	n, err := strconv.ParseUint(s, 10, 8)
	return uint8(n), err == nil && n >= 8 && n <= 15 && s[0] != '0' && s[0] != '+'
}

// answer adds to the header of the answer that accepts r: the subprotocol, which
// the client must have offered, or none, and what is agreed on of the extensions.
func (c *Conn) answer(h http.Header, r *http.Request, subprotocol string) {
	h.Del("Sec-WebSocket-Protocol")
	if subprotocol != "" {
		h.Set("Sec-WebSocket-Protocol", subprotocol)
	}
	h.Del("Sec-WebSocket-Extensions")
	if c.o.Compression == CompressionOff {
		return
	}
	offers, err := parseExtensions(r.Header["Sec-Websocket-Extensions"])
	if err != nil {
		return // CheckHandshake refused it
	}
	for _, e := range offers {
		if o, ok := deflateOfferOf(e); ok {
			h.Set("Sec-WebSocket-Extensions", c.agree(o))
			return
		}
	}
}

// agree takes an offer and returns the answer. Contexts that do not fit into the
// memory for them are declined, which is the server's right for both directions.
func (c *Conn) agree(o deflateOffer) string {
	d := &deflate{bits: 15}
	if o.serverBits != 0 {
		d.bits = o.serverBits
	}
	if c.o.Compression == CompressionContext {
		d.keepOut, d.keepIn = !o.serverNoContext, !o.clientNoContext
		if !c.o.Contexts.take(d.contextSize()) {
			d.keepOut, d.keepIn = false, false
		}
	}
	answer := "permessage-deflate"
	if !d.keepOut {
		answer += "; server_no_context_takeover"
	}
	if !d.keepIn {
		answer += "; client_no_context_takeover"
	}
	if o.serverBits != 0 {
		answer += "; server_max_window_bits=" + strconv.Itoa(int(d.bits))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deflate = d
	return answer
}
