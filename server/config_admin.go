package server

// AdminConfig is [server.admin]: a listener for those who run the server.
type AdminConfig struct {
	// Listen is the address of a listener for health, readiness, the requests
	// that run and, when they are enabled, the metrics, which are then no longer
	// on the listeners of clients. It speaks plain HTTP and knows no limits: let
	// nobody else reach it. Empty means none.
	Listen string `toml:"listen"`
	// Pprof serves Go's profiles below /debug/pprof/ there.
	Pprof bool `toml:"pprof"`
}

func (k *checks) admin(c AdminConfig) {
	if c.Listen != "" {
		k.address("server.admin.listen", c.Listen)
	}
	if c.Pprof && c.Listen == "" {
		k.add("server.admin.pprof", "needs listen: profiles are not for clients")
	}
}
