package server

import (
	"fmt"
	"net/netip"
	"strings"
)

// SiteConfig is one [[site]]: a virtual host with its own document root. What it
// leaves out is as [server] and [php] say.
type SiteConfig struct {
	// Names are the host names that the site answers to, without a port. The
	// first is the site's own name, in logs and metrics. "*.example.org" stands
	// for every name below example.org, at any depth; the longest name that
	// fits wins. At least one is needed, and no other site may have it.
	Names []string `toml:"names"`
	// Root is the site's document root. A relative path in a configuration file
	// starts at that file's directory.
	Root string `toml:"root"`
	// ResolveRoot, IndexFiles, Fallback and WebSocketFiles are those of [server].
	// Nil means that [server] decides.
	ResolveRoot    *bool    `toml:"resolve_root"`
	IndexFiles     []string `toml:"index_files"`
	Fallback       []string `toml:"fallback"`
	WebSocketFiles []string `toml:"websocket_files"`

	// ErrorPages are those of [server]. Nil means that [server] decides.
	ErrorPages ErrorPages `toml:"error_pages"`
	// Redirects, Rewrites, Auth and Access are the site's, in place of those of the
	// whole server. Nil means that those apply.
	Redirects []RedirectConfig `toml:"redirect"`
	Rewrites  []RewriteConfig  `toml:"rewrite"`
	Auth      []AuthConfig     `toml:"auth"`
	Access    []AccessConfig   `toml:"access"`

	Response  SiteResponseConfig  `toml:"response"`
	Static    SiteStaticConfig    `toml:"static"`
	Security  SiteSecurityConfig  `toml:"security"`
	TLS       SiteTLSConfig       `toml:"tls"`
	Request   SiteRequestConfig   `toml:"request"`
	Timeouts  SiteTimeoutsConfig  `toml:"timeouts"`
	WebSocket SiteWebSocketConfig `toml:"websocket"`
}

// SiteTLSConfig is [site.tls].
type SiteTLSConfig struct {
	// Cert and Key are PEM files: the certificate of the site's names with its
	// chain, and its private key. Both empty means that [server.tls] has them.
	Cert string `toml:"cert"`
	Key  string `toml:"key"`
}

// SiteRequestConfig is [site.request].
type SiteRequestConfig struct {
	// MaxBodySize is that of [server.request]. Nil means that it decides.
	MaxBodySize *Size `toml:"max_body_size"`
}

// SiteTimeoutsConfig is [site.timeouts].
type SiteTimeoutsConfig struct {
	// Request is that of [server.timeouts]. Nil means that it decides.
	Request *Duration `toml:"request"`
}

// SiteWebSocketConfig is [site.websocket].
type SiteWebSocketConfig struct {
	// MaxConnections limits the sockets of the site; one more is answered with
	// 503. Zero means no limit of its own, nil what [server.websocket]
	// max_connections_per_site says.
	MaxConnections *int `toml:"max_connections"`
	// AllowedOrigins are those of [server.websocket]. Nil means that it decides.
	AllowedOrigins []string `toml:"allowed_origins"`
}

// Derive sets what follows from other keys where nobody has set it. isSet tells
// whether a key such as "server.document_root" was set by file, environment or
// flag. Validate expects a configuration for which it was called.
func (c *Config) Derive(isSet func(key string) bool) {
	if c.hasSites() && !isSet("server.document_root") {
		c.Server.DocumentRoot = "" // nobody asked for more than the sites
	}
}

// hasSites reports whether host names choose between sites.
func (c Config) hasSites() bool { return len(c.Sites) > 0 }

// forSite returns the configuration as the site has it: whatever is made for a
// site is made from this.
func (c Config) forSite(s SiteConfig) Config {
	c.Server.DocumentRoot = s.Root
	override(&c.Server.IndexFiles, s.IndexFiles)
	override(&c.Server.Fallback, s.Fallback)
	override(&c.Server.WebSocketFiles, s.WebSocketFiles)
	override(&c.Server.WebSocket.AllowedOrigins, s.WebSocket.AllowedOrigins)
	c = c.withRules(s)
	replace(&c.Server.ResolveRoot, s.ResolveRoot)
	replace(&c.Server.Request.MaxBodySize, s.Request.MaxBodySize)
	replace(&c.Server.Timeouts.Request, s.Timeouts.Request)
	replace(&c.Server.WebSocket.MaxConnectionsPerSite, s.WebSocket.MaxConnections)
	return c
}

// override replaces a list unless the site has none.
func override[T any](list *[]T, by []T) {
	if by != nil {
		*list = by
	}
}

// replace replaces a value unless the site has none.
func replace[T any](value *T, by *T) {
	if by != nil {
		*value = *by
	}
}

// sites checks the [[site]] tables.
func (k *checks) sites(c Config) {
	taken := map[string]string{} // name to key
	for i, s := range c.Sites {
		key := fmt.Sprintf("site[%d]", i+1)
		if len(s.Names) == 0 {
			k.add(key+".names", `is empty; want host names such as ["example.org", "*.example.org"]`)
		}
		for _, name := range s.Names {
			if !k.hostPattern(key+".names", name) {
				continue
			}
			if first := taken[name]; first != "" {
				k.add(key+".names", "%q is a name of %s already", name, first)
			}
			taken[name] = key
		}
		k.root(key+".root", s.Root, "")
		k.siteRules(key, s)
		own := c.forSite(s)
		k.files(key+".index_files", s.IndexFiles)
		k.fallbacks(key+".fallback", s.Fallback)
		if s.WebSocketFiles != nil {
			k.websocketFiles(key+".websocket_files", own.Server)
		}
		k.origins(key+".websocket.allowed_origins", s.WebSocket.AllowedOrigins)
		k.keyPair(key+".tls.cert", s.TLS.Cert, key+".tls.key", s.TLS.Key, c.roots())
	}
}

// hostPattern checks a host name or a wildcard for such names.
func (k *checks) hostPattern(key, pattern string) bool {
	rest, _ := strings.CutPrefix(pattern, "*.")
	name, ok := hostName(rest)
	switch {
	case pattern == "":
		k.add(key, "a name is empty")
	case strings.Contains(rest, "*"):
		k.add(key, `%q: a "*" stands for whole labels, at the start: "*.example.org"`, pattern)
	case ok && name == rest, isIPv6(pattern):
		return true
	case ok && strings.ToLower(rest) == name:
		k.add(key, "%q is never matched: names are lower case; want %q", pattern, strings.ToLower(pattern))
	case ok:
		k.add(key, "%q is not a bare host name; leave out the port and a dot at the end: %q", pattern, name)
	default:
		k.add(key, "%q is not a host name; want letters, digits, hyphens and dots, international names in their xn-- form", pattern)
	}
	return false
}

// isIPv6 reports whether s is an IPv6 address in its shortest form.
func isIPv6(s string) bool {
	addr, err := netip.ParseAddr(s)
	return err == nil && addr.Is6() && addr.String() == s
}
