// Package http2connect has net/http announce extended CONNECT on HTTP/2 (RFC
// 8441), by which WebSockets are opened there.
//
// net/http does so only if GODEBUG has http2xconnect=1 when it is initialized, and
// looks at nothing else: no field of http.Server, no //go:debug line. So this
// package, which needs less and has a name that comes before net/http, and is
// therefore initialized earlier (the Go specification orders packages by import
// path), puts it there. Restore takes it away again.
package http2connect

import (
	"os"
	"strings"
)

const name, setting = "GODEBUG", "http2xconnect="

// was is what the environment had, and whether it had any.
var was, had = announce()

func announce() (string, bool) {
	was, had := os.LookupEnv(name)
	if !strings.Contains(was, setting) { // or somebody has decided
		_ = os.Setenv(name, strings.TrimPrefix(was+","+setting+"1", ",")) // the name is legal
	}
	return was, had
}

// Restore brings the environment back to what it was, for processes that are
// started. It is called once net/http is initialized; true is for those who have
// to be package variables.
func Restore() bool {
	if !had {
		return os.Unsetenv(name) == nil
	}
	return os.Setenv(name, was) == nil
}
