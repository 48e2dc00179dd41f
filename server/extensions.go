package server

import "strings"

// extensions are how the names of PHP scripts end, each with its dot.
type extensions []string

// end returns where the first segment behind from that ends in one of them ends, or
// 0. It compares bytes: no letter case, no Unicode look-alike is ".php".
func (e extensions) end(p string, from int) int {
	first := 0
	for _, x := range e {
		if end := endOf(p, from, x); end > 0 && (first == 0 || end < first) {
			first = end
		}
	}
	return first
}

func endOf(p string, from int, extension string) int {
	for {
		at := strings.Index(p[from:], extension)
		if at < 0 {
			return 0
		}
		from += at + len(extension)
		if from == len(p) || p[from] == '/' {
			return from
		}
	}
}

// fit reports whether a script may be called name.
func (e extensions) fit(name string) bool {
	for _, x := range e {
		if strings.HasSuffix(name, x) {
			return true
		}
	}
	return false
}

// conceal reports whether a name ends in one of them, or in ".php", in any letter
// case. Such a file is never sent.
func (e extensions) conceal(name string) bool {
	for _, x := range e {
		if hasSuffixFold(name, x) {
			return true
		}
	}
	return hasSuffixFold(name, ".php")
}

func hasSuffixFold(s, suffix string) bool {
	return len(s) >= len(suffix) && strings.EqualFold(s[len(s)-len(suffix):], suffix)
}

// extensions checks how scripts may end.
func (k *checks) extensions(key string, list []string) {
	for _, x := range list {
		name, dot := strings.CutPrefix(x, ".")
		if !dot || name == "" || strings.HasSuffix(name, ".") || strings.ContainsAny(name, "/\\\x00") {
			k.add(key, `%q is not an extension such as ".php"`, x)
		}
	}
}
