package server

import (
	"net/http"
	"strconv"
	"strings"
)

// challengePath is where HTTP-01 challenges are asked for (RFC 8555 §8.3).
const challengePath = "/.well-known/acme-challenge/"

// A tlsRedirect sends clients of the plain listeners to TLS.
type tlsRedirect struct {
	port string // with a colon first; empty for 443
}

// newTLSRedirect returns the redirect to a port.
func newTLSRedirect(port int) *tlsRedirect {
	if port == 443 {
		return &tlsRedirect{}
	}
	return &tlsRedirect{port: ":" + strconv.Itoa(port)}
}

// applies reports whether a request is to be redirected. Challenges are not: an
// authority asks for them before there is a certificate.
func (t *tlsRedirect) applies(r *http.Request, path string) bool {
	return t != nil && !peerOf(r).secure(r) && !strings.HasPrefix(path, challengePath)
}

// answer sends the client to the same host, path and query; 308 lets it keep its
// method and body. uri is the request target in origin form.
func (t *tlsRedirect) answer(w *response, r *http.Request, uri string) handler {
	host, _ := splitHostPort(r.Host)
	if host == "" { // HTTP/1.0
		if host = peerOf(r).local; strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
	}
	w.Header().Set("Location", "https://"+host+t.port+uri)
	w.fail(http.StatusPermanentRedirect)
	return handlerStatic
}
