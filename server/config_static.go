package server

import (
	"maps"
	"slices"
	"strings"
)

// StaticConfig is [server.static]: how files are served.
type StaticConfig struct {
	// CacheControl is the Cache-Control header of static files. Empty means
	// none is sent.
	CacheControl string `toml:"cache_control"`
	// CacheRules give files of their own Cache-Control by their URL path; the
	// first that matches counts, and CacheControl when none does.
	CacheRules []CacheRule `toml:"cache_rules"`
	// ETag sends an entity tag with files.
	ETag bool `toml:"etag"`
	// Precompressed sends "name.br", "name.zst" or "name.gz" in place of a file to
	// clients that accept it, unless it is older than the file.
	Precompressed bool `toml:"precompressed"`
	// MIMETypes are Content-Types by extension, which beat those that the server
	// knows.
	MIMETypes MIMETypes `toml:"mime_types"`
	// Autoindex lists the files of a directory without an index file.
	Autoindex bool `toml:"autoindex"`
	// HiddenFiles says what becomes of a path with a segment that starts with
	// a dot: one of HiddenDeny, HiddenIgnore and HiddenAllow.
	HiddenFiles string `toml:"hidden_files"`
}

// The values of StaticConfig.HiddenFiles.
const (
	HiddenDeny   = "deny"   // 403
	HiddenIgnore = "ignore" // 404
	HiddenAllow  = "allow"  // served like any other
)

func defaultStatic() StaticConfig {
	return StaticConfig{ETag: true, Precompressed: true, HiddenFiles: HiddenDeny}
}

// A CacheRule is the Cache-Control of paths that match a glob. In a file it is a
// pair: ["/assets/*", "public, max-age=31536000, immutable"].
type CacheRule struct{ Path, Value string }

// UnmarshalTOML sets the rule from a pair of strings.
func (r *CacheRule) UnmarshalTOML(v any) error {
	path, value, err := pair(v, `["/assets/*", "public, max-age=31536000, immutable"]`)
	if err == nil {
		*r = CacheRule{Path: path, Value: value}
	}
	return err
}

// MIMETypes are Content-Types by extension, such as ".foo". In a file it is a table
// of strings.
type MIMETypes map[string]string

// UnmarshalTOML sets the types from a table. The dot may be left out.
func (m *MIMETypes) UnmarshalTOML(v any) error {
	table, err := stringTable(v, `{ foo = "text/x-foo; charset=utf-8" }`)
	if err != nil {
		return err
	}
	all := MIMETypes{}
	for ext, kind := range table {
		all["."+strings.ToLower(strings.TrimPrefix(ext, "."))] = kind
	}
	*m = all
	return nil
}

func (k *checks) static(key string, c StaticConfig) {
	if strings.ContainsFunc(c.CacheControl, notInHeader) {
		k.add(key+".cache_control", "%q cannot be sent as a header", c.CacheControl)
	}
	for i, r := range c.CacheRules {
		if err := checkGlob(r.Path); err != nil {
			k.add(key+".cache_rules", "entry %d: %v", i+1, err)
		}
		if strings.ContainsFunc(r.Value, notInHeader) {
			k.add(key+".cache_rules", "entry %d: %q cannot be sent as a header", i+1, r.Value)
		}
	}
	for _, ext := range slices.Sorted(maps.Keys(c.MIMETypes)) {
		kind := c.MIMETypes[ext]
		if len(ext) < 2 || strings.ContainsAny(ext[1:], "./") {
			k.add(key+".mime_types", `%q is not an extension such as "foo"`, ext)
		}
		if main, sub, ok := strings.Cut(kind, "/"); !ok || !token.MatchString(main) || sub == "" || strings.ContainsFunc(kind, notInHeader) {
			k.add(key+".mime_types", `%s: %q is not a type such as "text/plain; charset=utf-8"`, ext, kind)
		}
	}
	k.oneOf(key+".hidden_files", c.HiddenFiles, HiddenDeny, HiddenIgnore, HiddenAllow)
}
