package server

import (
	"net/netip"
	"strings"
)

// SecurityConfig is [server.security]: whom the server believes.
type SecurityConfig struct {
	// BlockedPaths are URL paths, each with all below it, or globs: they get 403,
	// and so does what leads to one of them.
	BlockedPaths []string `toml:"blocked_paths"`
	// AllowedPHPPaths are the only scripts that are run for pages, by their URL path
	// or a glob; others get 403. Empty means all.
	AllowedPHPPaths []string `toml:"allowed_php_paths"`

	// OpenBasedir keeps the scripts of a site below its document root and its
	// directories for temporary files, uploads and sessions.
	OpenBasedir bool `toml:"open_basedir"`
	// DisableShellExec takes the functions away that start programs.
	DisableShellExec bool `toml:"disable_shell_exec"`
	// MultiTenantHardening takes the functions away by which a script could reach
	// other sites or their workers: signals, users, sockets to anywhere, shared
	// memory, mail() and the control of OPcache.
	MultiTenantHardening bool `toml:"multi_tenant_hardening"`

	// TrustedProxies are the addresses of proxies in front, such as
	// "10.0.0.0/8" or "127.0.0.1". What they say about the client of a request,
	// by X-Forwarded-For and its like, by Forwarded and by X-Request-Id, is
	// believed; from others it is a header like any other. Empty means that
	// nobody is believed.
	TrustedProxies []string `toml:"trusted_proxies"`
	// ProxyHeaders says which header fields of them are believed: one of
	// ProxyHeadersAny, ProxyHeadersX and ProxyHeadersForwarded.
	ProxyHeaders string `toml:"proxy_headers"`
	// ProxyHost lets them name the host of a request by X-Forwarded-Host or
	// Forwarded. Off, it is the Host that they send.
	ProxyHost bool `toml:"proxy_host"`
}

// The values of SecurityConfig.ProxyHeaders.
const (
	ProxyHeadersAny       = "any"         // X-Forwarded-For and its like, or Forwarded when there is none
	ProxyHeadersX         = "x-forwarded" // X-Forwarded-For, -Proto, -Port and -Host
	ProxyHeadersForwarded = "forwarded"   // Forwarded, RFC 7239
)

func defaultSecurity() SecurityConfig {
	return SecurityConfig{ProxyHeaders: ProxyHeadersAny}
}

func (k *checks) security(c SecurityConfig) {
	for _, text := range c.TrustedProxies {
		if _, err := parsePrefix(text); err != nil {
			k.add("server.security.trusted_proxies", `%q is neither an address such as "192.0.2.1" nor a network such as "10.0.0.0/8"`, text)
		}
	}
	k.oneOf("server.security.proxy_headers", c.ProxyHeaders, ProxyHeadersAny, ProxyHeadersX, ProxyHeadersForwarded)
}

// parsePrefix reads a network in CIDR notation, or one address.
func parsePrefix(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		ip, err := netip.ParseAddr(text)
		ip = ip.Unmap().WithZone("")
		return netip.PrefixFrom(ip, ip.BitLen()), err
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}
