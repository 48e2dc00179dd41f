package server

import (
	"bytes"
	"net/http"
	"sync/atomic"
)

// nameOfLength is the field name that a saidLength looks for, in two parts: the
// hyphen between them is what is searched.
const (
	lengthBefore = "content"
	lengthBehind = "length"
	lengthName   = lengthBefore + "-" + lengthBehind
)

// A saidLength remembers whether a client wrote "Content-Length", in any letters, on
// its connection. net/http takes the field out of a request that is chunked and does
// not tell whether it was there (RFC 9112 §6.3). It looks at all bytes and not only
// at fields, and forgets only where it is sure that a request begins: it may say that
// the field was there when it was not, but not the other way round.
//
// The zero value has seen nothing. Bytes are given to it by one goroutine at a time;
// the other methods may be called from any.
type saidLength struct {
	seen  atomic.Bool
	stage atomic.Uint32

	// Owned by who reads.
	tail [len(lengthName) - 1]byte // the end of what was read, to its right
	kept int                       // bytes of tail
}

// Stages between two requests. net/http, when a request is answered, sets the
// deadline of an idle connection, waits for four bytes unless it has them, and sets
// the deadline of the next header. If it reads in between, all that it has of the next
// request are the three bytes at its start at most, which are of its method.
const (
	midRequest uint32 = iota // or nobody knows
	answered
	waiting
)

// idle is called when net/http has done with a request.
func (s *saidLength) idle() { s.stage.Store(answered) }

// deadline is called when net/http sets the deadline for reads.
func (s *saidLength) deadline() {
	switch s.stage.Load() {
	case answered:
		s.stage.Store(waiting)
	case waiting:
		s.stage.Store(midRequest)
	}
}

// read takes what came from the client.
func (s *saidLength) read(p []byte) {
	if s.stage.Load() == waiting {
		s.stage.Store(midRequest)
		s.seen.Store(false)
		s.kept = 0
	}
	if s.seen.Load() || len(p) == 0 {
		return
	}
	if s.kept > 0 {
		var seam [2 * len(s.tail)]byte
		n := copy(seam[:], s.tail[len(s.tail)-s.kept:])
		n += copy(seam[n:], p[:min(len(p), len(s.tail))])
		if namesLength(seam[:n]) {
			s.seen.Store(true)
			return
		}
	}
	if namesLength(p) {
		s.seen.Store(true)
		return
	}
	if n := len(p); n < len(s.tail) {
		copy(s.tail[:], s.tail[n:])
		copy(s.tail[len(s.tail)-n:], p)
		s.kept = min(s.kept+n, len(s.tail))
	} else {
		copy(s.tail[:], p[n-len(s.tail):])
		s.kept = len(s.tail)
	}
}

// namesLength reports whether lengthName is somewhere in p.
func namesLength(p []byte) bool {
	for at := 0; ; at++ {
		i := bytes.IndexByte(p[at:], '-')
		if i < 0 {
			return false
		}
		at += i
		before, behind := at-len(lengthBefore), at+1+len(lengthBehind)
		if behind > len(p) {
			return false
		}
		if before >= 0 && p[at+1]|0x20 == lengthBehind[0] && equalFold(p[before:at], lengthBefore) && equalFold(p[at+1:behind], lengthBehind) {
			return true
		}
	}
}

// equalFold reports whether p is lower in any letters, which are those of ASCII.
func equalFold(p []byte, lower string) bool {
	for i := range len(lower) {
		if p[i]|0x20 != lower[i] {
			return false
		}
	}
	return true
}

// mayHaveTwoEnds reports whether a chunked request of HTTP/1.1 may have had a length as
// well. Somebody in front may go by that, and take what follows for a part of the body:
// such a connection must end (RFC 9112 §6.1). Within TLS nobody can tell.
func mayHaveTwoEnds(r *http.Request) bool {
	if r.ProtoMajor > 1 || len(r.TransferEncoding) == 0 {
		return false
	}
	c := peerOf(r).conn
	return c == nil || r.TLS != nil || c.length.seen.Load()
}
