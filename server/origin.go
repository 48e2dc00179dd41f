package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// sameOrigin reports whether the page that opens the socket came from this
// host. The scheme is compared when it is sure to be https: behind a proxy that
// ends TLS and is not trusted, http says nothing. A client that sends no Origin is
// no browser, so nobody else's cookies are at stake.
func sameOrigin(r *http.Request) bool {
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return !crossFetch(r)
	}
	u, err := url.Parse(origins[0])
	if err != nil || len(origins) > 1 || u.Host == "" {
		return false // "null", for one
	}
	p, scheme := peerOf(r), strings.ToLower(u.Scheme)
	if p.secure(r) && scheme != "https" {
		return false
	}
	standard := map[string]string{"http": ":80", "https": ":443"}[scheme]
	same := func(host string) bool {
		return strings.EqualFold(strings.TrimSuffix(u.Host, standard), strings.TrimSuffix(host, standard))
	}
	if same(r.Host) {
		return true
	}
	name, port := splitHostPort(r.Host)
	return port == "" && p.serverPort != "" && same(name+":"+p.serverPort) // a proxy may leave it out of Host
}

// crossFetch reports whether a browser says that a page of another origin had it send
// the request, as it does also without an Origin: for an image, say. It has the cookies
// of the site nevertheless.
func crossFetch(r *http.Request) bool {
	from := r.Header["Sec-Fetch-Site"]
	return len(from) > 0 && (from[0] == "cross-site" || from[0] == "same-site")
}

// allowed reports whether the configuration lets the page's origin in. An empty
// list leaves it to the script.
func allowed(r *http.Request, origins []string) bool {
	if len(origins) == 0 || slices.Contains(origins, SameOrigin) && sameOrigin(r) {
		return true
	}
	sent := r.Header["Origin"]
	if len(sent) == 0 {
		return !crossFetch(r)
	}
	return len(sent) == 1 && slices.ContainsFunc(origins, func(o string) bool { return strings.EqualFold(o, sent[0]) })
}
