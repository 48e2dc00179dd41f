package server

import (
	"net/http"
	"strings"
)

// A coding is a content coding (RFC 9110 §8.4.1) that the server can send.
type coding uint8

const (
	identity coding = iota
	gzipCoding
	zstdCoding
	brotliCoding
	codings
)

// codingNames are as in Content-Encoding and Accept-Encoding.
var codingNames = [codings]string{"identity", "gzip", "zstd", "br"}

// codingHeaders are values of Content-Encoding, shared and never changed.
var codingHeaders = [codings][]string{nil, {"gzip"}, {"zstd"}, {"br"}}

// An acceptable is what a client takes: the weight of each coding in thousandths, 0
// for one that it refuses.
type acceptable [codings]int16

// implied is the weight of identity when nobody speaks of it: allowed, and less
// than anything that was asked for (RFC 9110 §12.5.3).
const implied = -1

// parseAccept reads Accept-Encoding. A client without it gets identity.
func parseAccept(lines []string) acceptable {
	const unset = -2
	a := acceptable{unset, unset, unset, unset}
	var others int16 = unset // of "*"
	for _, line := range lines {
		for line != "" {
			var element string
			element, line, _ = strings.Cut(line, ",")
			name, parameters, _ := strings.Cut(element, ";")
			weight := parseWeight(parameters)
			switch name = strings.Trim(name, " \t"); {
			case name == "*":
				others = weight
			case strings.EqualFold(name, "x-gzip"): // RFC 9110 §8.4.1.3
				a[gzipCoding] = weight
			default:
				for c := range a {
					if strings.EqualFold(name, codingNames[c]) {
						a[c] = weight
					}
				}
			}
		}
	}
	for c := range a {
		switch {
		case a[c] != unset:
		case coding(c) == identity && others != 0:
			a[c] = implied
		default:
			a[c] = max(0, others)
		}
	}
	return a
}

// parseWeight reads ";q=0.5" as 500 (RFC 9110 §12.4.2), without its semicolon. No
// weight is 1000, one that is none is 0: nothing is sent to somebody who may not
// have asked for it.
func parseWeight(parameters string) int16 {
	p := strings.Trim(parameters, " \t")
	if p == "" {
		return 1000
	}
	if len(p) < 3 || p[0]|0x20 != 'q' || p[1] != '=' {
		return 0
	}
	whole, fraction, _ := strings.Cut(p[2:], ".")
	if whole != "0" && whole != "1" || len(fraction) > 3 {
		return 0
	}
	weight, unit := int16(whole[0]-'0')*1000, int16(100)
	for _, digit := range []byte(fraction) {
		if digit < '0' || digit > '9' {
			return 0
		}
		weight += int16(digit-'0') * unit
		unit /= 10
	}
	if weight > 1000 {
		return 0
	}
	return weight
}

// best returns the coding that the client likes best of those offered, the first
// of equals. It reports false when there is none: then identity is refused, too.
func (a acceptable) best(offered ...coding) (coding, bool) {
	best, found := identity, a[identity] != 0
	weight := a[identity]
	for _, c := range offered {
		if a[c] > 0 && (a[c] > weight || best == identity && a[c] >= weight) {
			best, weight, found = c, a[c], true
		}
	}
	return best, found
}

// addVary makes caches tell the answers apart by a header field of the request.
func addVary(h http.Header, field string) {
	for _, line := range h["Vary"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name == "*" || strings.EqualFold(name, field) {
				return
			}
		}
	}
	if len(h["Vary"]) == 0 && field == "Accept-Encoding" {
		h["Vary"] = varyEncoding
		return
	}
	h.Add("Vary", field)
}

var varyEncoding = []string{"Accept-Encoding"}

// hasDirective reports whether a list such as Cache-Control's has a directive.
func hasDirective(lines []string, directive string) bool {
	for _, line := range lines {
		for name := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(name), directive) {
				return true
			}
		}
	}
	return false
}
