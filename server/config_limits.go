package server

import (
	"errors"
	"fmt"
	"math"
	"syscall"
)

// LimitsConfig is [server.limits]: what one client, and all of them together, may
// take.
type LimitsConfig struct {
	// MaxConnections limits the connections of clients, WebSockets among them.
	// At the limit the oldest connection that has not yet sent a whole request
	// is closed for a new one; if there is none, the new one is answered with
	// 503. Zero means nine tenths of the descriptors that the process may
	// have (RLIMIT_NOFILE).
	MaxConnections int `toml:"max_connections"`
	// PerIPMaxConnections limits those of one client address, or of one /64 of
	// IPv6; one more is answered with 503. Trusted proxies are exempt. Zero
	// means no limit.
	PerIPMaxConnections int `toml:"per_ip_max_connections"`
	// PerIPRate limits the requests of one client address, or of one /64 of
	// IPv6, a second; more are answered with 429. Zero means no limit.
	PerIPRate Rate `toml:"per_ip_rate"`
	// PerIPBurst is how many may come at once. It must be at least 1.
	PerIPBurst int `toml:"per_ip_burst"`
	// PerSiteRate limits the pages and connect events that run PHP for one
	// site, a second; more are answered with 429. Zero means no limit.
	PerSiteRate Rate `toml:"per_site_rate"`
	// PerSiteBurst is how many may come at once. It must be at least 1.
	PerSiteBurst int `toml:"per_site_burst"`
	// MinDataRate is how fast a client must send a request body and take its
	// answer, in bytes a second over the time of Timeouts.Idle; slower ones are
	// cut. Zero means that each byte is enough to be waited for.
	MinDataRate Size `toml:"min_data_rate"`
}

func defaultLimits() LimitsConfig {
	return LimitsConfig{PerIPBurst: 50, PerSiteBurst: 20, MinDataRate: 240}
}

// SiteLimitsConfig is [site.limits].
type SiteLimitsConfig struct {
	// PerSiteRate and PerSiteBurst are those of [server.limits]. Nil means that it
	// decides.
	PerSiteRate  *Rate `toml:"per_site_rate"`
	PerSiteBurst *int  `toml:"per_site_burst"`
	// PerIPRate limits the requests of one client address to the site, a second,
	// beside what [server.limits] allows it in all; more are answered with 429.
	// Nil and zero mean no limit of its own.
	PerIPRate *Rate `toml:"per_ip_rate"`
	// PerIPBurst is how many may come at once. It must be at least 1. Nil means
	// that of [server.limits].
	PerIPBurst *int `toml:"per_ip_burst"`
}

// clientBuckets are for the rate of one address at the site; nil when it has none of
// its own.
func (s SiteLimitsConfig) clientBuckets(c LimitsConfig) *buckets {
	if s.PerIPRate == nil {
		return nil
	}
	burst := c.PerIPBurst
	replace(&burst, s.PerIPBurst)
	return newBuckets(*s.PerIPRate, burst)
}

// limits checks the bursts of the server, or of a site, which may be nil.
func (k *checks) limits(key string, perIP, perSite *int) {
	if perIP != nil && *perIP == 0 {
		k.add(key+".per_ip_burst", "must be at least 1; per_ip_rate = 0 is no limit")
	}
	if perSite != nil && *perSite == 0 {
		k.add(key+".per_site_burst", "must be at least 1; per_site_rate = 0 is no limit")
	}
}

// maxConnections is MaxConnections with its zero worked out.
func (c LimitsConfig) maxConnections() int {
	if c.MaxConnections > 0 {
		return c.MaxConnections
	}
	return max(1, descriptors()/10*9)
}

// descriptors is how many descriptors the process may have. Go's start has raised
// the limit as far as it may.
func descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil { // cannot fail
		return 1024
	}
	return int(min(limit.Cur, math.MaxInt32))
}

// A Rate is a number a second. In a file it is an integer or a fraction.
type Rate float64

// UnmarshalTOML sets the rate from a number.
func (r *Rate) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case int64:
		*r = Rate(v)
		return nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%v is not a number a second", v)
		}
		*r = Rate(v)
		return nil
	}
	return errors.New("want a number a second, such as 10 or 0.5")
}
