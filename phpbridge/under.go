//go:build under

package phpbridge

import (
	"os"
	"strings"
)

// A program with the tag "under" takes the command from the environment, so that
// build/test-valgrind.sh can look into the workers of a whole server.
func init() { under = strings.Fields(os.Getenv("ZYGOTE_UNDER")) }
