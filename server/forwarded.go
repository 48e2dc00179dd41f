package server

import (
	"context"
	"iter"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// proxies are those whose word about a request counts. The zero value trusts
// nobody.
type proxies struct {
	networks []netip.Prefix
	headers  string // one of the ProxyHeaders constants
	host     bool   // they may name the host
}

// newProxies takes a checked configuration.
func newProxies(c SecurityConfig) proxies {
	t := proxies{headers: c.ProxyHeaders, host: c.ProxyHost}
	for _, text := range c.TrustedProxies {
		if p, err := parsePrefix(text); err == nil { // it was checked
			t.networks = append(t.networks, p)
		}
	}
	return t
}

// trusts reports whether an address is a trusted proxy's.
func (t proxies) trusts(ip netip.Addr) bool {
	for _, network := range t.networks {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}

// through returns a request that came from a trusted proxy as the request of the
// client behind it, and any other as it is.
func (t proxies) through(r *http.Request) *http.Request {
	if len(t.networks) == 0 {
		return r
	}
	p := peerOf(r)
	if !p.via {
		return r
	}
	var said word
	x := len(r.Header["X-Forwarded-For"]) > 0
	if t.headers == ProxyHeadersForwarded || t.headers == ProxyHeadersAny && !x && len(r.Header["Forwarded"]) > 0 {
		said = t.forwarded(r.Header, p)
	} else {
		said = t.xForwarded(r.Header, p)
	}
	if said.client == *p && said.host == "" {
		return r
	}
	r = r.WithContext(context.WithValue(r.Context(), peerKey{}, &said.client))
	if t.host && said.host != "" {
		r.Host = said.host
	}
	return r
}

// A word is what proxies say about a request.
type word struct {
	client peer
	host   string // empty: nothing
}

// step takes one more address from the right of a list, which the proxy found so
// far has added. It reports whether the next one can be believed too. What is no
// address, such as "unknown", ends the list: the proxy is the last that is known.
func (t proxies) step(client *peer, node string) bool {
	at, ok := parseNode(node)
	if !ok {
		return false
	}
	client.ip, client.addr, client.port = at.Addr(), at.Addr().String(), ""
	if at.Port() != 0 {
		client.port = strconv.Itoa(int(at.Port()))
	}
	client.proxy = t.trusts(client.ip)
	return client.proxy
}

// xForwarded reads X-Forwarded-For from the right, to the first address that is no
// trusted proxy's: what stands left of it is hearsay.
func (t proxies) xForwarded(h http.Header, from *peer) word {
	said := word{client: *from}
	hop, hops, more := 0, 0, true // hop is the client's place from the right
	for node := range backwards(h["X-Forwarded-For"]) {
		if more {
			hop, more = hops, t.step(&said.client, node)
		}
		hops++
	}
	at := func(field string) string { return atHop(h[field], hop, hops) }
	said.client.scheme = schemeOf(at("X-Forwarded-Proto"))
	said.client.serverPort = portOf(at("X-Forwarded-Port"))
	said.host = hostOf(at("X-Forwarded-Host"))
	return said
}

// atHop returns what a field says of a hop: it has one value for all hops, or one
// for each. Else it has nothing to say.
func atHop(lines []string, hop, hops int) string {
	n, found := 0, ""
	for value := range backwards(lines) {
		if n == 0 || n == hop {
			found = value
		}
		n++
	}
	if n == 1 || n == hops {
		return found
	}
	return ""
}

// forwarded reads Forwarded (RFC 7239) likewise.
func (t proxies) forwarded(h http.Header, from *peer) word {
	said := word{client: *from}
	for element := range backwards(h["Forwarded"]) {
		e, ok := parseForwarded(element)
		if !ok {
			break
		}
		said.client.scheme = schemeOf(e.proto)
		said.host = hostOf(e.host)
		said.client.serverPort = ""
		if _, port := splitHostPort(said.host); port != "" {
			said.client.serverPort = portOf(port)
		}
		if !t.step(&said.client, e.node) {
			break
		}
	}
	return said
}

// A forwardedElement is what one proxy adds (RFC 7239 §4).
type forwardedElement struct{ node, proto, host string }

// parseForwarded reads one element. No value that matters here has a comma or a
// semicolon in it, so both end a value even in quotes: an open quote that the
// client sent cannot swallow what a proxy added behind it.
func parseForwarded(element string) (e forwardedElement, ok bool) {
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(element, ";") {
		name, value, found := strings.Cut(strings.Trim(pair, " \t"), "=")
		name = strings.ToLower(name)
		if !found || seen[name] || !token.MatchString(name) {
			return forwardedElement{}, false
		}
		seen[name] = true
		if value, ok = unquote(value); !ok {
			return forwardedElement{}, false
		}
		switch name {
		case "for":
			e.node = value
		case "proto":
			e.proto = value
		case "host":
			e.host = value
		}
	}
	return e, true
}

// unquote returns the value of a token or quoted-string (RFC 9110 §5.6.4).
func unquote(s string) (string, bool) {
	if !strings.HasPrefix(s, `"`) {
		return s, s != "" && !strings.ContainsAny(s, "\" \t")
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), i == len(s)-1
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", false // no quote at the end
}

// backwards yields the elements of a list that may be spread over several lines
// (RFC 9110 §5.6.1), the last one first. Empty ones do not count.
func backwards(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := len(lines) - 1; i >= 0; i-- {
			for rest, more := lines[i], true; more; {
				comma := strings.LastIndexByte(rest, ',')
				element := strings.Trim(rest[comma+1:], " \t")
				if more = comma >= 0; more {
					rest = rest[:comma]
				}
				if element != "" && !yield(element) {
					return
				}
			}
		}
	}
}

// parseNode reads an address with or without a port; an IPv6 address may have
// brackets. The port is 0 when there is none.
func parseNode(s string) (netip.AddrPort, bool) {
	bare := s
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		bare = s[1 : len(s)-1]
	}
	ip, err := netip.ParseAddr(bare)
	port := uint16(0)
	if err != nil {
		both, e := netip.ParseAddrPort(s)
		ip, port, err = both.Addr(), both.Port(), e
	}
	if err != nil || ip.Zone() != "" {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(ip.Unmap(), port), true
}

func schemeOf(s string) string {
	switch strings.ToLower(s) {
	case "https", "wss":
		return "https"
	case "http", "ws":
		return "http"
	}
	return ""
}

func portOf(s string) string {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// hostOf takes what can be a Host field, and nothing else.
func hostOf(s string) string {
	if len(s) > 255 || strings.ContainsFunc(s, notInHost) {
		return ""
	}
	return s
}

func notInHost(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._:[]", r)
}
