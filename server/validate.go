package server

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ephpm/phpbridge"
)

// A KeyError says what is wrong with the value of one key.
type KeyError struct {
	Key  string // such as "server.listen"
	Text string // what is wrong and what to do
}

func (e *KeyError) Error() string { return e.Key + ": " + e.Text }

// Validate returns what keeps the server from running with this configuration:
// nil, or a join of *KeyError, one for each mistake. It looks at the document
// root and at the files that the configuration names.
func (c Config) Validate() error {
	var k checks
	k.noNegatives("", reflect.ValueOf(c))
	k.server(c)
	k.tls(c)
	k.webSocket(c.Server)
	k.php(c.PHP)
	k.kv(c)
	k.rules("", c)
	k.sites(c)
	k.accessFormats(c)
	return errors.Join(k...)
}

// Warnings returns what is allowed but hardly meant, a line each.
func (c Config) Warnings() []string {
	var lines []string
	warn := func(key, format string, args ...any) {
		lines = append(lines, key+": "+fmt.Sprintf(format, args...))
	}
	if c.PHP.OverloadPolicy == OverloadWait && c.PHP.ShedAfter > 0 {
		warn("php.shed_after_ms", `has no effect unless overload_policy is %q`, OverloadShed)
	}
	missingPages("server.error_pages", c.Server.DocumentRoot, c.Server.ErrorPages, warn)
	for i, s := range c.Sites {
		key := "server.error_pages"
		if s.ErrorPages != nil {
			key = fmt.Sprintf("site[%d].error_pages", i+1)
		}
		missingPages(key, s.Root, c.forSite(s).Server.ErrorPages, warn)
	}
	ws := c.Server.WebSocket
	if !ws.Enabled {
		return lines
	}
	if ws.IdleTimeout > 0 && ws.PingInterval >= ws.IdleTimeout {
		warn("server.websocket.ping_interval_secs",
			"%v is not less than idle_timeout_secs (%v): quiet clients are closed before a ping reaches them", ws.PingInterval, ws.IdleTimeout)
	}
	if ws.IdleTimeout > 0 && ws.PingInterval == 0 {
		warn("server.websocket.ping_interval_secs",
			"0 with idle_timeout_secs (%v): clients that only listen are closed", ws.IdleTimeout)
	}
	if ws.MaxConnections > 0 && ws.MaxConnectionsPerSite > ws.MaxConnections {
		warn("server.websocket.max_connections_per_site",
			"%d is more than max_connections (%d) and has no effect", ws.MaxConnectionsPerSite, ws.MaxConnections)
	}
	if ws.MaxConnections > 0 && ws.MaxConnectionsPerIP > ws.MaxConnections {
		warn("server.websocket.max_connections_per_ip",
			"%d is more than max_connections (%d) and has no effect", ws.MaxConnectionsPerIP, ws.MaxConnections)
	}
	return lines
}

// checks gathers mistakes.
type checks []error

func (k *checks) add(key, format string, args ...any) {
	*k = append(*k, &KeyError{Key: key, Text: fmt.Sprintf(format, args...)})
}

// noNegatives walks the keys: no number of ours has a meaning below zero.
func (k *checks) noNegatives(key string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			k.noNegatives(key, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			k.noNegatives(fmt.Sprintf("%s[%d]", key, i+1), v.Index(i))
		}
	case reflect.Struct:
		for f, field := range v.Fields() {
			tag := f.Tag.Get("toml")
			if tag == "" || tag == "-" {
				continue
			}
			k.noNegatives(strings.TrimPrefix(key+"."+tag, "."), field)
		}
	case reflect.Float64:
		if v.Float() < 0 {
			k.add(key, "%v is less than 0", v.Interface())
		}
	case reflect.Int, reflect.Int64:
		if v.Int() < 0 {
			k.add(key, "%v is less than 0", v.Interface())
		}
	}
}

func (k *checks) server(c Config) {
	s := c.Server
	if len(s.Listen) == 0 {
		k.add("server.listen", `is empty; want an address such as ":8080"`)
	}
	k.addresses("server.listen", s.Listen)
	if s.DocumentRoot != "" || !c.hasSites() {
		k.root("server.document_root", s.DocumentRoot, ", in the file or with -d")
	}
	k.inDirectory("server.pid_file", s.PIDFile)
	if s.ControlSocket != ControlAuto {
		k.inDirectory("server.control_socket", s.ControlSocket)
	}
	k.files("server.index_files", s.IndexFiles)
	k.extensions("server.php_extensions", s.PHPExtensions)
	k.fallbacks("server.fallback", s.Fallback)
	if n := s.Request.MaxHeaderSize; n >= 0 && n < 4096 {
		k.add("server.request.max_header_size", "%v is too little for a browser's request; want at least 4096", n)
	}
	for _, name := range s.Request.TrustedHosts {
		k.hostPattern("server.request.trusted_hosts", name)
	}
	k.limits("server.limits", &s.Limits.PerIPBurst, &s.Limits.PerSiteBurst)
	k.http2(s.HTTP2)
	k.http3(s.HTTP3)
	k.security(s.Security)
	if s.ProxyProtocol && len(s.Security.TrustedProxies) == 0 {
		k.add("server.proxy_protocol", "needs [server.security] trusted_proxies: anybody could claim to be another client")
	}
	k.errorPages("server.error_pages", s.ErrorPages)
	k.response("server.response", s.Response)
	k.static("server.static", s.Static)
	k.sendfile(s.Sendfile.Roots)
	k.logging(s.Logging)
	k.admin(s.Admin)
	if p := s.Metrics.Path; !strings.HasPrefix(p, "/") || strings.ContainsAny(p, "?#% ") {
		k.add("server.metrics.path", `%q is not a plain URL path such as "/metrics"`, p)
	}
}

// sendfile checks the roots of files that scripts have sent.
func (k *checks) sendfile(roots []SendfileRoot) {
	const key = "server.sendfile.roots"
	seen := map[string]bool{}
	for _, r := range roots {
		if p := r.Prefix; !strings.HasPrefix(p, "/") || !strings.HasSuffix(p, "/") || strings.ContainsAny(p, "?#%\\\x00") ||
			strings.Contains(p, "//") || strings.Contains(p, "/./") || strings.Contains(p, "/../") {
			k.add(key, `%q is not a plain URL path such as "/protected/", with a slash at both ends`, p)
		} else if seen[p] {
			k.add(key, "%q is there twice", p)
		}
		seen[r.Prefix] = true
		if !filepath.IsAbs(r.Dir) {
			k.add(key, "%q is not an absolute path; the first of a pair is the URL path, the second the directory", r.Dir)
		} else if info, err := os.Stat(r.Dir); err != nil {
			k.add(key, "%q cannot be read: %v", r.Dir, errors.Unwrap(err))
		} else if !info.IsDir() {
			k.add(key, "%q is not a directory", r.Dir)
		}
	}
}

// placeholder finds what looks like a variable in a fallback entry.
var placeholder = regexp.MustCompile(`\$\{?[A-Za-z_0-9]*\}?`)

func (k *checks) fallbacks(key string, entries []string) {
	for i, entry := range entries {
		k.fallback(key, entry, i == len(entries)-1)
	}
}

func (k *checks) fallback(key, entry string, last bool) {
	if code, ok := strings.CutPrefix(entry, "="); ok {
		n, err := strconv.Atoi(code)
		switch {
		case err != nil || len(code) != 3 || n < 200 || n > 599:
			k.add(key, `%q is not a status such as "=404"`, entry)
		case !last:
			k.add(key, "%q ends the list; the entries behind it are never reached", entry)
		}
		return
	}
	if !strings.HasPrefix(entry, "/") && !strings.HasPrefix(entry, "$uri") {
		k.add(key, `%q is neither "$uri", a path that starts with "/", nor a status such as "=404"`, entry)
	}
	for _, name := range placeholder.FindAllString(entry, -1) {
		if name != "$uri" && name != "$query_string" {
			k.add(key, "%q: there is no %s, only $uri and $query_string", entry, name)
		}
	}
}

func (k *checks) webSocket(s ServerConfig) {
	ws := s.WebSocket
	k.websocketFiles("server.websocket_files", s)
	if ws.SendQueue == 0 {
		k.add("server.websocket.send_queue", "must be at least 1")
	}
	k.messageBurst("server.websocket", ws.MessageBurst)
	k.subprotocols("server.websocket", ws.Subprotocols)
	k.origins("server.websocket.allowed_origins", ws.AllowedOrigins)
	k.socketCompression("server.websocket", ws.Compression)
	k.eventStreams(ws)
}

func (k *checks) messageBurst(table string, n int) {
	if n == 0 {
		k.add(table+".message_burst", "must be at least 1; max_messages_per_sec = 0 is no limit")
	}
}

func (k *checks) subprotocols(table string, names []string) {
	for _, name := range names {
		if !token.MatchString(name) {
			k.add(table+".subprotocols", "%q is not a subprotocol; want letters, digits and signs such as - and .", name)
		}
	}
}

func (k *checks) socketCompression(table, value string) {
	k.oneOf(table+".compression", value, SocketsPlain, SocketsNoContext, SocketsContext)
}

func (k *checks) websocketFiles(key string, s ServerConfig) {
	k.files(key, s.WebSocketFiles)
	if s.WebSocket.Enabled && len(s.WebSocketFiles) == 0 {
		k.add(key, "is empty; name a script, or set enabled = false in [server.websocket]")
	}
}

func (k *checks) origins(key string, origins []string) {
	for _, origin := range origins {
		if origin != SameOrigin && !isOrigin(origin) {
			k.add(key, `%q is neither %q nor an origin such as "https://app.example"`, origin, SameOrigin)
		}
	}
}

// token is RFC 9110 §5.6.2.
var token = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

// isOrigin reports whether s is a scheme, a host and at most a port, as a
// browser writes them in Origin.
func isOrigin(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && u.Hostname() != "" && u.Scheme+"://"+u.Host == s && s == strings.ToLower(s)
}

func (k *checks) php(p PHPConfig) {
	if p.Mode == "worker" {
		k.add("php.mode", `"worker" is not available in this version; want "fpm"`)
	} else {
		k.oneOf("php.mode", p.Mode, "fpm", "per_request")
	}
	if p.Workers > 0 && p.MinWorkers > p.Workers {
		k.add("php.min_workers", "%d is more than workers (%d)", p.MinWorkers, p.Workers)
	}
	if p.WorkerReserve < 0 || p.WorkerReserve > phpbridge.MaxReserve {
		k.add("php.worker_reserve", "must be 0 to %d", phpbridge.MaxReserve)
	}
	if p.WorkerSpawnAfter == 0 {
		k.add("php.worker_spawn_after", "must be more than 0")
	}
	if p.WorkerIdleTimeout == 0 {
		k.add("php.worker_idle_timeout", "must be more than 0")
	}
	if p.WorkerBacklogWait == 0 {
		k.add("php.worker_backlog_wait", "must be more than 0; worker_backlog = 0 lets no request wait")
	}
	k.oneOf("php.overload_policy", p.OverloadPolicy, OverloadWait, OverloadShed)
	if !memoryLimit.MatchString(p.MemoryLimit) {
		k.add("php.memory_limit", `%q is not a size in PHP's notation such as "128M", or "-1" for no limit`, p.MemoryLimit)
	}
	if time.Duration(p.MaxExecutionTime)%time.Second != 0 {
		k.add("php.max_execution_time", "%v is not in whole seconds, which is all PHP can count", p.MaxExecutionTime)
	}
	if r := p.OPcacheRevalidate; r != Never && time.Duration(r)%time.Second != 0 {
		k.add("php.opcache_revalidate", "%v is not in whole seconds, which is all OPcache can count", r)
	}
	k.env("php.env", p.Env)
	if p.INIFile != "" {
		k.readable("php.ini_file", p.INIFile)
	}
	for _, ini := range p.INIOverrides {
		if ini.Name == "" || strings.ContainsFunc(ini.Name, notInININame) || strings.ContainsAny(ini.Value, "\r\n\x00") {
			k.add("php.ini_overrides", `[%q, %q] is not a php.ini setting such as ["display_errors", "Off"]`, ini.Name, ini.Value)
		}
	}
	for _, name := range p.Extensions {
		if name == "" || strings.ContainsAny(name, "\"\r\n\x00") {
			k.add("php.extensions", "%q is not the name or the path of an extension", name)
		}
	}
	if p.SAPIName == "" || strings.ContainsFunc(p.SAPIName, notInHeader) {
		k.add("php.sapi_name", `%q is not a name such as "ephpm"`, p.SAPIName)
	}
}

// env checks that no variable can pass for one that the server or PHP sets.
func (k *checks) env(key string, env Env) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		switch upper := strings.ToUpper(name); {
		case !variable.MatchString(name):
			k.add(key, "%q is not the name of a variable; want letters, digits and underscores", name)
		case strings.HasPrefix(upper, "HTTP_"):
			k.add(key, "%s would pass for a request header; take another name", name)
		case slices.Contains(ownVars, upper):
			k.add(key, "%s is set by the server for each request; take another name", name)
		case strings.ContainsRune(env[name], 0):
			k.add(key, "the value of %s has a NUL in it", name)
		}
	}
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

var memoryLimit = regexp.MustCompile(`^(-1|[0-9]+[KMGkmg]?)?$`)

func (k *checks) readable(key, name string) {
	f, err := os.Open(name)
	if err != nil {
		k.add(key, "%q cannot be read: %v", name, errors.Unwrap(err))
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		k.add(key, "%q is a directory; name the file", name)
	}
}

func (k *checks) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		k.add(key, "%q is not one of %s", value, strings.Join(allowed, ", "))
	}
}

func notInHeader(r rune) bool { return r < ' ' || r > '~' }

func notInININame(r rune) bool {
	return r <= ' ' || r > '~' || r == '=' || r == '[' || r == ']' || r == ';'
}
