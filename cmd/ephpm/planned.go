package main

import "strings"

// plannedKeys are the keys and tables of the public project that this version
// does not have, with what to do instead. What is below a table is as planned
// as the table.
var plannedKeys = map[string]string{
	"server.response.compression_streaming": "remove the key; what a script flushes reaches the client at once",
	"server.php_etag_cache":                 "remove the table",
	"server.file_cache":                     "remove the table; the kernel caches files",
	"server.diagnostics":                    "remove the table; [server.metrics] has counters, [server.admin] shows what runs at /_ephpm/requests",
	"server.run_as_user":                    "start ephpm as that user",
	"server.run_as_group":                   "start ephpm as that group",

	"php.fpm_engine":                   "remove the key; scripts run in a pool of processes",
	"php.crash_containment":            "remove the key; a crash costs one request in any case",
	"php.overload":                     "set overload_policy and shed_after_ms",
	"php.concurrency":                  "set workers",
	"php.queue_depth":                  "set worker_backlog",
	"php.worker":                       `remove the table; mode = "fpm" is the only one`,
	"php.worker_count":                 "set workers",
	"php.worker_script":                `remove the key; mode = "fpm" is the only one`,
	"php.worker_boot_timeout":          "remove the key",
	"php.worker_populate_superglobals": "remove the key; they always are",
	"php.worker_stream_threshold":      "remove the key",
	"php.opcache":                      "set opcache_revalidate, and opcache.… in ini_overrides",

	"cluster":       "remove the table",
	"db":            "remove the table and let PHP connect to the database",
	"middleware":    "remove the table",
	"observability": "remove the table; [server.metrics] has counters, [server.admin] shows what runs at /_ephpm/requests",
}

// plannedKey returns what to do about a key of the public project that this
// version does not have, and whether it is one.
func plannedKey(key string) (advice string, ok bool) {
	for {
		if advice, ok = plannedKeys[key]; ok {
			return advice, true
		}
		i := strings.LastIndexByte(key, '.')
		if i < 0 {
			return "", false
		}
		key = key[:i]
	}
}

// plannedCommands are the public project's commands that this version does not
// have, with what to do instead.
var plannedCommands = map[string]string{
	"install":   "write a unit for your service manager that runs ephpm serve",
	"uninstall": "remove the unit by your service manager",
	"start":     "use your service manager",
	"stop":      "send SIGTERM, or use your service manager",
	"restart":   "use your service manager",
	"status":    "use your service manager",
	"logs":      "the log is on stderr",
	"deploy":    "use ephpm reload",
	"cache":     "use ephpm reload",
}
