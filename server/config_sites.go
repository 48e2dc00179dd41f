package server

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
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
	// ResolveRoot, IndexFiles, PHPExtensions, Fallback and WebSocketFiles are those
	// of [server]. Nil means that [server] decides.
	ResolveRoot    *bool    `toml:"resolve_root"`
	IndexFiles     []string `toml:"index_files"`
	PHPExtensions  []string `toml:"php_extensions"`
	Fallback       []string `toml:"fallback"`
	WebSocketFiles []string `toml:"websocket_files"`

	// Workers is how many workers the site may use at once, pages and WebSocket
	// events together; neither may take all of them. Zero derives it: of workers
	// that several sites share three quarters, of its own a quarter of what the
	// machine holds.
	Workers Workers `toml:"workers"`
	// Isolation says whose workers run the site's scripts: IsolationShared or
	// IsolationProcess.
	Isolation string `toml:"isolation"`
	// RunAs is the user, or "user:group", that the site's workers run as, with
	// IsolationProcess; RunAsOwner is the owner of Root. The server must run as
	// root, they must not. Empty means the user of the server.
	RunAs string `toml:"run_as"`
	// INI are ini settings of the site's scripts, which beat those of [php].
	// Those that PHP reads only at its start need IsolationProcess.
	INI INITable `toml:"ini"`
	// Env are variables as in [php] env, for this site's scripts alone.
	Env Env `toml:"env"`

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
	Limits    SiteLimitsConfig    `toml:"limits"`
	Request   SiteRequestConfig   `toml:"request"`
	Timeouts  SiteTimeoutsConfig  `toml:"timeouts"`
	Logging   SiteLoggingConfig   `toml:"logging"`
	WebSocket SiteWebSocketConfig `toml:"websocket"`

	fromDirectory bool `toml:"-"` // it comes and goes with a directory of SitesDir
}

// The values of SiteConfig.Isolation. Empty is IsolationShared, or with RunAs
// IsolationProcess.
const (
	IsolationShared  = "shared"  // the workers that other sites use as well
	IsolationProcess = "process" // processes and memory that no other site uses
)

// RunAsOwner is the user and the group that own the site's root.
const RunAsOwner = "owner"

// own reports whether the site has workers that no other site uses.
func (s SiteConfig) own() bool { return s.Isolation == IsolationProcess || s.RunAs != "" }

// SiteTLSConfig is [site.tls].
type SiteTLSConfig struct {
	// Cert and Key are PEM files: the certificate of the site's names with its
	// chain, and its private key. Both empty means that [server.tls] has them.
	Cert string `toml:"cert"`
	Key  string `toml:"key"`
	// ACME obtains certificates for the site's names, but for wildcards and names
	// that are not public. Nil means what [server.tls] acme_sites says.
	ACME *bool `toml:"acme"`
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

// An INITable are ini settings by name. In a file it is a table of strings,
// integers and booleans.
type INITable map[string]string

// UnmarshalTOML sets the table.
func (t *INITable) UnmarshalTOML(v any) error {
	table, ok := v.(map[string]any)
	if !ok {
		return errors.New(`want a table such as { memory_limit = "256M" }`)
	}
	all := INITable{}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		switch value := table[name].(type) {
		case string:
			all[name] = value
		case int64:
			all[name] = strconv.FormatInt(value, 10)
		case bool:
			all[name] = "0"
			if value {
				all[name] = "1"
			}
		case map[string]any:
			return fmt.Errorf(`%s: want a value; a name with a dot stands in quotes: "session.name" = "ID"`, name)
		default:
			return fmt.Errorf("%s: want a string, an integer or a boolean", name)
		}
	}
	*t = all
	return nil
}

// Derive sets what follows from other keys where nobody has set it. isSet tells
// whether a key such as "server.document_root" was set by file, environment or
// flag. Validate expects a configuration for which it was called.
func (c *Config) Derive(isSet func(key string) bool) {
	if c.hasSites() && !isSet("server.document_root") {
		c.Server.DocumentRoot = "" // nobody asked for more than the sites
	}
	c.preview(isSet)
	if c.Server.SitesDir == "" {
		return
	}
	if !isSet("server.websocket.max_connections_per_site") {
		c.Server.WebSocket.MaxConnectionsPerSite = 1000
	}
	for name, value := range map[string]*bool{
		"open_basedir":           &c.Server.Security.OpenBasedir,
		"disable_shell_exec":     &c.Server.Security.DisableShellExec,
		"multi_tenant_hardening": &c.Server.Security.MultiTenantHardening,
	} {
		*value = *value || !isSet("server.security."+name)
	}
}

// hasSites reports whether host names choose between sites.
func (c Config) hasSites() bool { return len(c.Sites) > 0 || c.Server.SitesDir != "" }

// directorySite returns the configuration of a site of SitesDir.
func (c Config) directorySite(name string) SiteConfig {
	return SiteConfig{
		Names:     []string{name},
		Root:      filepath.Join(c.Server.SitesDir, name),
		Isolation: c.Server.SitesIsolation,
		RunAs:     c.Server.SitesRunAs,

		fromDirectory: true,
	}
}

// sharers returns how many sites use the pool that sites share; of SitesDir there
// may be any number.
func (c Config) sharers() int {
	n := 0
	if c.Server.DocumentRoot != "" {
		n++
	}
	for _, s := range c.Sites {
		if !s.own() {
			n++
		}
	}
	if c.Server.SitesDir != "" && !c.directorySite("").own() {
		n += 2
	}
	return n
}

// forSite returns the configuration as the site has it: whatever is made for a
// site is made from this.
func (c Config) forSite(s SiteConfig) Config {
	c.Server.DocumentRoot = s.Root
	override(&c.Server.IndexFiles, s.IndexFiles)
	override(&c.Server.PHPExtensions, s.PHPExtensions)
	override(&c.Server.Fallback, s.Fallback)
	override(&c.Server.WebSocketFiles, s.WebSocketFiles)
	c = c.withRules(s)
	replace(&c.Server.Limits.PerSiteRate, s.Limits.PerSiteRate)
	replace(&c.Server.Limits.PerSiteBurst, s.Limits.PerSiteBurst)
	replace(&c.Server.ResolveRoot, s.ResolveRoot)
	replace(&c.Server.Request.MaxBodySize, s.Request.MaxBodySize)
	replace(&c.Server.Timeouts.Request, s.Timeouts.Request)
	c.Server.WebSocket = s.WebSocket.of(c.Server.WebSocket)
	c.Server.Logging = s.Logging.of(c.Server.Logging)
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

// sites checks the [[site]] tables and what is about all sites.
func (k *checks) sites(c Config) {
	k.sitesDir(c.Server)
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
		k.extensions(key+".php_extensions", s.PHPExtensions)
		k.fallbacks(key+".fallback", s.Fallback)
		if s.WebSocketFiles != nil {
			k.websocketFiles(key+".websocket_files", own.Server)
		}
		k.siteWebSocket(key+".websocket", s.WebSocket)
		k.siteLogging(key+".logging", s.Logging)
		k.isolation(key, s)
		k.siteINI(key+".ini", s)
		k.env(key+".env", s.Env)
		k.keyPair(key+".tls.cert", s.TLS.Cert, key+".tls.key", s.TLS.Key, c.roots())
		k.siteACME(key, s)
		k.limits(key+".limits", s.Limits.PerIPBurst, s.Limits.PerSiteBurst)
	}
}

// sitesDir checks the keys about directories that are sites.
func (k *checks) sitesDir(s ServerConfig) {
	if s.SitesDir != "" {
		k.root("server.sites_dir", s.SitesDir, "")
	}
	if suffix := s.SitesDomainSuffix; suffix != "" {
		if name, ok := hostName(strings.TrimPrefix(suffix, ".")); !ok || "."+name != suffix {
			k.add("server.sites_domain_suffix", `%q is not the end of host names such as ".localhost", in lower case`, suffix)
		}
	}
	k.oneOf("server.sites_isolation", s.SitesIsolation, IsolationShared, IsolationProcess)
	if s.SitesRunAs != "" {
		k.oneOf("server.sites_run_as", s.SitesRunAs, RunAsOwner)
	}
}

// isolation checks whose workers a site has.
func (k *checks) isolation(key string, s SiteConfig) {
	if s.Isolation != "" {
		k.oneOf(key+".isolation", s.Isolation, IsolationShared, IsolationProcess)
	}
	if s.RunAs == "" {
		return
	}
	if s.Isolation == IsolationShared {
		k.add(key+".run_as", `needs workers of the site's own; remove isolation = "shared"`)
	}
	if s.RunAs == RunAsOwner {
		return // whoever that is when the server starts
	}
	if _, err := lookUpUser(s.RunAs); err != nil {
		k.add(key+".run_as", "%v", err)
	}
}

// siteINI checks ini settings. What PHP reads only at its start cannot differ
// between sites that share workers.
func (k *checks) siteINI(key string, s SiteConfig) {
	for _, name := range slices.Sorted(maps.Keys(s.INI)) {
		value := s.INI[name]
		switch {
		case name == "" || strings.ContainsFunc(name, notInININame) || strings.ContainsAny(value, "\r\n\x00"):
			k.add(key, `%q = %q is not a php.ini setting such as memory_limit = "256M"`, name, value)
		case !s.own() && readAtStart(name):
			k.add(key, `%s is read only when PHP starts, and this site shares PHP with others; set isolation = "process" for the site, or %s in [php] ini_overrides for all`, name, name)
		}
	}
}

// readAtStart reports whether PHP reads a setting only at its start.
func readAtStart(name string) bool {
	for _, prefix := range []string{"opcache.", "ffi.", "apc.", "zend."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"disable_functions", "disable_classes", "enable_dl", "extension", "extension_dir",
		"zend_extension", "realpath_cache_size"}, name)
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
