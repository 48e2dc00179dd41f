package server

import "fmt"

// LoggingConfig is [server.logging].
type LoggingConfig struct {
	// Level is the least that is logged: "debug", "info", "warn" or "error".
	Level string `toml:"level"`
	// Format is that of the log on stderr: LogText or LogJSON.
	Format string `toml:"format"`
	// Access is the file of the access log, which is made with mode 0640 and
	// opened anew by ReopenLogs, or AccessStdout. A relative path in a
	// configuration file starts at that file's directory. Empty means none.
	Access string `toml:"access"`
	// AccessFormat is that of the access log: one of AccessBrief, AccessCommon,
	// AccessCombined and AccessJSON.
	AccessFormat string `toml:"access_format"`
	// RequestIDHeader sends each request's ID to its client as X-Request-Id.
	RequestIDHeader bool `toml:"request_id_header"`
	// StderrRate limits the lines a second that are logged of what one worker
	// prints on stderr; ten times as many may come at once. Zero means no limit.
	StderrRate int `toml:"stderr_rate"`
}

// SiteLoggingConfig is [site.logging].
type SiteLoggingConfig struct {
	// Access is the file that has the site's lines, as that of [server.logging],
	// or AccessStdout, or AccessOff. Empty means that [server.logging] decides.
	Access string `toml:"access"`
	// AccessFormat is that of [server.logging]. Empty means that it decides.
	AccessFormat string `toml:"access_format"`
}

// of returns the logging of a site.
func (s SiteLoggingConfig) of(c LoggingConfig) LoggingConfig {
	switch s.Access {
	case "":
	case AccessOff:
		c.Access = ""
	default:
		c.Access = s.Access
	}
	if s.AccessFormat != "" {
		c.AccessFormat = s.AccessFormat
	}
	return c
}

// The values of LoggingConfig.Format.
const (
	LogText = "text" // key=value
	LogJSON = "json" // an object a line
)

// AccessStdout, in LoggingConfig.Access, stands for standard output.
const AccessStdout = "stdout"

// AccessOff, in SiteLoggingConfig.Access, stands for no log.
const AccessOff = "off"

// The values of LoggingConfig.AccessFormat.
const (
	AccessBrief    = "brief"    // time of day, method, target, status, time taken
	AccessCommon   = "common"   // NCSA's, which every program reads
	AccessCombined = "combined" // with Referer and User-Agent
	AccessJSON     = "json"     // with everything there is
)

func defaultLogging() LoggingConfig {
	return LoggingConfig{Level: "info", Format: LogText, AccessFormat: AccessCombined, StderrRate: 100}
}

func (k *checks) logging(c LoggingConfig) {
	k.oneOf("server.logging.level", c.Level, "debug", "info", "warn", "error")
	k.oneOf("server.logging.format", c.Format, LogText, LogJSON)
	k.oneOf("server.logging.access_format", c.AccessFormat, AccessBrief, AccessCommon, AccessCombined, AccessJSON)
	if c.Access != AccessStdout {
		k.inDirectory("server.logging.access", c.Access)
	}
}

func (k *checks) siteLogging(key string, c SiteLoggingConfig) {
	if c.AccessFormat != "" {
		k.oneOf(key+".access_format", c.AccessFormat, AccessBrief, AccessCommon, AccessCombined, AccessJSON)
	}
	if c.Access != AccessStdout && c.Access != AccessOff {
		k.inDirectory(key+".access", c.Access)
	}
}

// accessFormats checks that each access log has one format.
func (k *checks) accessFormats(c Config) {
	type log struct{ key, format string }
	seen := map[string]log{accessName(c.Server.Logging): {"server.logging.access", c.Server.Logging.AccessFormat}}
	for i, s := range c.Sites {
		own := c.forSite(s).Server.Logging
		key := fmt.Sprintf("site[%d].logging", i+1)
		first, there := seen[accessName(own)]
		switch {
		case own.Access == "":
		case !there:
			seen[accessName(own)] = log{key + ".access", own.AccessFormat}
		case first.format != own.AccessFormat:
			k.add(key+".access_format", "%q is not the format %q that the same file has by %s", own.AccessFormat, first.format, first.key)
		}
	}
}
