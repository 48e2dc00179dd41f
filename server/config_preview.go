package server

// preview derives what ServerConfig.Preview stands for. A limit that somebody has
// set, if only to 0, stays as it is.
func (c *Config) preview(isSet func(key string) bool) {
	if !c.Server.Preview {
		return
	}
	l := &c.Server.Limits
	for _, preset := range []struct {
		key   string
		apply func()
	}{
		{"server.limits.max_connections", func() { l.MaxConnections = 256 }},
		{"server.limits.per_ip_max_connections", func() { l.PerIPMaxConnections = 32 }},
		{"server.limits.per_ip_rate", func() { l.PerIPRate = 10 }},
		{"server.limits.per_ip_burst", func() { l.PerIPBurst = 50 }},
		{"server.limits.per_site_rate", func() { l.PerSiteRate = 5 }},
		{"server.limits.per_site_burst", func() { l.PerSiteBurst = 20 }},
		{"php.overload_policy", func() { c.PHP.OverloadPolicy = OverloadShed }},
	} {
		if !isSet(preset.key) {
			preset.apply()
		}
	}
}

// previewHeader is X-Ephpm-Preview in every answer of a preview.
var previewHeader = []string{"1"}
