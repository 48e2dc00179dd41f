package server

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The headers by which a script has a file sent: by its URL path, as nginx knows
// it, and by its path, as Apache and lighttpd do.
const (
	accelRedirect = "X-Accel-Redirect"
	sendfile      = "X-Sendfile"
)

// A handover is the ResponseWriter of a script that may name a file instead of
// printing one. An answer that does goes nowhere: the file is sent when the script
// has ended and its worker is free.
type handover struct {
	to    *response
	begun bool
	by    string // the header that named a file; empty for an answer like any other
	name  string // as the script wrote it
}

// Header implements http.ResponseWriter.
func (h *handover) Header() http.Header { return h.to.Header() }

// WriteHeader looks for the name of a file. It is for 200 only: another status is
// an answer of its own. The headers never leave the server: they name paths.
func (h *handover) WriteHeader(status int) {
	header := h.Header()
	for _, by := range [...]string{accelRedirect, sendfile} {
		if name := header.Get(by); name != "" && status == http.StatusOK && !h.begun && h.by == "" {
			h.by, h.name = by, name
		}
		delete(header, by)
	}
	h.begun = h.begun || status >= 200
	if h.by == "" {
		h.to.WriteHeader(status)
	}
}

// Write drops what the script printed beside the name of a file.
func (h *handover) Write(p []byte) (int, error) {
	if !h.begun {
		h.WriteHeader(http.StatusOK)
	}
	if h.by != "" {
		return len(p), nil
	}
	return h.to.Write(p)
}

// FlushError is Flush for http.ResponseController.
func (h *handover) FlushError() error {
	if !h.begun {
		h.WriteHeader(http.StatusOK)
	}
	if h.by != "" {
		return nil
	}
	return h.to.FlushError()
}

// sendNamed answers with the file that the script named and with its headers.
func (s *site) sendNamed(w *response, r *http.Request, v *visit, h *handover) {
	header := w.Header()
	f, info, err := s.openNamed(h.by, h.name)
	if err != nil {
		s.log.LogAttrs(r.Context(), slog.LevelWarn, "file that a script named is not sent",
			append(v.attrs(s), slog.String("header", h.by), slog.String("file", h.name), slog.Any("err", err))...)
		clear(header)
		w.fail(http.StatusNotFound)
		return
	}
	defer f.Close()
	// What describes the body that was dropped.
	for _, name := range []string{"Content-Length", "Content-Range", "Content-Encoding", "Content-Md5"} {
		delete(header, name)
	}
	if kind := header.Get("Content-Type"); kind == "" || kind == phpDefaultType {
		header["Content-Type"] = []string{contentType(f.Name())}
	}
	modified := info.ModTime()
	if at, err := http.ParseTime(header.Get("Last-Modified")); err == nil {
		modified = at
	}
	if header.Get("Etag") == "" {
		header["Etag"] = []string{tagOf(info, time.Now())}
	}
	s.limitStall(w)
	http.ServeContent(w, plainIfNotGet(r), "", modified, f)
}

// phpDefaultType is what PHP says of an answer whose script says nothing. Of a
// file that somebody uploaded it would make a web page.
const phpDefaultType = "text/html; charset=UTF-8"

// plainIfNotGet returns a GET without conditions and ranges for any other method,
// for which they mean nothing or something else (RFC 9110 §13.2.1, §14.2).
func plainIfNotGet(r *http.Request) *http.Request {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return r
	}
	return &http.Request{Method: http.MethodGet, Header: http.Header{}}
}

var errOutside = errors.New("not below a directory of [server.sendfile] roots")

// openNamed opens a regular file below one of the directories, whatever symbolic
// links there are.
func (s *site) openNamed(by, name string) (*os.File, fs.FileInfo, error) {
	find := s.sendRoots.byPath
	if by == accelRedirect {
		find = s.sendRoots.byURL
	}
	dir, name, err := find(name)
	if err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(dir) // each time: it may have been made anew
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	// A pipe must not make us wait for a writer.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", name)
	case s.root.isSecret(info):
		err = fmt.Errorf("%s is the configuration", name)
	default:
		return f, info, nil
	}
	_ = f.Close() // it was only looked at
	return nil, nil, err
}

// sendRoots are the configured directories, those with the longest prefix first.
type sendRoots []SendfileRoot

func newSendRoots(roots []SendfileRoot) sendRoots {
	sorted := slices.Clone(roots)
	slices.SortStableFunc(sorted, func(a, b SendfileRoot) int { return len(b.Prefix) - len(a.Prefix) })
	return sorted
}

// byURL finds the directory for a URL path. As with nginx it is percent-encoded,
// and what follows a "?" does not count.
func (roots sendRoots) byURL(name string) (dir, rest string, err error) {
	name, _, _ = strings.Cut(name, "?")
	path, ok := decodePath(name)
	if !ok {
		return "", "", errors.New("not a URL path")
	}
	for _, r := range roots {
		if rest, ok := strings.CutPrefix(path, r.Prefix); ok && !isDirectoryPath(path) {
			return r.Dir, fileName(rest), nil
		}
	}
	return "", "", errOutside
}

// byPath finds the directory of a file. A script that resolved symbolic links
// finds it too.
func (roots sendRoots) byPath(name string) (dir, rest string, err error) {
	if !filepath.IsAbs(name) {
		return "", "", errors.New("not an absolute path")
	}
	for _, r := range roots {
		if rest, err := filepath.Rel(r.Dir, name); err == nil && filepath.IsLocal(rest) {
			return r.Dir, rest, nil
		}
		real, err := filepath.EvalSymlinks(r.Dir)
		if err != nil {
			continue // it has gone
		}
		if rest, err := filepath.Rel(real, name); err == nil && filepath.IsLocal(rest) {
			return real, rest, nil
		}
	}
	return "", "", errOutside
}
