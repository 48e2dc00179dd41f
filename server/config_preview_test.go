package server

import "testing"

// derived returns the defaults after a change, as Derive leaves them when some keys
// were set.
func derived(change func(*Config), set ...string) Config {
	c := DefaultConfig()
	change(&c)
	c.Derive(func(key string) bool {
		for _, name := range set {
			if name == key {
				return true
			}
		}
		return false
	})
	return c
}

func TestPreviewSetsLimits(t *testing.T) {
	c := derived(func(c *Config) { c.Server.Preview = true })
	want := LimitsConfig{
		MaxConnections: 256, PerIPMaxConnections: 32, PerIPRate: 10, PerIPBurst: 50, PerSiteRate: 5, PerSiteBurst: 20,
		MinDataRate: DefaultConfig().Server.Limits.MinDataRate,
	}
	if c.Server.Limits != want || c.PHP.OverloadPolicy != OverloadShed {
		t.Errorf("%+v, %s; want %+v, shed", c.Server.Limits, c.PHP.OverloadPolicy, want)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func TestPreviewLeavesWhatWasSet(t *testing.T) {
	c := derived(func(c *Config) {
		c.Server.Preview = true
		c.Server.Limits.PerSiteRate = 50
	}, "server.limits.per_ip_rate", "server.limits.per_site_rate", "php.overload_policy")
	if l := c.Server.Limits; l.PerIPRate != 0 || l.PerSiteRate != 50 || l.PerIPMaxConnections != 32 || c.PHP.OverloadPolicy != OverloadWait {
		t.Errorf("%+v, %s; want what was set, even if to 0", l, c.PHP.OverloadPolicy)
	}
	if c := derived(func(*Config) {}); c.Server.Limits != DefaultConfig().Server.Limits || c.PHP.OverloadPolicy != OverloadWait {
		t.Errorf("without preview: %+v, %s", c.Server.Limits, c.PHP.OverloadPolicy)
	}
}
