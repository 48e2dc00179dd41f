package server

import (
	"bytes"
	"testing"
)

// said gives bytes to a saidLength in parts of n and returns what it thinks.
func said(text string, n int) bool {
	var s saidLength
	for len(text) > 0 {
		part := text[:min(n, len(text))]
		s.read([]byte(part))
		text = text[len(part):]
	}
	return s.seen.Load()
}

func TestSaidLengthFindsTheNameHoweverItComes(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: x\r\nX-A-: b-\r\n"
	for text, want := range map[string]bool{
		head + "Content-Length: 5\r\n\r\n":          true,
		head + "CONTENT-LENGTH:5\r\n\r\n":           true,
		head + "cOnTeNt-lEnGtH : 5\r\n\r\n":         true,
		"Content-Length":                            true,
		"Content-Content-Length":                    true,
		"-Content-Length":                           true,
		"content-type: content-length":              true, // it may say too much
		head + "Content-Type: text/plain\r\n\r\n":   false,
		head + "Content_Length: 5\r\n\r\n":          false,
		head + "ContentLength: 5\r\n\r\n":           false,
		head + "Content-Lengt: 5\r\n\r\n":           false,
		head + "ontent-Length: 5\r\n\r\n":           false,
		head + "Content-\r\nLength: 5\r\n\r\n":      false,
		head + "Content--Length: 5\r\n\r\n":         false,
		head + "Transfer-Encoding: chunked\r\n\r\n": false,
		"":  false,
		"-": false,
	} {
		for n := 1; n <= max(1, len(text)); n++ {
			if got := said(text, n); got != want {
				t.Errorf("%q in parts of %d: %v, want %v", text, n, got, want)
			}
		}
	}
}

// Only what net/http reads between two requests is sure to be the start of one.
func TestSaidLengthForgetsWhereARequestBegins(t *testing.T) {
	const length = "Content-Length: 0\r\n"
	for name, test := range map[string]struct {
		steps func(*saidLength)
		want  bool
	}{
		"the next request": {func(s *saidLength) { s.read([]byte(length)); s.idle(); s.deadline(); s.read([]byte("PO")) }, false},
		"its second part": {func(s *saidLength) {
			s.idle()
			s.deadline()
			s.read([]byte("POST / HTTP/1.1\r\n" + length))
			s.read([]byte("Transfer-Encoding: chunked\r\n\r\n"))
		}, true},
		"its second part, in the header's time": {func(s *saidLength) {
			s.idle()
			s.deadline()
			s.read([]byte("POST / HTTP/1.1\r\n" + length))
			s.deadline()
			s.read([]byte("Transfer-Encoding: chunked\r\n\r\n"))
		}, true},
		"one that had come before": {func(s *saidLength) {
			s.read([]byte("POST / HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\n" + length))
			s.idle()
			s.deadline()
			s.deadline()
			s.read([]byte("Transfer-Encoding: chunked\r\n\r\n"))
		}, true},
		"deadlines of a body": {func(s *saidLength) {
			s.read([]byte(length))
			s.deadline()
			s.read([]byte("x"))
			s.deadline()
			s.read([]byte("x"))
		}, true},
	} {
		var s saidLength
		test.steps(&s)
		if got := s.seen.Load(); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func FuzzSaidLength(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\n"), uint8(3))
	f.Add([]byte("content-lengtcontent-length"), uint8(13))
	f.Add([]byte("-------content-l"), uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, n uint8) {
		want := bytes.Contains(bytes.ToLower(text), []byte(lengthName))
		if got := said(string(text), int(n)+1); got != want {
			t.Errorf("%q in parts of %d: %v, want %v", text, int(n)+1, got, want)
		}
	})
}
