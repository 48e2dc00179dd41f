// Package ephpm_test checks what no package can check about itself.
package ephpm_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "ephpm"

// A row is what one package may import. Standard packages are free but for
// those in guarded.
type row struct {
	ours    []string // packages of this module
	modules []string // modules of others
	std     []string // of guarded, each with all below it
	// testModules are modules that its tests may import on top; what is ours and
	// what is guarded is no different in a test.
	testModules []string
}

// rows is the picture of the packages as data. A new package gets a row first.
var rows = map[string]row{
	"cmd/ephpm": {
		ours:    []string{"server"},
		modules: []string{"github.com/BurntSushi/toml"}, // and nobody else
	},
	// Not in server: it is initialized before net/http, so it imports next to nothing.
	"http2connect": {},
	"server": {
		ours: []string{"http2connect", "descriptor", "websocket", "eventstream", "registry", "phpbridge", "kv", "quic"},
		modules: []string{
			"github.com/prometheus/client_golang", "github.com/quic-go/quic-go",
			"github.com/caddyserver/certmagic", "go.uber.org/zap", // ACME, and what it logs by
			"github.com/pires/go-proxyproto",                                 // the two formats of the PROXY protocol
			"golang.org/x/sys",                                               // how much of an answer the kernel still has
			"github.com/andybalholm/brotli", "github.com/klauspost/compress", // content codings
			"golang.org/x/crypto/bcrypt", // passwords
		},
		std:         []string{"net"},
		testModules: []string{"github.com/coder/websocket"},
	},
	// Below the leaves: what those have in common whose connections are mostly idle.
	"descriptor": {
		modules: []string{"golang.org/x/sys"}, // epoll
		std:     []string{"net"},
	},
	"wheel": {},
	"websocket": {
		ours:    []string{"descriptor", "wheel"},
		modules: []string{"golang.org/x/sys", "github.com/klauspost/compress"}, // io_uring; permessage-deflate
		std:     []string{"net"},
	},
	// Sockets, keys and connection IDs below quic-go, which leaves them to its
	// user. Not in server: it is nothing of HTTP.
	"quic": {
		modules: []string{"github.com/quic-go/quic-go", "golang.org/x/net", "golang.org/x/sys"}, // x/net: the batches of its ReadBatch
		std:     []string{"net"},
	},
	// What a socket would be, over plain requests: nothing of RFC 6455, so not in
	// websocket, and nothing of HTTP, which is server's.
	"eventstream": {
		ours: []string{"descriptor", "wheel"},
		std:  []string{"net"}, // the connections that it parks
	},
	"registry": {},
	"phpbridge": {
		modules: []string{"golang.org/x/sys"},    // memfd, futex, eventfd, pidfd
		std:     []string{"C", "os/exec", "net"}, // net also for the control socket
	},
	"kv": {
		ours:    []string{"descriptor"},
		modules: []string{"github.com/klauspost/compress", "github.com/andybalholm/brotli", "golang.org/x/sys"}, // of values; bare descriptors
		std:     []string{"net"},
	},
	"e2e": {
		modules: []string{
			"github.com/coder/websocket", "github.com/chromedp", "github.com/quic-go/quic-go",
			"github.com/andybalholm/brotli", "github.com/klauspost/compress", // decodes what the server encoded
		},
		testModules: []string{"github.com/letsencrypt/pebble/v2", "github.com/miekg/dns", "golang.org/x/net", "github.com/quic-go/qpack", "github.com/redis/go-redis/v9", "github.com/summerwind/h2spec"},
		std:         []string{"net", "os/exec"},
	},
	"bench": { // starts the built binary and others to compare
		modules: []string{"github.com/coder/websocket", "github.com/quic-go/quic-go"}, // two of them
		std:     []string{"net", "os/exec"},
	},
	".": {}, // this test
}

// guarded are the standard packages that a row must grant: who talks to the
// network, starts processes and enters C is part of the picture.
var guarded = []string{"C", "net", "os/exec", "plugin"}

func TestPackagesImportOnlyWhatTheirRowsGrant(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); name != "." && (base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		dir := filepath.ToSlash(filepath.Dir(name))
		r, ok := rows[dir]
		if !ok && !seen[dir] {
			t.Errorf("package %s has no row in deps_test.go", dir)
		}
		seen[dir] = true
		if ok {
			checkFile(t, dir, r, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkFile parses the file itself, so that no build tag hides an import.
func checkFile(t *testing.T, dir string, r row, name string) {
	t.Helper()
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, "_test.go") {
		r.modules = slices.Concat(r.modules, r.testModules)
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !granted(r, dir, imported) {
			t.Errorf("%s imports %q, which the row of %s does not grant", name, imported, dir)
		}
	}
}

func granted(r row, dir, imported string) bool {
	if imported == module || strings.HasPrefix(imported, module+"/") {
		ours := strings.TrimPrefix(imported, module+"/")
		return ours == dir || slices.Contains(r.ours, ours) // a test may import its own package
	}
	if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") {
		return within(imported, r.modules)
	}
	return !within(imported, guarded) || within(imported, r.std)
}

// within reports whether a package is one of those listed or below one.
func within(imported string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		return imported == p || strings.HasPrefix(imported, p+"/")
	})
}

// base are the packages below the leaves.
var base = []string{"descriptor", "wheel"}

// The picture itself: leaves import nothing of ours but what is below them all, which
// imports nothing; C is entered in one place, TOML is read in one place.
func TestRowsKeepThePicture(t *testing.T) {
	var cgo, toml []string
	for _, dir := range slices.Sorted(maps.Keys(rows)) {
		r := rows[dir]
		above := slices.DeleteFunc(slices.Clone(r.ours), func(p string) bool { return slices.Contains(base, p) })
		if len(above) > 0 && dir != "server" && dir != "cmd/ephpm" || len(r.ours) > 0 && slices.Contains(base, dir) {
			t.Errorf("%s may import %q, want nothing of ours but what is below", dir, r.ours)
		}
		if within("C", r.std) {
			cgo = append(cgo, dir)
		}
		if within("github.com/BurntSushi/toml", slices.Concat(r.modules, r.testModules)) {
			toml = append(toml, dir)
		}
	}
	if !slices.Equal(cgo, []string{"phpbridge"}) {
		t.Errorf("%q may import C, want phpbridge alone", cgo)
	}
	if !slices.Equal(toml, []string{"cmd/ephpm"}) {
		t.Errorf("%q may import TOML, want cmd/ephpm alone", toml)
	}
}

func TestGrantedRefusesWhatNoRowNames(t *testing.T) {
	for _, test := range []struct {
		dir, imported string
		want          bool
	}{
		{"registry", "sync", true},
		{"registry", "net", false},
		{"registry", "net/netip", false},
		{"registry", "netip", true}, // no such package; the prefix is a whole element
		{"registry", "ephpm/server", false},
		{"registry", "ephpm/registry", true},
		{"server", "ephpm/registry", true},
		{"server", "ephpm/cmd/ephpm", false},
		{"server", "ephpm", false},
		{"server", "C", false},
		{"server", "github.com/BurntSushi/toml", false},
		{"server", "github.com/prometheus/client_golang/prometheus", true},
		{"server", "github.com/prometheus/client_golang2", false},
		{"cmd/ephpm", "github.com/BurntSushi/toml", true},
		{"cmd/ephpm", "ephpm/phpbridge", false},
		{"phpbridge", "C", true},
		{"phpbridge", "net/http", true},
		{"phpbridge", "plugin", false},
		{"e2e", "ephpm/server", false},
	} {
		if got := granted(rows[test.dir], test.dir, test.imported); got != test.want {
			t.Errorf("%s may import %s: %v, want %v", test.dir, test.imported, got, test.want)
		}
	}
}
