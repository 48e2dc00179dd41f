package kv

// Match reports whether a key matches a pattern as KEYS of Redis has them.
func Match(pattern, key []byte) bool { return globMatch(pattern, key) }

// globMatch reports whether text matches a pattern as Redis has them: * any
// bytes, ? one byte, [ab], [a-z], [^a] one byte of a class, \ the next byte as
// it is. It takes time of the order of len(pattern)*len(text).
func globMatch(pattern, text []byte) bool {
	// Where the last * was seen, and the text that is to be tried after it.
	star, again := -1, 0
	p, t := 0, 0
	for t < len(text) {
		if p < len(pattern) {
			if pattern[p] == '*' {
				star, again = p, t
				p++
				continue
			}
			if n, ok := globByte(pattern[p:], text[t]); ok {
				p += n
				t++
				continue
			}
		}
		if star < 0 {
			return false
		}
		again++
		p, t = star+1, again
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// globByte matches one byte against the start of a pattern, and returns how much
// of the pattern that was.
func globByte(pattern []byte, c byte) (n int, ok bool) {
	switch pattern[0] {
	case '?':
		return 1, true
	case '\\':
		if len(pattern) > 1 {
			return 2, pattern[1] == c
		}
	case '[':
		return globClass(pattern, c)
	}
	return 1, pattern[0] == c
}

// globClass matches one byte against a class, whose end may be missing.
func globClass(pattern []byte, c byte) (n int, ok bool) {
	i := 1
	not := i < len(pattern) && pattern[i] == '^'
	if not {
		i++
	}
	for ; i < len(pattern) && pattern[i] != ']'; i++ {
		from := pattern[i]
		if from == '\\' && i+1 < len(pattern) {
			i++
			from = pattern[i]
		} else if i+2 < len(pattern) && pattern[i+1] == '-' {
			to := pattern[i+2]
			i += 2
			if min(from, to) <= c && c <= max(from, to) {
				ok = true
			}
			continue
		}
		if from == c {
			ok = true
		}
	}
	return min(i+1, len(pattern)), ok != not
}
