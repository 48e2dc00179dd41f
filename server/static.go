package server

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// allowFile is Allow for files.
var allowFile = []string{"GET, HEAD, OPTIONS"}

var acceptRanges = []string{"bytes"}

// encodeWhole is the largest file that is encoded in one piece, in bytes, and kept
// so. A larger one is encoded as it goes out.
const encodeWhole = 1 << 20

// sendFile answers with a file below the root.
func (s *site) sendFile(w *response, r *http.Request, v *visit, now time.Time) handler {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header()["Allow"] = allowFile
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
		} else {
			w.fail(http.StatusMethodNotAllowed)
		}
		return handlerStatic
	}
	f := v.route.known
	if f == nil {
		var err error
		if f, err = v.tree.file(v.route.file, now); err != nil {
			s.failFile(w, v, err)
			return handlerStatic
		}
	}
	form, ok := s.chooseForm(w, r, v, f, now)
	if !ok {
		w.fail(http.StatusNotAcceptable)
		return handlerStatic
	}
	if err := s.sendForm(w, r, v, form, now); err != nil {
		s.failFile(w, v, err)
	}
	return handlerStatic
}

// failFile answers for a file that was found and cannot be sent.
func (s *site) failFile(w *response, v *visit, err error) {
	switch {
	case w.begun():
		w.cut = true
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.EIO):
		s.logError(v, err)
		w.fail(http.StatusServiceUnavailable)
	case errors.Is(err, fs.ErrPermission):
		w.fail(http.StatusForbidden)
	default:
		w.fail(http.StatusNotFound) // gone since it was found
	}
}

// A form is a file in one of its encodings.
type form struct {
	coding coding
	file   *file // whose header counts; of a precompressed file the kind is another's
	kind   []string
	tag    []string // nil: none
	length []string
	body   []byte // nil: the content of file
}

// chooseForm chooses what is sent of a file and says in the header what the choice
// depended on. It reports false when the client accepts nothing that there is.
func (s *site) chooseForm(w *response, r *http.Request, v *visit, f *file, now time.Time) (form, bool) {
	plain := form{file: f, kind: f.header.kind, tag: f.header.tag, length: f.header.length, body: f.content}
	var beside *siblings
	if s.precompressed {
		beside = v.tree.siblings(f, now)
	}
	compress := s.out != nil && s.out.compress != nil
	fly := compress && f.compressible && f.id.size >= s.out.compress.minSize
	varies := fly || beside.any()
	if !varies && (!compress || !refusesIdentity(r)) {
		w.final = true
		return plain, !refusesIdentity(r)
	}
	if fly && f.id.size > encodeWhole && !beside.any() {
		return plain, true // encoded on its way
	}
	w.final = true
	if varies {
		addVary(w.Header(), "Accept-Encoding")
	}
	offered := make([]coding, 0, 2*codings)
	offered = beside.offer(offered)
	if compress && f.id.size <= encodeWhole && (fly || !varies) && !asksForParts(r) {
		offered = append(offered, brotliCoding, zstdCoding, gzipCoding)
	}
	chosen, ok := parseAccept(r.Header["Accept-Encoding"]).best(offered...)
	if chosen == identity {
		return plain, ok
	}
	if beside.has(chosen) {
		if other, err := v.tree.file(beside.names[chosen], now); err == nil {
			return form{chosen, other, f.header.kind, other.header.tag, other.header.length, other.content}, true
		}
	}
	encoded := s.encode(v, f, chosen)
	if encoded == nil || len(encoded.body) >= int(f.id.size) && !refusesIdentity(r) {
		return plain, ok
	}
	return form{chosen, f, f.header.kind, encoded.tag, encoded.length, encoded.body}, true
}

// sendForm sends it, or what the client's conditions and ranges leave of it.
func (s *site) sendForm(w *response, r *http.Request, v *visit, c form, now time.Time) error {
	var content io.ReadSeeker
	if c.body == nil {
		opened, info, err := v.tree.openFile(c.file.name)
		if err != nil {
			return err
		}
		defer opened.Close()
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || idOf(st) != c.file.id {
			if c.file, err = v.tree.newFile(c.file.name, opened, info, now); err != nil { // it has changed meanwhile
				return err
			}
			c.tag, c.length = c.file.header.tag, c.file.header.length
			if _, err := opened.Seek(0, io.SeekStart); err != nil {
				return err
			}
		}
		content = opened
	}
	h := w.Header()
	h["Content-Type"] = c.kind
	h["Last-Modified"] = c.file.header.modified
	if c.coding != identity {
		h["Content-Encoding"] = codingHeaders[c.coding]
	}
	tag := ""
	if s.etag {
		h["Etag"] = c.tag
		tag = c.tag[0]
	}
	if c.file.header.cache != nil {
		h["Cache-Control"] = c.file.header.cache
	}
	if status := precondition(r, tag, c.file.modified); status != 0 {
		return failPrecondition(w, status)
	}
	if r.Method == http.MethodGet && asksForParts(r) {
		if content == nil {
			content = bytes.NewReader(c.body)
		}
		w.final = true
		http.ServeContent(w, r, "", c.file.modified, content)
		return nil
	}
	h["Accept-Ranges"] = acceptRanges
	h["Content-Length"] = c.length
	w.WriteHeader(http.StatusOK)
	var err error
	switch {
	case r.Method == http.MethodHead:
	case content == nil:
		_, err = w.Write(c.body)
	default:
		err = w.sendAll(content, c.file.id.size)
	}
	if err != nil || w.lost {
		w.cut = true
	}
	return nil
}

// sendAll sends size bytes of a file. One that turns out shorter is cut.
func (w *response) sendAll(content io.Reader, size int64) error {
	n, err := w.ReadFrom(&io.LimitedReader{R: content, N: size})
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// An encodedForm is the whole content of a file, encoded.
type encodedForm struct {
	body        []byte
	tag, length []string
}

// encode returns a file encoded, from memory if it was before, or nil when that
// is not possible now.
func (s *site) encode(v *visit, f *file, c coding) *encodedForm {
	if form := f.encoded[c].Load(); form != nil {
		return form
	}
	f.encoding.Lock()
	defer f.encoding.Unlock()
	if form := f.encoded[c].Load(); form != nil {
		return form
	}
	content := f.content
	if content == nil {
		var err error
		if content, err = v.tree.read(f); err != nil {
			return nil
		}
	}
	body := bytes.NewBuffer(make([]byte, 0, len(content)/2))
	if !s.out.compress.encoders.encode(body, c, content) {
		return nil
	}
	form := &encodedForm{body: bytes.Clone(body.Bytes()), tag: []string{contentTag(body.Bytes())}, length: []string{strconv.Itoa(body.Len())}}
	v.tree.files.memory.keepForm(f, c, form)
	return form
}

// read returns the content of a file that is not kept.
func (t *tree) read(f *file) ([]byte, error) {
	opened, info, err := t.openFile(f.name)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || idOf(st) != f.id {
		return nil, fs.ErrNotExist // it is another
	}
	content := make([]byte, f.id.size)
	_, err = io.ReadFull(opened, content)
	return content, err
}

// precondition evaluates the conditions of a request for what has a tag, or none
// if it is empty, and was modified at a time (RFC 9110 §13.2.2). It returns 0 when
// they hold, else the status of the answer.
func precondition(r *http.Request, tag string, modified time.Time) int {
	h := r.Header
	if lines := h["If-Match"]; len(lines) != 0 {
		if !matchesTag(lines, tag, true) {
			return http.StatusPreconditionFailed
		}
	} else if at, ok := headerTime(h["If-Unmodified-Since"]); ok && modified.Truncate(time.Second).After(at) {
		return http.StatusPreconditionFailed
	}
	if lines := h["If-None-Match"]; len(lines) != 0 {
		if matchesTag(lines, tag, false) {
			return http.StatusNotModified
		}
	} else if at, ok := headerTime(h["If-Modified-Since"]); ok && !modified.Truncate(time.Second).After(at) {
		return http.StatusNotModified
	}
	return 0
}

// failPrecondition answers with what precondition returned.
func failPrecondition(w *response, status int) error {
	h := w.Header()
	if status == http.StatusPreconditionFailed {
		w.fail(status)
		return nil
	}
	delete(h, "Content-Type")
	delete(h, "Content-Encoding")
	w.WriteHeader(status)
	return nil
}

func headerTime(lines []string) (time.Time, bool) {
	if len(lines) != 1 {
		return time.Time{}, false
	}
	at, err := http.ParseTime(lines[0])
	return at, err == nil
}

// matchesTag reports whether a list of entity tags has one, or is "*", which stands
// for anything that exists. A strong comparison takes no weak tag (RFC 9110
// §8.8.3.2).
func matchesTag(lines []string, tag string, strong bool) bool {
	if strong && strings.HasPrefix(tag, "W/") {
		tag = ""
	}
	opaque := strings.TrimPrefix(tag, "W/")
	for _, line := range lines {
		if strings.TrimSpace(line) == "*" {
			return true
		}
		for rest := line; ; {
			rest = strings.TrimLeft(rest, " \t,")
			weak := strings.HasPrefix(rest, "W/")
			if weak {
				rest = rest[len("W/"):]
			}
			if !strings.HasPrefix(rest, `"`) {
				break
			}
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 {
				break
			}
			if rest[:end+2] == opaque && !(strong && weak) {
				return true
			}
			rest = rest[end+2:]
		}
	}
	return false
}

// tagOf is the entity tag of a file that is not below a root.
func tagOf(info os.FileInfo, now time.Time) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return `W/"` + strconv.FormatInt(info.ModTime().UnixNano(), 36) + `"`
	}
	id := idOf(st)
	if !id.settled(now) {
		return "W/" + statTag(id)
	}
	return statTag(id)
}
