package server

import (
	"mime"
	"path"
	"strings"
)

// contentTypes are those where the tables of systems differ, or a browser is
// strict.
var contentTypes = map[string]string{
	".7z":          "application/x-7z-compressed",
	".atom":        "application/atom+xml",
	".avif":        "image/avif",
	".bmp":         "image/bmp",
	".bz2":         "application/x-bzip2",
	".css":         "text/css; charset=utf-8",
	".csv":         "text/csv; charset=utf-8",
	".eot":         "application/vnd.ms-fontobject",
	".flac":        "audio/flac",
	".geojson":     "application/geo+json",
	".gif":         "image/gif",
	".gz":          "application/gzip",
	".htm":         "text/html; charset=utf-8",
	".html":        "text/html; charset=utf-8",
	".ico":         "image/x-icon",
	".ics":         "text/calendar; charset=utf-8",
	".jpeg":        "image/jpeg",
	".jpg":         "image/jpeg",
	".js":          "text/javascript; charset=utf-8",
	".json":        "application/json",
	".jsonld":      "application/ld+json",
	".jxl":         "image/jxl",
	".m3u8":        "application/vnd.apple.mpegurl",
	".m4a":         "audio/mp4",
	".m4v":         "video/mp4",
	".map":         "application/json",
	".md":          "text/markdown; charset=utf-8",
	".mjs":         "text/javascript; charset=utf-8",
	".mov":         "video/quicktime",
	".mp3":         "audio/mpeg",
	".mp4":         "video/mp4",
	".oga":         "audio/ogg",
	".ogg":         "audio/ogg",
	".ogv":         "video/ogg",
	".opus":        "audio/ogg",
	".otf":         "font/otf",
	".pdf":         "application/pdf",
	".png":         "image/png",
	".rss":         "application/rss+xml",
	".svg":         "image/svg+xml",
	".tar":         "application/x-tar",
	".tif":         "image/tiff",
	".tiff":        "image/tiff",
	".ts":          "video/mp2t",
	".ttf":         "font/ttf",
	".txt":         "text/plain; charset=utf-8",
	".vcf":         "text/vcard; charset=utf-8",
	".vtt":         "text/vtt; charset=utf-8",
	".wasm":        "application/wasm",
	".wav":         "audio/wav",
	".weba":        "audio/webm",
	".webm":        "video/webm",
	".webmanifest": "application/manifest+json",
	".webp":        "image/webp",
	".woff":        "font/woff",
	".woff2":       "font/woff2",
	".xhtml":       "application/xhtml+xml",
	".xml":         "text/xml; charset=utf-8",
	".xsl":         "text/xml; charset=utf-8",
	".zip":         "application/zip",
	".zst":         "application/zstd",
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

// fileKinds is what a site says in the header of a file by its name.
type fileKinds struct {
	types    MIMETypes
	rules    []CacheRule
	fallback string // Cache-Control of what no rule names
}

func (k *fileKinds) contentType(name string) string {
	if t, ok := k.types[strings.ToLower(path.Ext(name))]; ok {
		return t
	}
	return contentType(name)
}

// cacheControl returns the value of Cache-Control for a file below the root, or nil.
func (k *fileKinds) cacheControl(name string) []string {
	value := k.fallback
	for _, r := range k.rules {
		if matchGlob(r.Path, "/"+name) {
			value = r.Value
			break
		}
	}
	if value == "" {
		return nil
	}
	return []string{value}
}

// compressibleTypes are those besides text/… and what is JSON or XML.
var compressibleTypes = map[string]bool{
	"application/javascript":        true,
	"application/json":              true,
	"application/rtf":               true,
	"application/vnd.ms-fontobject": true,
	"application/wasm":              true,
	"application/x-javascript":      true,
	"application/x-ndjson":          true,
	"application/xml":               true,
	"font/otf":                      true,
	"font/ttf":                      true,
	"image/bmp":                     true,
	"image/x-icon":                  true,
	"image/vnd.microsoft.icon":      true,
}

// isCompressible reports whether a body of this Content-Type gets smaller. A
// stream of events does, but lasts for hours, and each would hold an encoder.
func isCompressible(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	if strings.HasPrefix(kind, "text/") {
		return kind != "text/event-stream"
	}
	return compressibleTypes[kind] || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}
