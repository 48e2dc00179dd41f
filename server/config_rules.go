package server

import (
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// RedirectConfig is one [[redirect]]: what sends clients elsewhere. The first whose
// path fits counts.
type RedirectConfig struct {
	// Path is a URL path in which one "*" may stand for any number of characters:
	// $1 in To. Either this or Regexp is set.
	Path string `toml:"path"`
	// Regexp is a regular expression (RE2) for the whole path, without the query.
	// Its groups are $1 to $9 in To.
	Regexp string `toml:"regexp"`
	// To is a path, or an absolute URL. $uri is the path that was asked for, $host
	// the name of the host, $query_string the query. The query is kept unless To
	// has one.
	To string `toml:"to"`
	// Status is 301, 302, 303, 307 or 308. Zero means 302.
	Status int `toml:"status"`
}

// RewriteConfig is one [[rewrite]]: what is served in place of what was asked for.
// The first whose path fits counts, once.
type RewriteConfig struct {
	// Path and Regexp are as in RedirectConfig.
	Path   string `toml:"path"`
	Regexp string `toml:"regexp"`
	// To is a path; see RedirectConfig.
	To string `toml:"to"`
}

// AuthConfig is one [[auth]]: a part of a site that asks for a name and a password.
// The first whose path fits counts.
type AuthConfig struct {
	// Path is a URL path with all below it, or a glob.
	Path string `toml:"path"`
	// Realm is what browsers show. Empty means "Restricted".
	Realm string `toml:"realm"`
	// Users are lines of an htpasswd file, with bcrypt: "name:$2y$10$…".
	Users []string `toml:"users"`
	// File is an htpasswd file with more of them. It is read again when it
	// changes. A relative path in a configuration file starts at that file's
	// directory.
	File string `toml:"file"`
}

// AccessConfig is one [[access]]: who may reach a part of a site. Every one whose
// path fits must agree.
type AccessConfig struct {
	// Path is a URL path with all below it, or a glob.
	Path string `toml:"path"`
	// Allow and Deny are addresses and networks. Who is in Deny, or not in an Allow
	// that is not empty, gets 403.
	Allow []string `toml:"allow"`
	Deny  []string `toml:"deny"`
}

// rules checks what a site or the server has. prefix is "" or "site[1].".
func (k *checks) rules(prefix string, c Config) {
	for i, r := range c.Redirects {
		key := fmt.Sprintf("%sredirect[%d]", prefix, i+1)
		k.pattern(key, r.Path, r.Regexp)
		if !redirectTarget.MatchString(r.To) {
			k.add(key+".to", `%q is neither a path such as "/new/$1" nor a URL such as "https://example.org/$1", whose host no "$1" may continue`, r.To)
		}
		k.placeholders(key, r.Path, r.Regexp, r.To, "$uri", "$query_string", "$host")
		if !slices.Contains([]int{0, 301, 302, 303, 307, 308}, r.Status) {
			k.add(key+".status", "%d is not one of 301, 302, 303, 307, 308", r.Status)
		}
		if p, err := newPattern(r.Path, r.Regexp); err == nil && r.Regexp == "" && p.matchesItself(r.To) {
			k.add(key+".to", "%q fits path %q again: it would never end", r.To, r.Path)
		}
	}
	for i, r := range c.Rewrites {
		key := fmt.Sprintf("%srewrite[%d]", prefix, i+1)
		k.pattern(key, r.Path, r.Regexp)
		if !strings.HasPrefix(r.To, "/") && !strings.HasPrefix(r.To, "$uri") || strings.ContainsAny(r.To, "#\\\x00") || hasDotDot(r.To) {
			k.add(key+".to", `%q is not a path such as "/index.php"`, r.To)
		}
		k.placeholders(key, r.Path, r.Regexp, r.To, "$uri", "$query_string")
	}
	for i, a := range c.Auth {
		k.auth(fmt.Sprintf("%sauth[%d]", prefix, i+1), a)
	}
	for i, a := range c.Access {
		key := fmt.Sprintf("%saccess[%d]", prefix, i+1)
		k.pathGlob(key+".path", a.Path)
		if len(a.Allow)+len(a.Deny) == 0 {
			k.add(key+".allow", `is empty; want addresses or networks such as "10.0.0.0/8" in allow or deny`)
		}
		k.networks(key+".allow", a.Allow)
		k.networks(key+".deny", a.Deny)
	}
	security := prefix + "security"
	if prefix == "" {
		security = "server.security"
	}
	for _, path := range c.Server.Security.BlockedPaths {
		k.pathGlob(security+".blocked_paths", path)
	}
	for _, path := range c.Server.Security.AllowedPHPPaths {
		k.pathGlob(security+".allowed_php_paths", path)
	}
}

// redirectTarget is a path, or a URL whose host is all its own.
var redirectTarget = regexp.MustCompile(`^(/|\$uri|https?://(\$host|[-A-Za-z0-9.:\[\]]+)(:[0-9]+)?(/|\$uri|$))[!-~]*$`)

func (k *checks) pattern(key, path, expr string) {
	switch {
	case path == "" && expr == "":
		k.add(key+".path", `is empty; want a path such as "/old/*", or regexp`)
		return
	case path != "" && expr != "":
		k.add(key+".regexp", "there is path already; want one of them")
		return
	case path != "" && (!strings.HasPrefix(path, "/") || strings.Count(path, "*") > 1):
		k.add(key+".path", `%q is not a path such as "/old" or "/old/*", with one "*" at most`, path)
		return
	}
	if _, err := newPattern(path, expr); err != nil {
		k.add(key+".regexp", "%v", err)
	}
}

// placeholders checks the variables of a target.
func (k *checks) placeholders(key, path, expr, to string, known ...string) {
	p, err := newPattern(path, expr)
	if err != nil {
		return
	}
	for _, name := range placeholder.FindAllString(to, -1) {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, "$")); err == nil && n >= 1 && n <= 9 && n <= p.groups() {
			continue
		}
		if !slices.Contains(known, name) {
			k.add(key+".to", "%q: there is no %s, only %s and $1 to $%d", to, name, strings.Join(known, ", "), p.groups())
		}
	}
}

func (k *checks) pathGlob(key, path string) {
	if err := checkGlob(path); err != nil {
		k.add(key, "%v", err)
	}
}

func (k *checks) networks(key string, list []string) {
	for _, text := range list {
		if _, err := parsePrefix(text); err != nil {
			k.add(key, `%q is neither an address such as "192.0.2.1" nor a network such as "10.0.0.0/8"`, text)
		}
	}
}

func (k *checks) auth(key string, a AuthConfig) {
	k.pathGlob(key+".path", a.Path)
	if strings.ContainsFunc(a.Realm, notInHeader) || strings.ContainsAny(a.Realm, `"\`) {
		k.add(key+".realm", "%q cannot be sent in a header", a.Realm)
	}
	if len(a.Users) == 0 && a.File == "" {
		k.add(key+".users", `is empty; want lines of "htpasswd -nB", or file`)
	}
	if _, err := parseUsers(a.Users); err != nil {
		k.add(key+".users", "%v", err)
	}
	if a.File == "" {
		return
	}
	text, err := os.ReadFile(a.File)
	if err != nil {
		k.add(key+".file", "%q cannot be read: %v", a.File, err)
	} else if _, err := parseUsers(strings.Split(string(text), "\n")); err != nil {
		k.add(key+".file", "%s: %v", a.File, err)
	}
}

// prefixes reads a checked list.
func prefixes(list []string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range list {
		if p, err := parsePrefix(text); err == nil {
			all = append(all, p)
		}
	}
	return all
}
