package server

import (
	"runtime"
	"runtime/debug"

	"ephpm/phpbridge"
)

// A BuildInfo says what this program was built from.
type BuildInfo struct {
	Version string // of ephpm
	Go      string // such as "go1.26.8"
	PHP     string // of the headers that phpbridge was compiled against
}

// Build returns what this program was built from.
func Build() BuildInfo {
	return BuildInfo{Version: version(), Go: runtime.Version(), PHP: phpbridge.PHPVersion()}
}

// version is the module version when the program was installed by go install,
// else the revision it was built from, else "devel".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
