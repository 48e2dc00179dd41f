package server

import (
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// sendFile answers with a file below the root. http.ServeContent knows ranges and
// conditions, and sends by sendfile.
func (s *site) sendFile(w *response, r *http.Request, v *visit) handler {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.fail(http.StatusMethodNotAllowed)
		return handlerStatic
	}
	f, err := v.tree.open(v.route.file)
	if err != nil {
		w.fail(http.StatusNotFound) // gone since it was found
		return handlerStatic
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || s.root.isSecret(info) {
		w.fail(http.StatusNotFound)
		return handlerStatic
	}
	h := w.Header()
	h["Content-Type"] = []string{contentType(v.route.file)}
	h["Etag"] = []string{entityTag(info.ModTime().UnixNano(), info.Size())}
	if s.cacheControl != "" {
		h["Cache-Control"] = []string{s.cacheControl}
	}
	http.ServeContent(w, r, "", info.ModTime(), f)
	return handlerStatic
}

// entityTag is strong: nobody writes a file twice in one nanosecond and keeps its
// size.
func entityTag(modified, size int64) string {
	b := make([]byte, 0, 40)
	b = append(b, '"')
	b = strconv.AppendInt(b, modified, 36)
	b = append(b, '-')
	b = strconv.AppendInt(b, size, 36)
	return string(append(b, '"'))
}

// contentTypes are those where the tables of systems differ, or a browser is
// strict.
var contentTypes = map[string]string{
	".avif":        "image/avif",
	".css":         "text/css; charset=utf-8",
	".csv":         "text/csv; charset=utf-8",
	".gif":         "image/gif",
	".gz":          "application/gzip",
	".htm":         "text/html; charset=utf-8",
	".html":        "text/html; charset=utf-8",
	".ico":         "image/x-icon",
	".jpeg":        "image/jpeg",
	".jpg":         "image/jpeg",
	".js":          "text/javascript; charset=utf-8",
	".json":        "application/json",
	".map":         "application/json",
	".md":          "text/markdown; charset=utf-8",
	".mjs":         "text/javascript; charset=utf-8",
	".mp3":         "audio/mpeg",
	".mp4":         "video/mp4",
	".pdf":         "application/pdf",
	".png":         "image/png",
	".svg":         "image/svg+xml",
	".txt":         "text/plain; charset=utf-8",
	".wasm":        "application/wasm",
	".webm":        "video/webm",
	".webmanifest": "application/manifest+json",
	".webp":        "image/webp",
	".woff":        "font/woff",
	".woff2":       "font/woff2",
	".xml":         "text/xml; charset=utf-8",
	".zip":         "application/zip",
}

// contentType goes by the extension alone: content is never sniffed, or an
// upload could choose to be HTML.
func contentType(name string) string {
	ext := strings.ToLower(path.Ext(name))
	if t, ok := contentTypes[ext]; ok {
		return t
	}
	if t := mime.TypeByExtension(ext); t != "" {
		return t
	}
	return "application/octet-stream"
}
