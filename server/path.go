package server

import "strings"

// A target is the request target as the client spelled it, never cleaned.
type target struct {
	uri   string // path and query: REQUEST_URI
	path  string // still encoded
	query string // without the "?"
}

// parseTarget takes a request target apart. Of an absolute URL (RFC 9112 §3.2.2)
// it keeps what follows the authority. It reports false for a target that names
// no path: "*", or the authority of a CONNECT; for a URL without a host (RFC 9110
// §4.2.1); for one with user information, which is there to make a host look like
// another (RFC 9110 §4.2.4); and for white space and control characters (RFC 3986 §2).
func parseTarget(s string) (target, bool) {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return target{}, false // HTTP/2 and HTTP/3 can carry it (RFC 9113 §8.3.1)
		}
	}
	if !strings.HasPrefix(s, "/") {
		scheme, rest, ok := strings.Cut(s, "://")
		if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
			return target{}, false
		}
		end := len(rest)
		if i := strings.IndexAny(rest, "/?#"); i >= 0 {
			end = i
		}
		if end == 0 || strings.Contains(rest[:end], "@") {
			return target{}, false
		}
		if s = rest[end:]; !strings.HasPrefix(s, "/") {
			s = "/" + s
		}
	}
	t := target{uri: s}
	t.path, t.query, _ = strings.Cut(s, "?")
	return t, true
}

// decodePath undoes the percent-encoding of a path that starts with a slash. The
// bytes need not be UTF-8. It reports false for what no honest client sends and
// what later readers of the path might understand differently: a bad escape, a
// NUL, a backslash, an encoded slash, a ".." segment in any spelling.
func decodePath(raw string) (string, bool) {
	if !strings.HasPrefix(raw, "/") {
		return "", false
	}
	p := raw
	if strings.Contains(raw, "%") {
		var ok bool
		if p, ok = unescape(raw); !ok {
			return "", false
		}
	}
	if strings.ContainsAny(p, "\\\x00") || hasDotDot(p) {
		return "", false
	}
	return p, true
}

// unescape decodes %XX. It reports false for a bad escape and for an encoded
// slash, which would add a segment that the client did not spell as one.
func unescape(raw string) (string, bool) {
	b := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '%' {
			if i+2 >= len(raw) {
				return "", false
			}
			hi, lo := unhex(raw[i+1]), unhex(raw[i+2])
			if hi < 0 || lo < 0 {
				return "", false
			}
			if c = byte(hi<<4 | lo); c == '/' {
				return "", false
			}
			i += 2
		}
		b = append(b, c)
	}
	return string(b), true
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// hasDotDot reports whether a segment of p is "..".
func hasDotDot(p string) bool {
	for i := 0; ; {
		at := strings.Index(p[i:], "/..")
		if at < 0 {
			return false
		}
		i += at + len("/..")
		if i == len(p) || p[i] == '/' {
			return true
		}
	}
}

// hasHidden reports whether a segment of p starts with a dot and is more than
// the dot. The first segment may be ".well-known" (RFC 8615).
func hasHidden(p string) bool {
	p = strings.TrimLeft(p, "/")
	if rest, ok := strings.CutPrefix(p, ".well-known"); ok && (rest == "" || rest[0] == '/') {
		p = rest
	}
	if len(p) > 1 && p[0] == '.' && p[1] != '/' {
		return true
	}
	for i := 0; ; {
		at := strings.Index(p[i:], "/.")
		if at < 0 {
			return false
		}
		i += at + len("/.")
		if i < len(p) && p[i] != '/' {
			return true
		}
	}
}

// fileName turns a decoded path into a name relative to the root: no slash at
// either end, no empty and no "." segment. The root itself is ".".
func fileName(p string) string {
	name := strings.Trim(p, "/")
	if name == "" {
		return "."
	}
	if name[0] != '.' && !strings.Contains(name, "//") && !strings.Contains(name, "/.") {
		return name
	}
	var b strings.Builder
	for segment := range strings.SplitSeq(name, "/") {
		if segment == "" || segment == "." {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('/')
		}
		b.WriteString(segment)
	}
	if b.Len() == 0 {
		return "."
	}
	return b.String()
}

// isDirectoryPath reports whether p can only name a directory: it ends in a
// slash or in a "." segment.
func isDirectoryPath(p string) bool {
	return strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.")
}
