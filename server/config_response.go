package server

import (
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ResponseConfig is [server.response]: what happens to answers on their way out.
type ResponseConfig struct {
	// Compression encodes text for clients that accept br, zstd or gzip: files and
	// what scripts print.
	Compression bool `toml:"compression"`
	// CompressionLevel is from 1, the fastest, to 9, the smallest.
	CompressionLevel int `toml:"compression_level"`
	// CompressionMinSize leaves smaller bodies as they are, in bytes.
	CompressionMinSize Size `toml:"compression_min_size"`
	// Headers are added to every answer but a 101, in order, beside those that
	// the script set.
	Headers []HeaderField `toml:"headers"`
	// SetHeaders are set in every answer but a 101, in place of what the script set.
	SetHeaders []HeaderField `toml:"set_headers"`
	// RemoveHeaders are names of fields that are taken out of every answer.
	RemoveHeaders []string `toml:"remove_headers"`
	// InterceptErrors puts ErrorPages also in place of what a script prints with a
	// status that has one.
	InterceptErrors bool `toml:"intercept_errors"`
}

func defaultResponse() ResponseConfig {
	return ResponseConfig{Compression: true, CompressionLevel: 1, CompressionMinSize: 1024}
}

// ownHeaders is what is left of it for answers that are not a site's: its headers.
func (c ResponseConfig) ownHeaders() ResponseConfig {
	return ResponseConfig{Headers: c.Headers, SetHeaders: c.SetHeaders, RemoveHeaders: c.RemoveHeaders}
}

// A HeaderField is a field of an answer. In a file it is a pair: ["X-Name", "value"].
type HeaderField struct{ Name, Value string }

// UnmarshalTOML sets the field from a pair of strings.
func (f *HeaderField) UnmarshalTOML(v any) error {
	name, value, err := pair(v, `["X-Name", "value"]`)
	if err == nil {
		*f = HeaderField{Name: textproto.CanonicalMIMEHeaderKey(name), Value: value}
	}
	return err
}

// ErrorPages are URL paths by status: "404", or "4xx" and "5xx" for those that have
// none of their own. In a file it is a table of strings.
type ErrorPages map[string]string

// UnmarshalTOML sets the pages from a table.
func (p *ErrorPages) UnmarshalTOML(v any) error {
	all, err := stringTable(v, `{ 404 = "/404.html", 5xx = "/error.html" }`)
	if err == nil {
		*p = all
	}
	return err
}

// stringTable reads a table of strings.
func stringTable(v any, example string) (map[string]string, error) {
	table, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("want a table such as " + example)
	}
	all := map[string]string{}
	for key, value := range table {
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("%s: want a string", key)
		}
		all[key] = text
	}
	return all, nil
}

// framing are the header fields that say where an answer ends and how it travels:
// the server's own.
var framing = []string{"Connection", "Content-Encoding", "Content-Length", "Content-Range", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func (k *checks) response(key string, c ResponseConfig) {
	if c.CompressionLevel < 1 || c.CompressionLevel > 9 {
		k.add(key+".compression_level", "%d is not from 1 to 9", c.CompressionLevel)
	}
	for _, list := range []struct {
		name   string
		fields []HeaderField
	}{{"headers", c.Headers}, {"set_headers", c.SetHeaders}} {
		for i, f := range list.fields {
			k.headerName(key+"."+list.name, i, f.Name)
			if strings.ContainsFunc(f.Value, notInHeader) {
				k.add(key+"."+list.name, "entry %d: %q cannot be sent as a header", i+1, f.Value)
			}
		}
	}
	for i, name := range c.RemoveHeaders {
		k.headerName(key+".remove_headers", i, name)
	}
}

func (k *checks) headerName(key string, i int, name string) {
	switch {
	case !token.MatchString(name):
		k.add(key, "entry %d: %q is not the name of a header", i+1, name)
	case slices.Contains(framing, textproto.CanonicalMIMEHeaderKey(name)):
		k.add(key, "entry %d: %s is the server's own", i+1, name)
	}
}

func (k *checks) errorPages(key string, pages ErrorPages) {
	for status, page := range pages {
		ok := len(status) == 3 && (status[0] == '4' || status[0] == '5') &&
			(status[1:] == "xx" || isDigit(status[1]) && isDigit(status[2]))
		if !ok {
			k.add(key, `%q is not a status such as "404", "4xx" or "5xx"`, status)
		}
		if path, ok := decodePath(page); !ok || strings.ContainsAny(page, "?#%") || isDirectoryPath(path) {
			k.add(key, `%s: %q is not the path of a file or script such as "/404.html"`, status, page)
		}
	}
}

// missingPages warns of pages that are not there. They may come with a deploy.
func missingPages(key, root string, pages ErrorPages, warn func(key, format string, args ...any)) {
	if root == "" {
		return
	}
	for _, status := range slices.Sorted(maps.Keys(pages)) {
		path, ok := decodePath(pages[status])
		if !ok {
			continue // Validate says so
		}
		file := filepath.Join(root, fileName(path))
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			warn(key, "%s: there is no file %q yet; without it the server's own text is sent", status, file)
		}
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
