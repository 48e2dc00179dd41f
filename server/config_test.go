package server

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// goodConfig returns the defaults with a root that exists.
func goodConfig(t *testing.T) Config {
	t.Helper()
	c := DefaultConfig()
	c.Server.DocumentRoot = t.TempDir()
	return c
}

func TestDefaultsAreValid(t *testing.T) {
	c := goodConfig(t)
	if err := c.Validate(); err != nil {
		t.Errorf("Validate: %v", err)
	}
	if lines := c.Warnings(); len(lines) != 0 {
		t.Errorf("Warnings: %q", lines)
	}
}

func TestDefaultConfigsShareNothing(t *testing.T) {
	c := DefaultConfig()
	c.Server.IndexFiles[0] = "changed"
	if DefaultConfig().Server.IndexFiles[0] == "changed" {
		t.Error("a change of one configuration reached the next")
	}
}

func TestEveryFieldHasAKey(t *testing.T) {
	var walk func(prefix string, typ reflect.Type)
	walk = func(prefix string, typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Tag.Get("toml") == "" {
				t.Errorf("%s%s has no toml tag", prefix, f.Name)
			}
			if f.Type.Kind() == reflect.Struct {
				walk(prefix+f.Name+".", f.Type)
			}
		}
	}
	walk("", reflect.TypeFor[Config]())
}

// oneSite returns a site with one name.
func oneSite(c *Config, name string) []SiteConfig {
	return []SiteConfig{{Names: []string{name}, Root: c.Server.DocumentRoot}}
}

func TestValidateNamesTheKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	for _, test := range []struct {
		key, text string // text is part of what is said
		spoil     func(c *Config)
	}{
		{"server.listen", "8080", func(c *Config) { c.Server.Listen = Addresses{"8080"} }},
		{"server.listen", "port", func(c *Config) { c.Server.Listen = Addresses{":http"} }},
		{"server.listen", "port", func(c *Config) { c.Server.Listen = Addresses{"127.0.0.1:65536"} }},
		{"server.listen", "host", func(c *Config) { c.Server.Listen = Addresses{"http://localhost:80"} }},
		{"server.listen", "host", func(c *Config) { c.Server.Listen = Addresses{"a b:80"} }},
		{"server.document_root", "does not exist", func(c *Config) { c.Server.DocumentRoot = missing }},
		{"server.document_root", "not a directory", func(c *Config) { c.Server.DocumentRoot = file }},
		{"server.document_root", "is empty", func(c *Config) { c.Server.DocumentRoot = "" }},
		{"server.index_files", "/index.php", func(c *Config) { c.Server.IndexFiles = []string{"/index.php"} }},
		{"server.websocket_files", "../ws.php", func(c *Config) { c.Server.WebSocketFiles = []string{"../ws.php"} }},
		{"server.websocket_files", "enabled = false", func(c *Config) { c.Server.WebSocketFiles = nil }},
		{"server.fallback", "index.php", func(c *Config) { c.Server.Fallback = []string{"index.php"} }},
		{"server.fallback", "$args", func(c *Config) { c.Server.Fallback = []string{"/index.php?$args"} }},
		{"server.fallback", "${uri}", func(c *Config) { c.Server.Fallback = []string{"/a/${uri}"} }},
		{"server.fallback", "=999", func(c *Config) { c.Server.Fallback = []string{"=999"} }},
		{"server.fallback", "never reached", func(c *Config) { c.Server.Fallback = []string{"=404", "$uri"} }},
		{"server.request.max_body_size", "less than 0", func(c *Config) { c.Server.Request.MaxBodySize = -1 }},
		{"server.request.max_header_size", "4096", func(c *Config) { c.Server.Request.MaxHeaderSize = 0 }},
		{"server.timeouts.request", "less than 0", func(c *Config) { c.Server.Timeouts.Request = Duration(-time.Second) }},
		{"server.static.cache_control", "header", func(c *Config) { c.Server.Static.CacheControl = "a\r\nb" }},
		{"server.static.hidden_files", "deny, ignore, allow", func(c *Config) { c.Server.Static.HiddenFiles = "hide" }},
		{"server.sendfile.roots", "both ends", func(c *Config) { c.Server.Sendfile.Roots = []SendfileRoot{{"/p", "/"}} }},
		{"server.sendfile.roots", "both ends", func(c *Config) { c.Server.Sendfile.Roots = []SendfileRoot{{"p/", "/"}} }},
		{"server.sendfile.roots", "plain", func(c *Config) { c.Server.Sendfile.Roots = []SendfileRoot{{"/p%20/", "/"}} }},
		{"server.sendfile.roots", "plain", func(c *Config) { c.Server.Sendfile.Roots = []SendfileRoot{{"/p/../", "/"}} }},
		{"server.sendfile.roots", "twice", func(c *Config) { c.Server.Sendfile.Roots = []SendfileRoot{{"/p/", "/"}, {"/p/", "/"}} }},
		{"server.sendfile.roots", "absolute", func(c *Config) { c.Server.Sendfile.Roots = []SendfileRoot{{"/p/", "files"}} }},
		{"server.sendfile.roots", "no such", func(c *Config) { c.Server.Sendfile.Roots = []SendfileRoot{{"/p/", missing}} }},
		{"server.sendfile.roots", "not a directory", func(c *Config) { c.Server.Sendfile.Roots = []SendfileRoot{{"/p/", file}} }},
		{"server.request.trusted_hosts", "bare", func(c *Config) { c.Server.Request.TrustedHosts = []string{"a.example:80"} }},
		{"site[1].names", "is empty", func(c *Config) { c.Sites = []SiteConfig{{Root: c.Server.DocumentRoot}} }},
		{"site[1].names", "lower case", func(c *Config) { c.Sites = oneSite(c, "A.example") }},
		{"site[1].names", "start", func(c *Config) { c.Sites = oneSite(c, "a.*") }},
		{"site[1].names", "start", func(c *Config) { c.Sites = oneSite(c, "*") }},
		{"site[1].names", "not a host name", func(c *Config) { c.Sites = oneSite(c, "a/b") }},
		{"site[1].names", "bare", func(c *Config) { c.Sites = oneSite(c, "[::1]") }},
		{"site[2].names", "site[1] already", func(c *Config) { c.Sites = append(oneSite(c, "*.a.example"), oneSite(c, "*.a.example")...) }},
		{"site[1].root", "is empty", func(c *Config) { c.Sites = oneSite(c, "a"); c.Sites[0].Root = "" }},
		{"site[1].root", "does not exist", func(c *Config) { c.Sites = oneSite(c, "a"); c.Sites[0].Root = missing }},
		{"site[1].index_files", "../x", func(c *Config) { c.Sites = oneSite(c, "a"); c.Sites[0].IndexFiles = []string{"../x"} }},
		{"site[1].fallback", "never reached", func(c *Config) { c.Sites = oneSite(c, "a"); c.Sites[0].Fallback = []string{"=404", "$uri"} }},
		{"site[1].websocket_files", "is empty", func(c *Config) { c.Sites = oneSite(c, "a"); c.Sites[0].WebSocketFiles = []string{} }},
		{"site[1].tls.cert", "in site[1].tls.key", func(c *Config) { c.Sites = oneSite(c, "a"); c.Sites[0].TLS.Cert = file }},
		{"site[1].tls.key", "in site[1].tls.cert", func(c *Config) { c.Sites = oneSite(c, "a"); c.Sites[0].TLS.Key = file }},
		{"site[1].tls.cert", "cannot be read", func(c *Config) { c.Sites = oneSite(c, "a"); c.Sites[0].TLS = SiteTLSConfig{Cert: missing, Key: file} }},
		{"site[1].timeouts.request", "less than 0", func(c *Config) {
			c.Sites = oneSite(c, "a")
			c.Sites[0].Timeouts.Request = new(Duration(-1))
		}},
		{"server.metrics.path", "/metrics", func(c *Config) { c.Server.Metrics.Path = "metrics" }},
		{"server.admin.listen", "address", func(c *Config) { c.Server.Admin.Listen = "9090" }},
		{"server.admin.pprof", "needs listen", func(c *Config) { c.Server.Admin.Pprof = true }},
		{"server.logging.format", "text, json", func(c *Config) { c.Server.Logging.Format = "xml" }},
		{"server.logging.access_format", "common, combined, json", func(c *Config) { c.Server.Logging.AccessFormat = "apache" }},
		{"server.logging.access", "directory", func(c *Config) { c.Server.Logging.Access = t.TempDir() }},
		{"server.pid_file", "its directory cannot be read", func(c *Config) { c.Server.PIDFile = missing + "/pid" }},
		{"server.pid_file", "is a directory", func(c *Config) { c.Server.PIDFile = t.TempDir() }},
		{"server.pid_file", "is not a directory", func(c *Config) { c.Server.PIDFile = file + "/pid" }},
		{"server.control_socket", "its directory cannot be read", func(c *Config) { c.Server.ControlSocket = missing + "/s" }},
		{"kv.redis_compat.socket", "its directory cannot be read", func(c *Config) { c.KV.Redis.Enabled, c.KV.Redis.Socket = true, missing+"/s" }},
		{"server.logging.access", "cannot be read", func(c *Config) { c.Server.Logging.Access = missing + "/access.log" }},
		{"server.logging.level", "debug, info", func(c *Config) { c.Server.Logging.Level = "loud" }},
		{"server.limits.per_ip_rate", "less than 0", func(c *Config) { c.Server.Limits.PerIPRate = -0.5 }},
		{"server.limits.per_ip_burst", "at least 1", func(c *Config) { c.Server.Limits.PerIPBurst = 0 }},
		{"server.limits.per_site_burst", "at least 1", func(c *Config) { c.Server.Limits.PerSiteBurst = 0 }},
		{"server.proxy_protocol", "trusted_proxies", func(c *Config) { c.Server.ProxyProtocol = true }},
		{"server.security.trusted_proxies", "10.0.0.0/8", func(c *Config) { c.Server.Security.TrustedProxies = []string{"localhost"} }},
		{"server.security.trusted_proxies", "10.0.0.0/33", func(c *Config) { c.Server.Security.TrustedProxies = []string{"10.0.0.0/33"} }},
		{"server.security.proxy_headers", "any, x-forwarded", func(c *Config) { c.Server.Security.ProxyHeaders = "all" }},
		{"server.websocket.max_connections", "less than 0", func(c *Config) { c.Server.WebSocket.MaxConnections = -1 }},
		{"server.websocket.history_memory", "less than 0", func(c *Config) { c.Server.WebSocket.HistoryMemory = -1 }},
		{"server.websocket.sse_history", "must be 0 to 100", func(c *Config) { c.Server.WebSocket.SSEHistory = 101 }},
		{"server.websocket.poll_wait_secs", "more than 0", func(c *Config) { c.Server.WebSocket.PollWait = 0 }},
		{"server.websocket.poll_idle_secs", "more than 0", func(c *Config) { c.Server.WebSocket.PollIdle = 0 }},
		{"server.websocket.presence_memory", "less than 0", func(c *Config) { c.Server.WebSocket.PresenceMemory = -1 }},
		{"server.websocket.message_burst", "at least 1", func(c *Config) { c.Server.WebSocket.MessageBurst = 0 }},
		{"site[1].websocket.message_burst", "at least 1", func(c *Config) { c.Sites = oneSite(c, "a"); c.Sites[0].WebSocket.MessageBurst = new(int) }},
		{"site[1].websocket.subprotocols", "a,b", func(c *Config) {
			c.Sites = oneSite(c, "a")
			c.Sites[0].WebSocket.Subprotocols = []string{"a,b"}
		}},
		{"site[1].websocket.compression", "context_takeover", func(c *Config) {
			c.Sites = oneSite(c, "a")
			c.Sites[0].WebSocket.Compression = new(string)
		}},
		{"server.websocket.send_queue", "at least 1", func(c *Config) { c.Server.WebSocket.SendQueue = 0 }},
		{"server.websocket.send_wait_ms", "less than 0", func(c *Config) { c.Server.WebSocket.SendWait = -1 }},
		{"server.websocket.subprotocols", "a,b", func(c *Config) { c.Server.WebSocket.Subprotocols = []string{"a,b"} }},
		{"server.websocket.allowed_origins", "app.example", func(c *Config) { c.Server.WebSocket.AllowedOrigins = []string{"app.example"} }},
		{"server.websocket.allowed_origins", "same-origin", func(c *Config) { c.Server.WebSocket.AllowedOrigins = []string{"https://app.example/"} }},
		{"php.mode", "not available", func(c *Config) { c.PHP.Mode = "worker" }},
		{"php.mode", "fpm", func(c *Config) { c.PHP.Mode = "cgi" }},
		{"php.workers", "less than 0", func(c *Config) { c.PHP.Workers = -1 }},
		{"php.min_workers", "more than workers", func(c *Config) { c.PHP.Workers, c.PHP.MinWorkers = 2, 3 }},
		{"php.worker_reserve", "0 to 128", func(c *Config) { c.PHP.WorkerReserve = 129 }},
		{"php.worker_spawn_after", "more than 0", func(c *Config) { c.PHP.WorkerSpawnAfter = 0 }},
		{"php.worker_idle_timeout", "more than 0", func(c *Config) { c.PHP.WorkerIdleTimeout = 0 }},
		{"php.worker_backlog_wait", "more than 0", func(c *Config) { c.PHP.WorkerBacklogWait = 0 }},
		{"php.overload_policy", "wait, shed", func(c *Config) { c.PHP.OverloadPolicy = "drop" }},
		{"php.shed_after_ms", "less than 0", func(c *Config) { c.PHP.ShedAfter = -1 }},
		{"php.memory_limit", "128M", func(c *Config) { c.PHP.MemoryLimit = "128MB" }},
		{"php.max_execution_time", "whole seconds", func(c *Config) { c.PHP.MaxExecutionTime = Duration(time.Millisecond) }},
		{"server.timeouts.request_grace", "less than 0", func(c *Config) { c.Server.Timeouts.RequestGrace = -1 }},
		{"php.worker_max_memory", "less than 0", func(c *Config) { c.PHP.WorkerMaxMemory = -1 }},
		{"php.slow_request", "less than 0", func(c *Config) { c.PHP.SlowRequest = -1 }},
		{"php.opcache_revalidate", "whole seconds", func(c *Config) { c.PHP.OPcacheRevalidate = Revalidate(time.Millisecond) }},
		{"php.opcache_revalidate", "less than 0", func(c *Config) { c.PHP.OPcacheRevalidate = Revalidate(-time.Second) }},
		{"php.env", "name of a variable", func(c *Config) { c.PHP.Env = Env{"A-B": ""} }},
		{"php.env", "name of a variable", func(c *Config) { c.PHP.Env = Env{"": ""} }},
		{"php.env", "request header", func(c *Config) { c.PHP.Env = Env{"HTTP_PROXY": ""} }},
		{"php.env", "set by the server", func(c *Config) { c.PHP.Env = Env{"SCRIPT_FILENAME": ""} }},
		{"php.env", "set by the server", func(c *Config) { c.PHP.Env = Env{"ws_event": ""} }},
		{"php.env", "NUL", func(c *Config) { c.PHP.Env = Env{"A": "\x00"} }},
		{"php.ini_file", "cannot be read", func(c *Config) { c.PHP.INIFile = missing }},
		{"php.ini_file", "directory", func(c *Config) { c.PHP.INIFile = c.Server.DocumentRoot }},
		{"php.ini_overrides", "display_errors", func(c *Config) { c.PHP.INIOverrides = []INI{{"", "Off"}} }},
		{"php.ini_overrides", "display_errors", func(c *Config) { c.PHP.INIOverrides = []INI{{"a", "b\nc=d"}} }},
		{"php.extensions", "extension", func(c *Config) { c.PHP.Extensions = []string{""} }},
		{"php.sapi_name", "ephpm", func(c *Config) { c.PHP.SAPIName = "" }},
	} {
		c := goodConfig(t)
		test.spoil(&c)
		err := c.Validate()
		var k *KeyError
		if !errors.As(err, &k) {
			t.Errorf("Validate of a bad %s = %v, want a KeyError", test.key, err)
			continue
		}
		if k.Key != test.key || !strings.Contains(k.Text, test.text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Validate of a bad %s = %q, want one line that says %q", test.key, err, test.text)
		}
	}
}

func TestValidateAcceptsWhatIsAllowed(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"every address":         func(c *Config) { c.Server.Listen = Addresses{":0"} },
		"IPv6":                  func(c *Config) { c.Server.Listen = Addresses{"[::1]:80"} },
		"a host name":           func(c *Config) { c.Server.Listen = Addresses{"localhost:80"} },
		"no fallback":           func(c *Config) { c.Server.Fallback = nil },
		"a status at the end":   func(c *Config) { c.Server.Fallback = []string{"$uri", "$uri/", "=404"} },
		"$uri with a suffix":    func(c *Config) { c.Server.Fallback = []string{"$uri.html", "/app$uri"} },
		"an entry in a sub-dir": func(c *Config) { c.Server.WebSocketFiles = []string{"app/ws.php"} },
		"no sockets, no script": func(c *Config) { c.Server.WebSocketFiles, c.Server.WebSocket.Enabled = nil, false },
		"no limits at all": func(c *Config) {
			c.Server.Request.MaxBodySize, c.Server.Timeouts = 0, TimeoutsConfig{}
			ws := &c.Server.WebSocket
			ws.MaxConnections, ws.MaxMessageSize, ws.MaxFrameSize, ws.SendWait = 0, 0, 0, 0
			ws.SendQueueBytes = 0
			ws.WriteTimeout, ws.PingInterval, ws.IdleTimeout = 0, 0, 0
			c.PHP.WorkerMaxRequests, c.PHP.WorkerBacklog, c.PHP.MaxExecutionTime, c.PHP.MemoryLimit = 0, 0, 0, "-1"
		},
		"origins": func(c *Config) {
			c.Server.WebSocket.AllowedOrigins = []string{"same-origin", "https://app.example", "http://[::1]:8080"}
		},
		"subprotocols":      func(c *Config) { c.Server.WebSocket.Subprotocols = []string{"graphql-transport-ws", "v1.chat"} },
		"the other fpm":     func(c *Config) { c.PHP.Mode = "per_request" },
		"php.ini's memory":  func(c *Config) { c.PHP.MemoryLimit = "" },
		"no revalidation":   func(c *Config) { c.PHP.OPcacheRevalidate = Never },
		"variables":         func(c *Config) { c.PHP.Env = Env{"APP_ENV": "prod", "path": "", "_1": "é=\n"} },
		"workers both ways": func(c *Config) { c.PHP.MinWorkers = 3 },
		"an ini value with signs": func(c *Config) {
			c.PHP.INIOverrides = []INI{{"error_log", `/var/log/a "b"; c=d`}, {"opcache.enable", ""}}
		},
	} {
		c := goodConfig(t)
		change(&c)
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidateTellsAllMistakes(t *testing.T) {
	c := goodConfig(t)
	c.Server.Listen, c.Server.Static.HiddenFiles, c.PHP.SAPIName = nil, "", ""
	if got := strings.Count(c.Validate().Error(), "\n") + 1; got != 3 {
		t.Errorf("Validate tells %d mistakes, want 3:\n%v", got, c.Validate())
	}
}

func TestUnreadableRootSaysWhatToDo(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	c := goodConfig(t)
	if err := os.Chmod(c.Server.DocumentRoot, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "permission") {
		t.Errorf("Validate = %v, want an error about permission", err)
	}
}

func TestWarningOfAKeyWithoutEffect(t *testing.T) {
	c := DefaultConfig()
	c.PHP.ShedAfter = 1
	if lines := c.Warnings(); len(lines) != 1 || !strings.HasPrefix(lines[0], "php.shed_after_ms: has no effect") {
		t.Errorf("Warnings = %q, want one about php.shed_after_ms", lines)
	}
	c.PHP.OverloadPolicy = OverloadShed
	if lines := c.Warnings(); len(lines) != 0 {
		t.Errorf("Warnings with shed = %q, want none", lines)
	}
}

func TestWarningsNameTheKey(t *testing.T) {
	for want, change := range map[string]func(ws *WebSocketConfig){
		"server.websocket.ping_interval_secs: 2m0s is not less": func(ws *WebSocketConfig) { ws.PingInterval = ws.IdleTimeout },
		"server.websocket.ping_interval_secs: 0 with idle":      func(ws *WebSocketConfig) { ws.PingInterval = 0 },
		"server.websocket.max_connections_per_site: 20000 is":   func(ws *WebSocketConfig) { ws.MaxConnectionsPerSite = 20000 },
		"server.websocket.max_connections_per_ip: 20000 is":     func(ws *WebSocketConfig) { ws.MaxConnectionsPerIP = 20000 },
	} {
		c := DefaultConfig()
		change(&c.Server.WebSocket)
		if lines := c.Warnings(); len(lines) != 1 || !strings.HasPrefix(lines[0], want) {
			t.Errorf("Warnings = %q, want one that starts with %q", lines, want)
		}
		c.Server.WebSocket.Enabled = false
		if lines := c.Warnings(); len(lines) != 0 {
			t.Errorf("Warnings with sockets off = %q, want none", lines)
		}
	}
}

func TestMissingErrorPagesAreTold(t *testing.T) {
	c := goodConfig(t)
	writeFile(t, c.Server.DocumentRoot, "404.html")
	c.Server.ErrorPages = ErrorPages{"404": "/404.html", "5xx": "/no/such.php"}
	c.Sites = []SiteConfig{
		{Names: []string{"a.example"}, Root: c.Server.DocumentRoot},
		{Names: []string{"b.example"}, Root: c.Server.DocumentRoot, ErrorPages: ErrorPages{"403": "/b.html", "404": "/404.html"}},
	}
	lines := c.Warnings()
	for i, want := range []string{"server.error_pages: 5xx: there is no file", "server.error_pages: 5xx: there is no file", "site[2].error_pages: 403: there is no file"} {
		if len(lines) != 3 || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("the warnings are %q, want 3, number %d of them %q", lines, i+1, want)
		}
	}
}
