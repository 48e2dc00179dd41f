package server

import "time"

// A Config is everything that can be set. It is one value for the whole
// server, arrives complete (start from DefaultConfig) and is never changed
// after New. The tags are the keys of ephpm.toml; ephpm.toml.example is the
// same list for users.
type Config struct {
	Server ServerConfig `toml:"server"`
	PHP    PHPConfig    `toml:"php"`
	KV     KVConfig     `toml:"kv"`
	// Sites are the [[site]] tables: host names with roots of their own. Without
	// any there is one site, which answers to every name.
	Sites []SiteConfig `toml:"site"`

	// Redirects, Rewrites, Auth and Access are rules for paths, of every site that
	// has none of its own.
	Redirects []RedirectConfig `toml:"redirect"`
	Rewrites  []RewriteConfig  `toml:"rewrite"`
	Auth      []AuthConfig     `toml:"auth"`
	Access    []AccessConfig   `toml:"access"`

	// File is the path of the file that the configuration came from. It has no
	// key. When it lies below the document root it is never served. Empty
	// means that there is none.
	File string `toml:"-"`
}

// ServerConfig is [server]: the listener, the site and what limits them.
type ServerConfig struct {
	// Listen are the addresses of the listeners, at least one. They speak TLS
	// when there is a certificate, unless TLS has addresses of its own.
	Listen Addresses `toml:"listen"`
	// ProxyProtocol lets trusted proxies say who the client is by the PROXY
	// protocol, version 1 or 2: then each of their connections must begin with
	// it, before TLS. Those of others are as without.
	ProxyProtocol bool `toml:"proxy_protocol"`
	// H2C lets plain listeners speak HTTP/2 as well, to clients that begin with it
	// (prior knowledge, RFC 9113 §3.3), such as a proxy.
	H2C bool `toml:"h2c"`
	// Preview is for a host that shows work to the public before it is done: it sets
	// those limits that nobody has set to 256 connections, 32 of one address, 10
	// requests a second of one address and 5 of one site, has pages shed when no
	// worker is free, and marks every answer by X-Ephpm-Preview.
	Preview bool `toml:"preview"`
	// DocumentRoot is the directory that is served; beside other sites, for host
	// names that are no site's, without sockets. A relative path in a
	// configuration file starts at that file's directory. Empty, beside other
	// sites, means that unknown names get 404.
	DocumentRoot string `toml:"document_root"`
	// ResolveRoot says what scripts find in DOCUMENT_ROOT and SCRIPT_FILENAME
	// when a document root is or has a symbolic link, such as "current": the
	// directory that it leads to now, else the path as configured. In both cases
	// a link that was switched is followed within a second.
	ResolveRoot bool `toml:"resolve_root"`
	// SitesDir is a directory in which every directory with the form of a host
	// name is the root of a site of that name. They are found and forgotten while
	// the server runs. A relative path in a configuration file starts at that
	// file's directory. Empty means none.
	SitesDir string `toml:"sites_dir"`
	// SitesDomainSuffix is removed from the end of a host name before it is looked
	// up in SitesDir; a name that does not have it is looked up as it is. It
	// begins with a dot. Empty means none.
	SitesDomainSuffix string `toml:"sites_domain_suffix"`
	// SitesIsolation is SiteConfig.Isolation for the sites of SitesDir.
	SitesIsolation string `toml:"sites_isolation"`
	// SitesRunAs is RunAsOwner to have the workers of each site of SitesDir run as
	// the user and group that own its directory. Empty means the server's user.
	SitesRunAs string `toml:"sites_run_as"`
	// SitesPoolIdle ends the workers of a site of SitesDir that has its own and had
	// no request for this long; the next request starts them again. Zero means
	// never.
	SitesPoolIdle Duration `toml:"sites_pool_idle"`
	// SitesStateDir is where sites have their directories for temporary files,
	// uploads and sessions. It is made when it does not exist. A relative path in
	// a configuration file starts at that file's directory. Empty means
	// "ephpm-sites" in the system's directory for temporary files.
	SitesStateDir string `toml:"sites_state_dir"`
	// PIDFile gets the process id of the server. ephpm reload goes by it, or
	// without it by the control socket. A relative path in a configuration file
	// starts at that file's directory. Empty means none.
	PIDFile string `toml:"pid_file"`
	// ControlSocket is the path of the Unix socket over which scripts on the
	// command line reach the running server. A relative path in a configuration
	// file starts at that file's directory. ControlAuto finds one that "ephpm
	// php" finds too. Empty means none.
	ControlSocket string `toml:"control_socket"`
	// IndexFiles are tried in order for a directory. Empty means that a
	// directory has no index.
	IndexFiles []string `toml:"index_files"`
	// PHPExtensions are how the names of scripts end, each with its dot: a path
	// is a script up to the first segment that ends so and is a file, what
	// follows is its PATH_INFO. A file that ends so in other letters, or in
	// ".php", is never sent. Empty means that no path names a script.
	PHPExtensions []string `toml:"php_extensions"`
	// WebSocketFiles are tried in order below the document root; the first
	// that exists is the script that every WebSocket event runs. It must not be
	// empty while WebSocket.Enabled is set.
	WebSocketFiles []string `toml:"websocket_files"`
	// Fallback is tried in order for a request path: "$uri" is an existing
	// file, "$uri/" a directory with an index file, "=404" a bare status. The
	// last entry is taken without looking. Empty means 404 for every path.
	Fallback []string `toml:"fallback"`

	// ErrorPages are files or scripts below the document root that are answered
	// with in place of the server's own errors, by status.
	ErrorPages ErrorPages `toml:"error_pages"`

	Request   RequestConfig   `toml:"request"`
	Response  ResponseConfig  `toml:"response"`
	Timeouts  TimeoutsConfig  `toml:"timeouts"`
	Static    StaticConfig    `toml:"static"`
	Sendfile  SendfileConfig  `toml:"sendfile"`
	Metrics   MetricsConfig   `toml:"metrics"`
	Logging   LoggingConfig   `toml:"logging"`
	Admin     AdminConfig     `toml:"admin"`
	Limits    LimitsConfig    `toml:"limits"`
	Security  SecurityConfig  `toml:"security"`
	WebSocket WebSocketConfig `toml:"websocket"`
	TLS       TLSConfig       `toml:"tls"`
	HTTP2     HTTP2Config     `toml:"http2"`
	HTTP3     HTTP3Config     `toml:"http3"`
}

// RequestConfig is [server.request]: what a request may weigh.
type RequestConfig struct {
	// MaxBodySize limits a request body in bytes; more is answered with 413.
	// Zero means no limit.
	MaxBodySize Size `toml:"max_body_size"`
	// MaxHeaderSize limits the request line and the header fields together, in
	// bytes; more is answered with 431. It must be at least 4096.
	MaxHeaderSize Size `toml:"max_header_size"`
	// TrustedHosts are the host names that are answered, all others get 421; in
	// the form of SiteConfig.Names. Empty means all.
	TrustedHosts []string `toml:"trusted_hosts"`
}

// TimeoutsConfig is [server.timeouts].
type TimeoutsConfig struct {
	// HeaderRead limits how long a client may take to send its request header.
	// Zero means no limit.
	HeaderRead Duration `toml:"header_read"`
	// Idle closes a keep-alive connection that has had no request for this
	// long. Zero means never.
	Idle Duration `toml:"idle"`
	// Request limits one run of a script, of a page as of a WebSocket event:
	// the script is ended, a page answered with 504, a socket closed with 1011.
	// Zero means no limit.
	Request Duration `toml:"request"`
	// RequestGrace is how long a script over Request may take for its end: it
	// gets PHP's fatal error for time limits, and its shutdown functions run.
	// Then its worker is killed. Zero means at once.
	RequestGrace Duration `toml:"request_grace"`
	// Shutdown is how long a graceful stop waits for what is running. Zero
	// means that everything is cut at once.
	Shutdown Duration `toml:"shutdown"`
}

// SendfileConfig is [server.sendfile]: files that a script lets the server send.
type SendfileConfig struct {
	// Roots are the directories from which a script may have a file sent in
	// place of what it printed: by its path with X-Sendfile, by the URL path
	// that stands for the directory with X-Accel-Redirect. Empty means that
	// both are headers like any other.
	Roots []SendfileRoot `toml:"roots"`
}

// MetricsConfig is [server.metrics]: the Prometheus endpoint.
type MetricsConfig struct {
	// Enabled serves the metrics at Path.
	Enabled bool `toml:"enabled"`
	// Path is the URL path of the metrics, "/" first. Nothing else is served
	// under it while Enabled is set.
	Path string `toml:"path"`
}

// PHPConfig is [php]: the workers and their ini settings.
type PHPConfig struct {
	// Mode is how scripts are run. "fpm", each request from a fresh start, is
	// the only one; "per_request" is its other name.
	Mode string `toml:"mode"`
	// Workers is the most general workers that run at once. Zero means that it
	// is derived from the CPUs and the memory of the machine or container.
	Workers Workers `toml:"workers"`
	// MinWorkers is how many of them are kept while nothing is to do. Zero
	// means that it is derived from Workers.
	MinWorkers Workers `toml:"min_workers"`
	// WorkerReserve is how many workers there may be on top of Workers for
	// either kind of work, pages and WebSocket events, while it waits and all
	// others are busy with the other kind. Zero means a quarter of Workers, at
	// least one.
	WorkerReserve int `toml:"worker_reserve"`
	// WorkerSpawnAfter is how long a request waits before one more worker is
	// forked for it. It must be more than zero.
	WorkerSpawnAfter Duration `toml:"worker_spawn_after"`
	// WorkerIdleTimeout ends a worker above MinWorkers that had nothing to do
	// for this long. It must be more than zero.
	WorkerIdleTimeout Duration `toml:"worker_idle_timeout"`
	// WorkerMaxRequests replaces a worker after this many requests. Zero means
	// never.
	WorkerMaxRequests int `toml:"worker_max_requests"`
	// WorkerMaxMemory replaces a worker that holds more memory than this, in
	// bytes, when it has ended its request. Zero means no limit.
	WorkerMaxMemory Size `toml:"worker_max_memory"`
	// WorkerBacklog is how many requests may wait for a worker; one more is
	// answered with 503. Zero means none may wait.
	WorkerBacklog int `toml:"worker_backlog"`
	// WorkerBacklogWait is how long a request may wait for a worker before it
	// is answered with 503. It must be more than zero.
	WorkerBacklogWait Duration `toml:"worker_backlog_wait"`
	// OverloadPolicy says what becomes of a page for which no worker is free:
	// OverloadWait or OverloadShed. WebSocket events always wait.
	OverloadPolicy string `toml:"overload_policy"`
	// ShedAfter is how long a page may wait under OverloadShed before it is
	// answered with 503. Zero means not at all, unless a worker can be forked.
	ShedAfter Millis `toml:"shed_after_ms"`

	// SlowRequest logs where in its code a script is that has run for this
	// long; the script is not disturbed. Zero means never.
	SlowRequest Duration `toml:"slow_request"`
	// MemoryLimit is PHP's memory_limit in PHP's notation, such as "128M";
	// "-1" means no limit. Empty leaves php.ini's.
	MemoryLimit string `toml:"memory_limit"`
	// MaxExecutionTime is PHP's max_execution_time: processor time of a script
	// in whole seconds. Zero means no limit.
	MaxExecutionTime Duration `toml:"max_execution_time"`
	// OPcacheRevalidate is how long OPcache believes that a file did not
	// change, in whole seconds; zero looks at each request. Never means until
	// Reload.
	OPcacheRevalidate Revalidate `toml:"opcache_revalidate"`
	// INIFile replaces the system's php.ini. A relative path in a configuration
	// file starts at that file's directory. Empty means the system's.
	INIFile string `toml:"ini_file"`
	// INIOverrides are ini settings that beat php.ini and the keys above, in
	// order: [["display_errors", "Off"]].
	INIOverrides []INI `toml:"ini_overrides"`
	// Extensions are loaded at start, by name or path.
	Extensions []string `toml:"extensions"`
	// Env are variables that scripts find in $_SERVER and by getenv().
	Env Env `toml:"env"`
	// SAPIName is what PHP_SAPI and php_sapi_name() say. It must not be empty.
	SAPIName string `toml:"sapi_name"`
}

// The values of PHPConfig.OverloadPolicy.
const (
	OverloadWait = "wait" // in the backlog, for at most WorkerBacklogWait
	OverloadShed = "shed" // for at most ShedAfter
)

// DefaultConfig returns the configuration of an empty file.
func DefaultConfig() Config {
	return Config{
		Server: ServerConfig{
			Listen:         Addresses{"0.0.0.0:8080"},
			DocumentRoot:   ".",
			ControlSocket:  ControlAuto,
			ResolveRoot:    true,
			SitesIsolation: IsolationShared,
			SitesPoolIdle:  Duration(300 * time.Second),
			IndexFiles:     []string{"index.php", "index.html"},
			PHPExtensions:  []string{".php"},
			WebSocketFiles: []string{"websocket.php"},
			Fallback:       []string{"$uri", "$uri/", "/index.php?$query_string"},
			Request: RequestConfig{
				MaxBodySize:   10 << 20,
				MaxHeaderSize: 32 << 10,
			},
			Timeouts: TimeoutsConfig{
				HeaderRead:   Duration(30 * time.Second),
				Idle:         Duration(60 * time.Second),
				Request:      Duration(300 * time.Second),
				RequestGrace: Duration(5 * time.Second),
				Shutdown:     Duration(30 * time.Second),
			},
			TLS:      defaultTLS(),
			HTTP2:    defaultHTTP2(),
			HTTP3:    defaultHTTP3(),
			Security: defaultSecurity(),
			Limits:   defaultLimits(),
			Response: defaultResponse(),
			Static:   defaultStatic(),
			Metrics:  MetricsConfig{Path: "/metrics"},
			Logging:  defaultLogging(),
			WebSocket: WebSocketConfig{
				Enabled:        true,
				MaxConnections: 10000,
				MessageBurst:   50,
				MaxMessageSize: 1 << 20,
				MaxFrameSize:   1 << 20,
				SendQueue:      64,
				SendQueueBytes: 8 << 20,
				HistoryMemory:  8 << 20,
				PresenceMemory: 16 << 20,
				SendWait:       Millis(100 * time.Millisecond),
				WriteTimeout:   Duration(10 * time.Second),
				PingInterval:   Duration(30 * time.Second),
				IdleTimeout:    Duration(120 * time.Second),

				Compression:          SocketsPlain,
				CompressionThreshold: 256,
				CompressionMemory:    64 << 20,

				SSEHistory: 50,
				PollWait:   Duration(25 * time.Second),
				PollIdle:   Duration(30 * time.Second),
			},
		},
		KV: defaultKV(),
		PHP: PHPConfig{
			Mode:              "fpm",
			WorkerSpawnAfter:  Duration(10 * time.Millisecond),
			WorkerIdleTimeout: Duration(10 * time.Second),
			WorkerMaxRequests: 10000,
			WorkerBacklog:     1000,
			WorkerBacklogWait: Duration(30 * time.Second),
			OverloadPolicy:    OverloadWait,
			MemoryLimit:       "128M",
			MaxExecutionTime:  Duration(30 * time.Second),
			OPcacheRevalidate: Revalidate(2 * time.Second),
			SAPIName:          "ephpm",
		},
	}
}
