package server

import (
	"net/netip"
	"strings"
)

// maxHostName is the longest host name in bytes (RFC 1035 §2.3.4), without a dot
// at its end, and maxLabel the longest part between two dots.
const (
	maxHostName = 253
	maxLabel    = 63
)

// hostName returns the name in a Host header field (RFC 9110 §7.2): in lower case,
// without port, brackets and one dot at the end. An IPv6 address is in its shortest
// form. It is empty for an empty field, which clients of HTTP/1.0 leave out. It
// reports false for what is no host. The name is for lookups; nothing in it can
// leave a directory, but it is never made part of a path either.
func hostName(field string) (name string, ok bool) {
	if strings.HasPrefix(field, "[") {
		return addressName(field)
	}
	name, port, hasPort := strings.Cut(field, ":")
	if hasPort && !isPort(port) || name == "" && hasPort {
		return "", false
	}
	name = strings.TrimSuffix(name, ".")
	if name == "" {
		return "", field == ""
	}
	if len(name) > maxHostName {
		return "", false
	}
	lower := true
	for i, label := 0, 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '.':
			if label == 0 || i == len(name)-1 {
				return "", false
			}
			label = 0
			continue
		case 'A' <= c && c <= 'Z':
			lower = false
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return "", false
		}
		if label++; label > maxLabel {
			return "", false
		}
	}
	if !lower {
		name = strings.ToLower(name)
	}
	return name, true
}

// addressName is hostName for an address in brackets.
func addressName(field string) (string, bool) {
	inside, port, ok := strings.Cut(field[1:], "]")
	if !ok || port != "" && (port[0] != ':' || !isPort(port[1:])) {
		return "", false
	}
	addr, err := netip.ParseAddr(inside)
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return "", false
	}
	return addr.String(), true
}

// isPort reports whether s is a port, which may be empty (RFC 3986 §3.2.3).
func isPort(s string) bool {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' || len(s) > 5 {
			return false
		}
		n = 10*n + int(s[i]-'0')
	}
	return n < 1<<16
}

// A nameTable finds what belongs to a host name: by the name itself, else by the
// longest wildcard that fits. The zero value has nothing.
type nameTable[T any] struct {
	exact map[string]T
	below map[string]T // by what follows the "*."
}

// set adds a checked pattern.
func (t *nameTable[T]) set(pattern string, v T) {
	if t.exact == nil {
		t.exact, t.below = map[string]T{}, map[string]T{}
	}
	if domain, ok := strings.CutPrefix(pattern, "*."); ok {
		t.below[domain] = v
		return
	}
	t.exact[pattern] = v
}

// find returns what belongs to a name in the form of hostName.
func (t *nameTable[T]) find(name string) (v T, ok bool) {
	if v, ok = t.exact[name]; ok {
		return v, true
	}
	return t.findBelow(name)
}

// findBelow is find for wildcards alone.
func (t *nameTable[T]) findBelow(name string) (v T, ok bool) {
	for len(t.below) > 0 {
		i := strings.IndexByte(name, '.')
		if i < 0 {
			break
		}
		name = name[i+1:]
		if v, ok = t.below[name]; ok {
			return v, true
		}
	}
	return v, false
}

// splitHostPort splits at the last colon that is not part of an IPv6 address.
// Brackets stay. It takes anything: what has no port is all host.
func splitHostPort(s string) (host, port string) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || strings.IndexByte(s[i:], ']') >= 0 {
		return s, ""
	}
	if s[0] != '[' && strings.IndexByte(s, ':') != i {
		return s, "" // an IPv6 address without brackets
	}
	return s[:i], s[i+1:]
}
