package server

// SiteResponseConfig is [site.response]. Nil means that [server.response] decides.
type SiteResponseConfig struct {
	Compression     *bool         `toml:"compression"`
	Headers         []HeaderField `toml:"headers"`
	SetHeaders      []HeaderField `toml:"set_headers"`
	RemoveHeaders   []string      `toml:"remove_headers"`
	InterceptErrors *bool         `toml:"intercept_errors"`
}

// SiteStaticConfig is [site.static]. Nil means that [server.static] decides.
type SiteStaticConfig struct {
	CacheControl *string     `toml:"cache_control"`
	CacheRules   []CacheRule `toml:"cache_rules"`
	MIMETypes    MIMETypes   `toml:"mime_types"`
	Autoindex    *bool       `toml:"autoindex"`
	HiddenFiles  *string     `toml:"hidden_files"`
}

// SiteSecurityConfig is [site.security]. Nil means that [server.security] decides.
type SiteSecurityConfig struct {
	BlockedPaths    []string `toml:"blocked_paths"`
	AllowedPHPPaths []string `toml:"allowed_php_paths"`
}

// withRules returns the configuration with the site's files and rules.
func (c Config) withRules(s SiteConfig) Config {
	if s.ErrorPages != nil {
		c.Server.ErrorPages = s.ErrorPages
	}
	override(&c.Redirects, s.Redirects)
	override(&c.Rewrites, s.Rewrites)
	override(&c.Auth, s.Auth)
	override(&c.Access, s.Access)

	replace(&c.Server.Response.Compression, s.Response.Compression)
	override(&c.Server.Response.Headers, s.Response.Headers)
	override(&c.Server.Response.SetHeaders, s.Response.SetHeaders)
	override(&c.Server.Response.RemoveHeaders, s.Response.RemoveHeaders)
	replace(&c.Server.Response.InterceptErrors, s.Response.InterceptErrors)

	replace(&c.Server.Static.CacheControl, s.Static.CacheControl)
	override(&c.Server.Static.CacheRules, s.Static.CacheRules)
	if s.Static.MIMETypes != nil {
		c.Server.Static.MIMETypes = s.Static.MIMETypes
	}
	replace(&c.Server.Static.Autoindex, s.Static.Autoindex)
	replace(&c.Server.Static.HiddenFiles, s.Static.HiddenFiles)

	override(&c.Server.Security.BlockedPaths, s.Security.BlockedPaths)
	override(&c.Server.Security.AllowedPHPPaths, s.Security.AllowedPHPPaths)
	return c
}

// siteRules checks what a site has of its own.
func (k *checks) siteRules(key string, s SiteConfig) {
	own := DefaultConfig().withRules(s)
	k.errorPages(key+".error_pages", own.Server.ErrorPages)
	k.response(key+".response", own.Server.Response)
	k.static(key+".static", own.Server.Static)
	k.rules(key+".", own)
}
