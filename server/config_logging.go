package server

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

// The values of LoggingConfig.Format.
const (
	LogText = "text" // key=value
	LogJSON = "json" // an object a line
)

// AccessStdout, in LoggingConfig.Access, stands for standard output.
const AccessStdout = "stdout"

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
	if c.Access == "" || c.Access == AccessStdout {
		return
	}
	k.inDirectory("server.logging.access", c.Access)
}
