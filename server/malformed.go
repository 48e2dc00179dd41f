package server

import (
	"net/http"
	"strconv"
	"strings"
)

// isMalformed reports whether a request of HTTP/2 or HTTP/3 is malformed (RFC 9113
// §8.1.1, RFC 9114 §4.1.2) in a way that net/http and http3.Server let pass. Its
// method, host and length come in fields of their own, which can hold what a line of
// HTTP/1.1 cannot.
func isMalformed(r *http.Request) bool {
	return twoHosts(r) || !isToken(r.Method) || wrongLength(r)
}

// twoHosts reports whether the request names one host in :authority and another in
// Host (RFC 9113 §8.3.1). net/http leaves the latter in the header only for
// HTTP/2 and HTTP/3.
func twoHosts(r *http.Request) bool {
	hosts := r.Header["Host"]
	return len(hosts) > 1 || len(hosts) == 1 && !strings.EqualFold(hosts[0], r.Host)
}

// wrongLength reports whether the request says that it has a body and has none, or says
// what is no length. Other bodies that are longer or shorter than they should be are
// found as they are read.
func wrongLength(r *http.Request) bool {
	lengths := r.Header["Content-Length"]
	if len(lengths) == 0 {
		return false
	}
	n, err := strconv.ParseUint(lengths[0], 10, 63)
	return err != nil || len(lengths) > 1 || r.ContentLength >= 0 && int64(n) != r.ContentLength
}

// isToken reports whether s is a token (RFC 9110 §5.6.2), as methods are.
func isToken(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}
