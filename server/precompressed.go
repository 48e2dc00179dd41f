package server

import (
	"time"
)

// siblingSuffixes name what lies beside a file and is the same, encoded.
var siblingSuffixes = [codings]string{"", ".gz", ".zst", ".br"}

// smallestFirst are the codings of siblings in the order of preference: somebody
// took the time to encode them well.
var smallestFirst = [...]coding{brotliCoding, zstdCoding, gzipCoding}

// siblings are the precompressed forms of a file as they were found.
type siblings struct {
	names [codings]string // below the root; empty for none
	some  bool
	until time.Time // when to look again
}

// any reports whether there is one. A nil *siblings has none.
func (s *siblings) any() bool { return s != nil && s.some }

func (s *siblings) has(c coding) bool { return s != nil && s.names[c] != "" }

// offer appends the codings that are there, best first.
func (s *siblings) offer(offered []coding) []coding {
	for _, c := range smallestFirst {
		if s.has(c) {
			offered = append(offered, c)
		}
	}
	return offered
}

// siblings looks for the precompressed forms of a file, at most once per lookAgain.
// One that is older than the file was made from another.
func (t *tree) siblings(f *file, now time.Time) *siblings {
	if s := f.siblings.Load(); s != nil && now.Before(s.until) {
		return s
	}
	s := &siblings{until: now.Add(lookAgain)}
	for _, c := range smallestFirst {
		found := t.look(f.name + siblingSuffixes[c])
		if found.kind != aFile {
			continue
		}
		other, err := t.file(found.name, now)
		if err != nil || other.modified.Unix() < f.modified.Unix() {
			continue
		}
		s.names[c], s.some = found.name, true
	}
	f.siblings.Store(s)
	return s
}
