package server

import (
	"fmt"
	"strings"
)

// matchGlob reports whether a decoded path matches a glob: "*" is any number of
// bytes, slashes included, "?" is one, and everything else is itself. Its time is
// at most the product of the lengths.
func matchGlob(glob, path string) bool {
	g, p := 0, 0
	star, resume := -1, 0 // the last "*", and where what it stands for ends
	for p < len(path) {
		switch {
		case g < len(glob) && glob[g] == '*':
			star, resume = g, p
			g++
		case g < len(glob) && (glob[g] == '?' || glob[g] == path[p]):
			g++
			p++
		case star >= 0:
			resume++
			g, p = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(glob[g:], "*") == ""
}

// checkGlob says what is wrong with a glob for URL paths.
func checkGlob(glob string) error {
	if !strings.HasPrefix(glob, "/") && !strings.HasPrefix(glob, "*") {
		return fmt.Errorf(`%q never matches: a path starts with "/"; want "/dir/*" or "*.ext"`, glob)
	}
	if strings.ContainsAny(glob, "[]{}\\") {
		return fmt.Errorf(`%q: only "*" and "?" stand for something else`, glob)
	}
	return nil
}
