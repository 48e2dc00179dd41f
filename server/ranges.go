package server

import (
	"net/http"
	"strings"
)

// maxRanges is how many parts of a file one request may ask for. More are more work
// than the whole file, and no client that does something with them sends so many
// (RFC 9110 §14.2, §17.15).
const maxRanges = 64

// asksForParts reports whether a request is to be answered with parts of a file. A
// Range that is in another unit than bytes, there twice or too long is as if it were
// not there (RFC 9110 §14.2), and so is one that asks for the last no bytes, of which
// http.ServeContent would make a part from behind the end.
func asksForParts(r *http.Request) bool {
	lines := r.Header["Range"]
	if len(lines) != 1 {
		return false
	}
	set, ok := strings.CutPrefix(lines[0], "bytes=")
	if !ok || strings.Count(set, ",") >= maxRanges {
		return false
	}
	for part := range strings.SplitSeq(set, ",") {
		if last, ok := strings.CutPrefix(strings.TrimSpace(part), "-"); ok && strings.Trim(last, "0 \t") == "" {
			return false
		}
	}
	return true
}
