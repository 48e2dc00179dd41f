package server

import "net/http"

// overLimit answers a request that its client has no right to at the moment, and
// reports whether it did. It costs nothing while there are no limits.
func (s *Server) overLimit(w *response, r *http.Request) bool {
	if s.rates == nil && s.conns.refusing.Load() == 0 {
		return false
	}
	p := peerOf(r)
	if p.conn != nil && p.conn.refused != nil {
		w.Header().Set("Connection", "close") // HTTP/2 ends by it as well
		w.Header().Set("Retry-After", "1")
		w.fail(http.StatusServiceUnavailable)
		return true
	}
	return overRateOf(p, s.rates, w, s.metrics)
}

// overRateOf answers a request over the rate of its client, and reports whether it
// did.
func overRateOf(p *peer, rates *buckets, w *response, m *metrics) bool {
	if p.proxy {
		return false // it did not say who is behind it, or asks for itself
	}
	wait := rates.take(p.ip)
	if wait == 0 {
		return false
	}
	m.rateLimited()
	w.Header().Set("Retry-After", retryAfter(wait))
	w.fail(http.StatusTooManyRequests)
	return true
}

// overRate answers a page for which the site may not run PHP at the moment.
func (s *site) overRate(w *response) bool {
	wait := s.rate.take()
	if wait == 0 {
		return false
	}
	s.metrics.siteRateLimited()
	w.Header().Set("Retry-After", retryAfter(wait))
	w.fail(http.StatusTooManyRequests)
	return true
}
