package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// sameOrigin reports whether the page that opens the socket came from this
// host. The scheme is not compared: behind a proxy that ends TLS it differs. A
// client that sends no Origin is no browser, so nobody else's cookies are at
// stake.
func sameOrigin(r *http.Request) bool {
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return true
	}
	u, err := url.Parse(origins[0])
	if err != nil || len(origins) > 1 || u.Host == "" {
		return false // "null", for one
	}
	port := map[string]string{"http": ":80", "https": ":443"}[strings.ToLower(u.Scheme)]
	return strings.EqualFold(strings.TrimSuffix(u.Host, port), strings.TrimSuffix(r.Host, port))
}

// allowed reports whether the configuration lets the page's origin in. An empty
// list leaves it to the script.
func allowed(r *http.Request, origins []string) bool {
	if len(origins) == 0 || slices.Contains(origins, SameOrigin) && sameOrigin(r) {
		return true
	}
	sent := r.Header["Origin"]
	if len(sent) == 0 {
		return true
	}
	return len(sent) == 1 && slices.ContainsFunc(origins, func(o string) bool { return strings.EqualFold(o, sent[0]) })
}
